/// The API of a fleet: maps paths and methods to fleet::Fleet, and its results to statuses. One table of routes;
/// `openapi.json` describes it.
#pragma once

#include "engine/views.hpp"
#include "fleet/fleet.hpp"
#include "http/feed_tail.hpp"
#include "http/handler.hpp"
#include "http/server.hpp"
#include "http/shared_answer.hpp"
#include "playground/sandboxes.hpp"
#include "stint/offload.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::http {

/// What the playground needs: a thread for its replays, and clocks.
struct PlaygroundOptions {
  BlockingPool* pool = nullptr;  ///< null: there is no playground
  std::function<Duration()> elapsed{};
  /// Of the calling thread; bounds a replay. Empty: no bound.
  std::function<Duration()> processor_time{};
  std::function<std::uint64_t()> random{};  ///< for ids
};

/// What the dashboard needs: the fleet at one moment, and clocks.
struct LiveOptions {
  std::function<Task<Result<engine::FleetView>>()> look{};
  std::function<Duration()> elapsed{};  ///< only goes forward
  std::function<WallTime()> wall_now{};
};

struct ApiOptions {
  std::function<std::string()> default_agent;  ///< for the short form, /api/agent/run
  /// The run that a caller belongs to, by its token; empty: a person. What it submits becomes a child of that run. It
  /// may read the run itself and its descendants, and cancel the descendants; nothing else.
  std::function<std::string(std::string_view token)> run_of_token;
  std::function<const ServerStats*()> server;  ///< for the metrics
  PlaygroundOptions playground{};
  LiveOptions live{};
};

class Api final : public Handler {
 public:
  Api(fleet::Fleet& fleet, ApiOptions options);

  [[nodiscard]] Task<Response> answer(const Request& request, Exchange& exchange) override;
  /// Probes and the files of the dashboard need no token: they reveal only that a daemon is there.
  [[nodiscard]] static bool is_open(const Request& request);

 private:
  struct Call;
  struct Route;
  struct Found;
  static const std::vector<Route>& table();
  static const std::vector<const Route*>& table(std::size_t parts);
  static Found find(const Request& request);

  Task<Response> submit(Call call);
  Task<Response> list(Call call);
  Task<Response> begin_batch(Call call);
  Task<Response> list_batches(Call call);
  Task<Response> show_batch(Call call);
  Task<Response> stop_batch(Call call);
  Task<Response> show(Call call);
  Task<Response> cancel(Call call);
  Task<Response> retry(Call call);
  Task<Response> resolve(Call call);
  Task<Response> go_on(Call call);
  Task<Response> run_events(Call call);
  Task<Response> all_events(Call call);
  Task<Response> why(Call call);
  Task<Response> timeline(Call call);
  Task<Response> transcript(Call call);
  Task<Response> output(Call call);
  Task<Response> agents(Call call);
  Task<Response> agent(Call call);
  Task<Response> cost(Call call);
  Task<Response> series(Call call);
  Task<Response> limits(Call call);
  Task<Response> resize_limit(Call call);
  Task<Response> pause_limit(Call call);
  Task<Response> resume_limit(Call call);
  Task<Response> pool(Call call);
  Task<Response> scale(Call call);
  Task<Response> drain(Call call);
  Task<Response> status(Call call);
  Task<Response> fleet(Call call);
  Task<Response> health(Call call);
  Task<Response> ready(Call call);
  Task<Response> metrics(Call call);
  Task<Response> describe(Call call);
  Task<Response> short_run(Call call);
  Task<Response> front(Call call);
  Task<Response> list_presets(Call call);
  Task<Response> open_sandbox(Call call);
  Task<Response> show_sandbox(Call call);
  Task<Response> remove_sandbox(Call call);
  Task<Response> act(Call call);
  Task<Response> step(Call call);
  Task<Response> step_back(Call call);
  Task<Response> play(Call call);

  /// Changes a sandbox, or only looks at it. Runs on a thread of the playground's pool.
  using Change = std::function<Result<playground::Played>(playground::Sandbox, const playground::Patience&)>;
  Task<Response> change_sandbox(std::string id, Change change);
  Task<Result<playground::Played>> replay(playground::Sandboxes::Handle sandbox, Change change);
  Task<Response> answer_run(const Route& route, Call call);
  Task<std::optional<Response>> refuse_run(const Route& route, const Call& call);
  Task<Result<bool>> is_below(std::string id, const std::string& ancestor);
  Task<Result<std::unique_ptr<engine::RunView>>> wait_for(std::string id, bool keep, Exchange& exchange);
  [[nodiscard]] bool has_stopped() const;
  Task<bool> send_output(class EventStream& events, const std::string& id, bool ended, std::uint64_t& from);
  Task<> stream_run(class EventStream& events, std::string id, std::int64_t after,
                    std::optional<std::uint64_t> printed);
  Task<> stream_all(class EventStream& events, std::string cursor);
  Task<Result<std::string>> send_rest(class EventStream& events, std::string cursor);
  Task<Result<std::string>> describe_fleet();
  Task<Response> act_and_tell(Task<Response> work);

  fleet::Fleet& fleet_;
  ApiOptions options_;
  playground::Sandboxes sandboxes_;
  SharedAnswer fleet_answer_;
  FeedTail tail_;
};

/// The OpenAPI document.
[[nodiscard]] std::string_view openapi_text() noexcept;
/// Metrics in the Prometheus text format.
[[nodiscard]] std::string metrics_text(const engine::FleetStatus& status, const ServerStats* server,
                                       std::optional<std::size_t> sandboxes = {});

}  // namespace stint::http
