#include "playground/stage.hpp"

#include <algorithm>

namespace stint::playground {

Stage::Stage(std::uint64_t seed, Order order)
    : simulator_(
          std::make_unique<Simulator>(seed, order == Order::fifo ? Simulator::Order::fifo : Simulator::Order::seeded)),
      elsewhere_(*simulator_, {.cancel_on_error = false}) {
  observer_.watch(tokens_);
}

Stage::~Stage() { simulator_.reset(); }

Resource& Stage::add(std::string name, Kind kind) {
  return resources_.emplace_back(Resource{.name = std::move(name), .kind = kind});
}

std::unique_ptr<Semaphore> Stage::make_semaphore(const Resource& resource, std::uint32_t capacity) const {
  Semaphore::Options options;
  options.bypass_max = resource.bypass_max;
  options.track_holders = true;
  options.clock = simulator_.get();
  return std::make_unique<Semaphore>(resource.name, capacity, options);
}

Semaphore& Stage::semaphore(std::string name, std::uint32_t capacity, std::uint32_t bypass_max) {
  Resource& added = add(std::move(name), Kind::semaphore);
  added.bypass_max = bypass_max;
  added.semaphore = make_semaphore(added, capacity);
  observer_.watch(*added.semaphore);
  return *added.semaphore;
}

Mutex& Stage::mutex(std::string name) {
  Resource& added = add(std::move(name), Kind::mutex);
  added.mutex = std::make_unique<Mutex>(added.name);
  observer_.watch(*added.mutex);
  return *added.mutex;
}

ConnectionPool& Stage::pool(std::string name, std::uint32_t max_size) {
  Resource& added = add(std::move(name), Kind::pool);
  added.server = std::make_unique<Server>(added.name);
  auto connect = [server = added.server.get()]() -> Task<Result<Connection>> { co_return Connection(*server); };
  ConnectionPool::Options options;
  options.max_size = max_size;
  options.track_holders = true;
  options.clock = simulator_.get();
  added.pool = std::make_unique<ConnectionPool>(added.name, std::move(connect), std::move(options));
  observer_.watch(*added.pool, *added.server);
  return *added.pool;
}

Server& Stage::server(std::string name) {
  Resource& added = add(std::move(name), Kind::server);
  added.server = std::make_unique<Server>(added.name);
  observer_.watch(*added.server);
  return *added.server;
}

Scope& Stage::spawn(std::string task, Task<Result<>> body) {
  return spawn(task, report_failure(task, std::move(body)));
}

Scope& Stage::spawn(std::string, Task<> body) {
  Scope& scope = scopes_.emplace_back(*simulator_);
  scope.spawn(std::move(body));
  return scope;
}

Task<> Stage::report_failure(std::string task, Task<Result<>> body) {
  const Result<> end = co_await std::move(body);
  if (!end) observer_.failed(std::move(task), end.error());
}

Resource& Stage::resource(std::string_view name) {
  const auto found = std::ranges::find(resources_, name, &Resource::name);
  STINT_ASSERT(found != resources_.end() && "actions are checked against the resources before");
  return *found;
}

bool Stage::set_bypass(Resource& resource, std::uint32_t bypass_max) {
  const Semaphore& before = *resource.semaphore;
  const std::uint32_t capacity = before.capacity();
  if (before.waiting() != 0 || before.available() != std::int64_t{capacity} || before.closed()) return false;
  resource.bypass_max = bypass_max;
  auto anew = make_semaphore(resource, capacity);
  observer_.replace(*anew);
  resource.semaphore = std::move(anew);
  return true;
}

void Stage::begin_advance(Duration time) {
  advancing_ = true;
  elsewhere_.spawn(pass_time(time));
}

Task<> Stage::pass_time(Duration time) {
  co_await sleep_for(time);
  advancing_ = false;
}

void Stage::advance(Duration time) {
  begin_advance(time);
  while (advancing_ || is_ready()) step();
}

void Stage::run() {
  while (step()) {
  }
}

bool Stage::step() {
  if (!simulator_->step()) return false;
  did();
  return true;
}

void Stage::did() {
  ++steps_;
  observer_.look({.step = steps_, .at = now(), .quiet = !is_ready()});
}

}  // namespace stint::playground
