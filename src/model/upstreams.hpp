/// `Upstreams`: the accounts of providers that this process uses, by provider, account and model class.
///
/// A pause that concerns a whole account (quota, spend limit, credential, a pause from outside) closes every upstream
/// of that account, also those that are made while it lasts. Bounded: idle upstreams are forgotten, the longest unused
/// first. Own thread only; outlives its upstreams' callers.
#pragma once

#include "model/upstream.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::model {

class Upstreams {
 public:
  static constexpr std::size_t kUpstreamsMax = 1000;
  /// Called when an answer of the provider pauses an account: `until` none: until a person acts. For the engine, which
  /// holds back the runs that need the account.
  using OnPause = std::function<void(const std::string& account, std::optional<WallTime> until, const Pause& why)>;

  Upstreams(Executor& executor, const domain::System& system, OnPause on_pause = {},
            std::size_t upstreams_max = kUpstreamsMax);
  ~Upstreams();
  Upstreams(const Upstreams&) = delete;
  Upstreams& operator=(const Upstreams&) = delete;

  /// Makes it if there is none; `options` apply to a new one only. The caller is its second owner for as long as its
  /// call lasts, back-offs included. Errc::full: too many are in use.
  [[nodiscard]] Result<std::shared_ptr<Upstream>> at(const UpstreamKey& key, const UpstreamOptions& options);

  /// The engine paused the account, such as after a CLI's rate limit. Does not call OnPause.
  void pause_until(const std::string& account, std::optional<WallTime> until, std::string_view why);
  /// The engine resumed it.
  void resume(const std::string& account);

  [[nodiscard]] std::vector<std::shared_ptr<const Upstream>> all() const;

 private:
  struct Entry {
    std::shared_ptr<Upstream> upstream;  // its other owners: callers
    std::uint64_t used = 0;
  };
  struct AccountPause {
    std::optional<TimePoint> until;
    Failure why;
  };
  void paused(const Upstream& upstream, const Pause& pause);
  void pause_account(const std::string& account, const AccountPause& pause, const Upstream* except);
  [[nodiscard]] bool forget_one();

  Executor& executor_;
  const domain::System& system_;
  const OnPause on_pause_;
  const std::size_t upstreams_max_;
  std::map<UpstreamKey, Entry> upstreams_;
  std::map<std::string, AccountPause> accounts_;  // paused ones
  std::uint64_t uses_ = 0;
};

}  // namespace stint::model
