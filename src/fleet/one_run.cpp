#include "fleet/one_run.hpp"

#include "domain/run_id.hpp"
#include "fleet/parent_run.hpp"
#include "os/resources.hpp"
#include "project/agent_registry.hpp"
#include "stint/combinators.hpp"

#include <fmt/format.h>

#include <map>
#include <unistd.h>
#include <utility>
#include <vector>

namespace stint::fleet {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPruneEvery = 1h;  // without a daemon; over all processes

}  // namespace

OneRun::OneRun(const Parts& parts, Options options)
    : parts_(parts), options_(std::move(options)), id_(domain::new_run_id(parts.system)) {}

Task<Result<>> OneRun::carry(engine::Submission submission, std::function<Task<Result<>>(Fleet&, std::string)> follow) {
  const std::string agent = submission.agent.empty() ? std::string(domain::kPromptAgent) : submission.agent;
  const project::AgentSpec* const spec = project::find_spec(parts_.snapshot->registry, agent);
  make_node(spec == nullptr ? agent : project::name_in_store(*spec, submission.driver, submission.model));
  STINT_CO_CHECK(co_await node_->engine().enrol());
  submission.id = id_;
  // A node that takes it up later may serve another checkout; on another host there may be no such folder.
  if (options_.lasting_lease) submission.directory = parts_.snapshot->checkout.project.root.string();
  submission.kept = true;  // a daemon that took it would wait for the permits of the run that this process is a part of
  submission.parent = co_await running_parent(node_->fleet());
  const auto submitted = co_await submit(std::move(submission));
  if (!submitted) {
    (void)co_await parts_.store.leave(*node_->engine().owner());
    co_return submitted;
  }
  Result<> followed;
  auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(serve());
    followed = co_await follow(node_->fleet(), id_);
    node_->engine().drain(Duration::zero());
  };
  (void)co_await with_scope(std::ref(body));
  co_return followed;
}

void OneRun::make_node(const std::string& agent) {
  Node::Options options;
  options.engine.label = fmt::format("{}:{} run", os::host_name(), ::getpid());
  options.engine.pool.workers = 1;
  options.engine.only = id_;
  options.engine.only_agent = agent;
  options.engine.survivors_every = Duration::zero();
  options.engine.retention = parts_.snapshot->checkout.settings.retention;
  options.engine.prune_every = kPruneEvery;
  options.engine.cost_micros_per_day = parts_.snapshot->checkout.settings.cost_micros_per_day;
  if (options_.lasting_lease) options.engine.lease = Duration::max();
  options.planner.program = options_.program;
  options.driver.mask = std::move(options_.mask);
  options.driver.on_output = std::move(options_.on_output);
  node_ = std::make_unique<Node>(Node::Parts{.reactor = parts_.reactor,
                                             .system = parts_.system,
                                             .store = parts_.store,
                                             .snapshot = [snapshot = parts_.snapshot] { return snapshot; }},
                                 std::move(options));
}

Task<Result<>> OneRun::submit(engine::Submission submission) {
  STINT_CO_CHECK(co_await size_limits());
  std::vector<engine::Submission> submissions;
  submissions.push_back(std::move(submission));
  STINT_CO_TRY(auto submitted, co_await node_->fleet().submit(std::move(submissions)));
  if (!submitted.front()) co_return fail(std::move(submitted.front()).error());
  co_return Result<>();
}

/// Beside other nodes only those limits that have no capacity yet: a daemon has decided on the others.
Task<Result<>> OneRun::size_limits() {
  std::map<std::string, std::uint32_t> capacities = parts_.snapshot->cluster_limits;
  STINT_CO_TRY(const auto nodes, co_await parts_.store.nodes());
  if (nodes.size() <= 1) {
    co_return co_await parts_.store.configure(std::move(capacities), project::names_in_store(*parts_.snapshot));
  }
  STINT_CO_TRY(const auto known, co_await parts_.store.limits());
  for (const store::LimitState& limit : known) {
    if (limit.capacity) capacities.erase(limit.name);
  }
  co_return co_await parts_.store.configure(std::move(capacities), {});
}

Task<> OneRun::serve() {
  const auto ended = co_await node_->engine().run();
  if (!ended && options_.on_failure) options_.on_failure(ended.error());
}

std::optional<domain::WaitReason> OneRun::waits_for() const {
  const auto& waits = node_->engine().waits();
  return waits.empty() ? std::nullopt : std::optional(waits.rbegin()->second);
}

void OneRun::stop(std::string why) { node_->engine().stop_here(id_, pool::Carried::Stop::cancelled, std::move(why)); }

bool OneRun::is_work_over() const {
  const pool::Carried* const carried = node_->engine().worker().find(id_);
  return carried == nullptr || carried->is_work_over();
}

void OneRun::hold(bool held) {
  if (node_) node_->hold(held);
}

}  // namespace stint::fleet
