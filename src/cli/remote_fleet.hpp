/// The fleet of a daemon, over its API. Own thread only; nothing under way when it is destroyed.
#pragma once

#include "cli/daemon_place.hpp"
#include "cli/remote_news.hpp"
#include "domain/ambient.hpp"
#include "engine/fleet.hpp"
#include "net/http_client.hpp"

#include <functional>
#include <map>
#include <string>

namespace stint::cli {

/// What a refusal of the daemon means: `status` and the text of its problem.
[[nodiscard]] Error remote_error(int status, const std::string& detail, std::optional<Duration> retry_after);

class RemoteFleet final : public engine::Fleet {
 public:
  /// Where the daemon of the project is now, if there is one: asked when nobody answers where it was.
  using FindAgain = std::function<std::optional<DaemonPlace>()>;
  RemoteFleet(Reactor& reactor, DaemonPlace place, const domain::Ambient& ambient, FindAgain find_again);

  Task<Result<std::vector<Result<engine::Submitted>>>> submit(std::vector<engine::Submission> wishes) override;
  Task<Result<std::optional<engine::RunView>>> find(std::string id) override;
  Task<Result<std::vector<engine::RunView>>> list(store::Filter filter) override;
  Task<Result<std::vector<store::Event>>> events(std::string id, std::int64_t after, std::uint32_t most) override;
  Task<Result<store::FeedPage>> feed(std::string cursor, std::uint32_t most) override;
  Task<Result<store::Output>> output(std::string id) override;
  Task<Result<engine::WhyView>> why(std::string id) override;
  Task<std::uint64_t> changed(std::string id, std::uint64_t seen, Duration most) override;
  Task<Result<engine::RunView>> wait(std::string id) override;
  Task<Result<engine::Receipt>> cancel(std::string id) override;
  Task<Result<engine::Submitted>> retry(std::string id) override;
  Task<Result<domain::RunState>> resolve(std::string id, domain::Resolution how) override;
  Task<Result<>> answer(std::string id) override;
  Task<Result<std::vector<engine::AgentView>>> agents() override;
  Task<Result<std::vector<engine::LimitView>>> limits() override;
  Task<Result<>> resize_limit(std::string name, std::uint32_t capacity) override;
  Task<Result<>> pause(std::string limit, std::optional<Duration> length) override;
  Task<Result<std::uint64_t>> resume(std::string limit) override;
  Task<Result<engine::FleetStatus>> status() override;
  Task<Result<engine::FleetHealth>> health() override;
  [[nodiscard]] engine::Phase phase() const override { return phase_; }
  Task<Result<engine::FleetHealth>> scale(Scale scale) override;
  Task<Result<>> drain(Drain drain) override;

 private:
  struct Call {
    std::string method = "GET";
    std::string path;
    std::string body{};
    std::string key{};  ///< of idempotency
    std::string traceparent{};
    bool patient = false;  ///< it may take as long as it takes
  };
  [[nodiscard]] net::Ask request(const std::string& path) const;
  Task<Result<net::Reply>> ask(Call call);
  /// The body of what went well.
  Task<Result<std::string>> get(Call call);
  Task<Result<engine::Submitted>> submit_one(engine::Submission wish);
  [[nodiscard]] Error refusal(const net::Reply& reply) const;

  Executor& executor_;
  DaemonPlace place_;
  const FindAgain find_again_;
  const domain::Ambient& ambient_;
  net::HttpClient client_;
  RemoteNews news_;
  engine::Phase phase_ = engine::Phase::serving;  // as it was told last
  /// Where pages begin, by a number that stands for the last run of the page before.
  std::map<store::RunNumber, std::string> pages_;
};

}  // namespace stint::cli
