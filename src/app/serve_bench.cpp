// The daemon without agents: engine, fleet, API and server as `stint serve` wires them, over the store in memory, with
// a driver whose work ends at once. Measures Stint's own cost of a run.
//   serve_bench serve workers= queue=   answers on a port of its own, which it prints; ends with its standard input.
//                                       `bench/run.py serve` puts wrk before it, beside the peers
#include "bench_support.hpp"
#include "fleet/local_fleet.hpp"
#include "http/api.hpp"
#include "http/server.hpp"
#include "os/random.hpp"
#include "stint/asio.hpp"
#include "store/memory_store.hpp"
#include "wire/run_codec.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

namespace stint::bench {
namespace {

constexpr const char* kAgent = "nothing";

class DoneAtOnce final : public domain::Driver {
 public:
  Result<std::unique_ptr<domain::Work>> begin(domain::WorkOrder order, domain::WorkContext&) override {
    return std::make_unique<Done>(std::move(order));
  }

 private:
  class Done final : public domain::Work {
   public:
    explicit Done(domain::WorkOrder order) : order_(std::move(order)) {}
    Task<Result<std::unique_ptr<domain::WorkReport>>> run() override {
      auto report = std::make_unique<domain::WorkReport>();
      report->outcome.kind = OutcomeKind::succeeded;
      report->outcome.text = "done";
      co_return report;
    }
    void end(OutcomeKind, std::string) override {}

   private:
    domain::WorkOrder order_;
  };
};

class NoPermits final : public domain::Permits {
 public:
  [[nodiscard]] bool needed(const std::string&) const override { return false; }
  Task<Result<std::unique_ptr<domain::HeldPermits>>> acquire(std::string,
                                                             std::function<void(const domain::WaitReason*)>) override {
    co_return nullptr;
  }
};

project::AgentRegistry registry(std::uint32_t queue) {
  project::AgentSpec spec;
  spec.agent.name = kAgent;
  domain::ArgumentSpec query;
  query.name = "query";
  query.required = true;
  spec.agent.args.push_back(std::move(query));
  spec.agent.driver = &domain::command_driver();
  spec.agent.command.push_back({"true", 1});
  spec.entry.name = kAgent;
  spec.entry.queued_max = queue;
  spec.entry.limits.push_back({domain::agent_limit(kAgent), 1});
  spec.on_crash = domain::OnCrash::rerun;
  return {{kAgent, std::move(spec)}};
}

struct Fleet {
  explicit Fleet(const Args& args) {
    const auto queue = static_cast<std::uint32_t>(args.number("queue"));
    engine::EngineOptions options;
    options.pool.workers = static_cast<std::size_t>(args.number("workers"));
    options.pool.queue_capacity = queue;
    engine = std::make_unique<engine::Engine>(engine::Engine::Parts{reactor, store, driver, permits, run_codec, system},
                                              std::move(options), registry(queue));
    fleet::LocalFleet::Options shown;
    shown.queue_max = queue;
    fleet = std::make_unique<fleet::LocalFleet>(
        fleet::LocalFleet::Parts{reactor, store, run_codec, system,
                                 [this]() -> const project::AgentRegistry& { return engine->registry(); },
                                 engine.get()},
        std::move(shown));
    http::ApiOptions answers;
    answers.default_agent = [] { return std::string(kAgent); };
    answers.live = {.look = [this] { return fleet->look(); },
                    .elapsed = [this] { return reactor.now().time_since_epoch(); },
                    .wall_now = system.wall_now};
    api = std::make_unique<http::Api>(*fleet, std::move(answers));
    http::ServerOptions served;
    served.wall_clock = [] { return std::chrono::system_clock::now(); };
    server = std::make_unique<http::Server>(reactor, *api, std::move(served));
  }

  Task<> run() {
    auto body = [this](Scope& scope) -> Task<Result<>> {
      scope.spawn(server->serve());
      scope.spawn(end_with_input());
      Result<> ended = co_await engine->run();
      scope.cancel();
      co_return ended;
    };
    const Result<> ended = co_await with_scope(std::ref(body));
    if (!ended) std::fprintf(stderr, "%s\n", ended.error().describe().c_str());
  }
  Task<> end_with_input() {
    asio::posix::stream_descriptor input(reactor.io(), ::dup(STDIN_FILENO));
    char piece[64];
    while (true) {
      const auto [error, count] = co_await input.async_read_some(asio::buffer(piece), use_task);
      if (error) break;
    }
    engine->drain();
  }

  os::Random source;
  const domain::System system{
      .wall_now = [] { return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()); },
      .random = [this] { return source(); }};
  Reactor reactor;
  store::MemoryStore store{system};
  DoneAtOnce driver;
  NoPermits permits;
  wire::RunCodec run_codec;
  std::unique_ptr<engine::Engine> engine;
  std::unique_ptr<fleet::LocalFleet> fleet;
  std::unique_ptr<http::Api> api;
  std::unique_ptr<http::Server> server;
};

int serve(const Args& args) {
  Fleet fleet(args);
  const Result<std::uint16_t> port = fleet.server->listen();
  if (!port) args.fail(std::string(port.error().what()));
  std::printf("%u\n", static_cast<unsigned>(*port));
  std::fflush(stdout);
  RootScope scope(fleet.reactor);
  scope.spawn(fleet.run());
  STINT_ASSERT(fleet.reactor.run(scope));
  return 0;
}

int measure(const Args& args) {
  if (args.bench() == "serve") return serve(args);
  std::fprintf(stderr, "usage: serve_bench serve workers= queue=\n");
  return 2;
}

}  // namespace
}  // namespace stint::bench

int main(int argc, char** argv) { return stint::bench::measure(stint::bench::Args(argc, argv)); }
