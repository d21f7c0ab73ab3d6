/// The fleet of a daemon, over its HTTP API. Own thread only; the destructor requires that no call is under way.
#pragma once

#include "domain/system.hpp"
#include "fleet/daemon_location.hpp"
#include "fleet/fleet.hpp"
#include "fleet/follow.hpp"
#include "fleet/remote_changes.hpp"
#include "net/http_client.hpp"
#include "stint/offload.hpp"

#include <map>
#include <string>

namespace stint::fleet {

/// The error for an HTTP `status` and the `detail` and `list` of its problem document. The path in `list` becomes the
/// command that lists the same.
[[nodiscard]] Error remote_error(int status, const std::string& detail, std::optional<Duration> retry_after,
                                 std::string_view list = {});

class RemoteFleet final : public Fleet {
 public:
  /// Resolves the daemon of `location` again when it no longer answers at `place`.
  RemoteFleet(Reactor& reactor, DaemonLocation place, const domain::System& system, project::Location location,
              Outage::Say say);

  Task<Result<std::vector<Result<engine::Submitted>>>> submit(std::vector<engine::Submission> submissions) override;
  Task<Result<std::optional<engine::RunView>>> find(std::string id) override;
  Task<Result<std::vector<engine::RunView>>> list(store::Filter filter) override;
  Task<Result<RunPage>> search(Search search) override;
  Task<Result<BatchAnswer>> begin_batch(BatchRequest request) override;
  Task<Result<std::optional<store::Batch>>> batch(std::string id) override;
  Task<Result<std::vector<store::Batch>>> batches(store::BatchNumber before, std::uint32_t most) override;
  Task<Result<std::optional<store::Batch>>> stop_batch(std::string id) override;
  Task<Result<std::vector<store::Event>>> events(std::string id, std::int64_t after, std::uint32_t most) override;
  Task<Result<store::FeedPage>> feed(std::string cursor, std::uint32_t most) override;
  Task<Result<store::Output>> output(std::string id) override;
  Task<Result<engine::WhyView>> why(std::string id) override;
  Task<Result<Timeline>> timeline(std::string id) override;
  Task<std::uint64_t> changed(std::string id, std::uint64_t seen, Duration most) override;
  Task<Result<std::unique_ptr<engine::RunView>>> wait(std::string id) override;
  Task<Result<engine::Receipt>> cancel(std::string id) override;
  Task<Result<engine::Submitted>> retry(std::string id) override;
  Task<Result<domain::RunState>> resolve(std::string id, domain::Resolution how) override;
  Task<Result<>> answer(std::string id) override;
  Task<Result<std::vector<engine::AgentView>>> agents() override;
  Task<Result<std::optional<engine::AgentDetail>>> agent(std::string name) override;
  Task<Result<engine::CostReport>> cost(engine::CostQuery query) override;
  Task<Result<store::Series>> series(store::SeriesQuery query) override;
  Task<Result<std::vector<engine::LimitView>>> limits() override;
  Task<Result<>> resize_limit(std::string name, std::uint32_t capacity) override;
  Task<Result<>> pause(std::string limit, std::optional<Duration> length) override;
  Task<Result<std::uint64_t>> resume(std::string limit) override;
  Task<Result<FleetStatus>> status() override;
  Task<Result<FleetHealth>> health() override;
  [[nodiscard]] engine::Phase phase() const override { return phase_; }
  Task<Result<FleetHealth>> scale(engine::ScaleRequest scale) override;
  Task<Result<>> drain(engine::DrainRequest drain) override;

 private:
  struct Call {
    std::string method = "GET";
    std::string path;
    std::string body{};
    std::string key{};  ///< idempotency key
    std::string traceparent{};
    bool patient = false;  ///< no timeout
  };
  [[nodiscard]] net::Ask request(const std::string& path) const;
  Task<Result<net::Reply>> ask(Call call);
  /// The body of a successful reply.
  Task<Result<std::string>> get(Call call);
  Task<Result<engine::Submitted>> submit_one(engine::Submission submission);
  [[nodiscard]] Error refusal(const net::Reply& reply) const;

  Executor& executor_;
  DaemonLocation place_;
  const project::Location location_;
  BlockingPool files_{"files", 1};
  const Outage::Say say_;  // reports outages while wait() waits
  const domain::System& system_;
  net::HttpClient client_;
  RemoteChanges changes_;
  engine::Phase phase_ = engine::Phase::serving;  // as last reported
  /// The API's cursor of each page, by the number that stands for the last run of the page before.
  std::map<store::RunNumber, std::string> pages_;
};

}  // namespace stint::fleet
