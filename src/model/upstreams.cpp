#include "model/upstreams.hpp"

#include "stint/assert.hpp"

#include <algorithm>
#include <utility>

namespace stint::model {
namespace {

/// Whether a pause concerns every model of the account: the others are of one class of models, or of the provider.
bool is_of_account(PauseCause cause) {
  return cause == PauseCause::quota || cause == PauseCause::spend_limit || cause == PauseCause::auth;
}

}  // namespace

Upstreams::Upstreams(Executor& executor, const domain::System& system, OnPause on_pause, std::size_t upstreams_max)
    : executor_(executor), system_(system), on_pause_(std::move(on_pause)), upstreams_max_(upstreams_max) {}

Upstreams::~Upstreams() {
  for (const auto& [key, entry] : upstreams_) {
    STINT_ASSERT(entry.upstream.use_count() == 1 && "a caller still uses this upstream");
  }
}

Result<std::shared_ptr<Upstream>> Upstreams::at(const UpstreamKey& key, const UpstreamOptions& options) {
  const auto found = upstreams_.find(key);
  if (found != upstreams_.end()) {
    found->second.used = ++uses_;
    return found->second.upstream;
  }
  if (upstreams_.size() >= upstreams_max_ && !forget_one()) {
    return fail(Error(Errc::full, Retry::safe,
                      std::to_string(upstreams_.size()) + " accounts and model classes are in use, and no more fit"));
  }
  auto made =
      std::make_shared<Upstream>(executor_, system_, key, options,
                                 [this](const Upstream& upstream, const Pause& pause) { paused(upstream, pause); });
  upstreams_.emplace(key, Entry{.upstream = made, .used = ++uses_});
  const auto pause = accounts_.find(key.account);
  if (pause != accounts_.end()) made->pause_until(pause->second.until, pause->second.why);
  return made;
}

/// The longest unused of those that know nothing which a new one would not.
bool Upstreams::forget_one() {
  auto oldest = upstreams_.end();
  for (auto each = upstreams_.begin(); each != upstreams_.end(); ++each) {
    if (each->second.upstream.use_count() > 1 || !each->second.upstream->is_idle()) continue;
    if (oldest == upstreams_.end() || each->second.used < oldest->second.used) oldest = each;
  }
  if (oldest == upstreams_.end()) return false;
  upstreams_.erase(oldest);
  return true;
}

void Upstreams::paused(const Upstream& upstream, const Pause& pause) {
  const std::string& account = upstream.key().account;
  if (is_of_account(pause.cause)) pause_account(account, {.until = pause.until, .why = pause.failure}, &upstream);
  if (!on_pause_) return;
  std::optional<WallTime> until;
  if (pause.until) {
    until = system_.wall_now() + std::chrono::ceil<std::chrono::milliseconds>(*pause.until - executor_.now());
  }
  on_pause_(account, until, pause);
}

void Upstreams::pause_account(const std::string& account, const AccountPause& pause, const Upstream* except) {
  const TimePoint now = executor_.now();
  std::erase_if(accounts_, [&](const auto& each) { return each.second.until && *each.second.until <= now; });
  AccountPause& known = accounts_.try_emplace(account, pause).first->second;
  if (known.until && (!pause.until || *pause.until > *known.until)) known = pause;
  for (const auto& [key, entry] : upstreams_) {
    if (key.account == account && entry.upstream.get() != except) entry.upstream->pause_until(pause.until, pause.why);
  }
}

void Upstreams::pause_until(const std::string& account, std::optional<WallTime> until, std::string_view why) {
  AccountPause pause;
  if (until) pause.until = executor_.now() + std::max(Duration(*until - system_.wall_now()), Duration::zero());
  pause.why.kind = FailureKind::quota;
  pause.why.message = std::string(why.substr(0, Failure::kMessageMax));
  pause_account(account, pause, nullptr);
}

void Upstreams::resume(const std::string& account) {
  accounts_.erase(account);
  for (const auto& [key, entry] : upstreams_) {
    if (key.account == account) entry.upstream->resume();
  }
}

std::vector<std::shared_ptr<const Upstream>> Upstreams::all() const {
  std::vector<std::shared_ptr<const Upstream>> all;
  all.reserve(upstreams_.size());
  for (const auto& [key, entry] : upstreams_) all.push_back(entry.upstream);
  return all;
}

}  // namespace stint::model
