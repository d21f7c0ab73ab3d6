// Host limits between processes, one bench per call: `limit_bench BENCH key=value…` prints one JSON line per sample.
// `bench/run.py host` runs it beside the peers, which take the same names and keys:
//   handover rounds= [end=kill] [wake=poll]   release or SIGKILL of the holder → the next waiter holds
//   grants seconds= processes= slots=         grants per second if each holds for 1 ms; fails if the cap is exceeded
// A controller forks all processes before any of them has a reactor, and observes them through shared memory.
#include "bench_support.hpp"
#include "limit/host_limits.hpp"
#include "stint/scope.hpp"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>

namespace stint::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kProcessesMax = 64;
constexpr std::size_t kWaitsMax = 1 << 20;
constexpr auto kNap = 50us;    // as in the peers: it also keeps the cores awake
constexpr auto kAsleep = 3ms;  // after this a waiter is certainly blocked in the kernel
constexpr auto kHold = 1ms;

struct Shared {
  enum Turn : int { idle, held, waiting, release, got };
  std::atomic<int> turn{idle};
  std::atomic<std::int64_t> released_ns{0}, got_ns{0};
  std::atomic<bool> stop{false};
  std::atomic<std::int64_t> count[kProcessesMax] = {};
  std::atomic<int> inside{0}, most{0};
  std::atomic<std::size_t> waits{0};
  double wait_ms[kWaitsMax] = {};
};

void blocking_nap(Duration time) { std::this_thread::sleep_for(time); }
void blocking_await(const Shared& shared, int turn) {
  while (shared.turn != turn) blocking_nap(kNap);
}

template <class Work>
pid_t start_process(Work work) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  work();
  std::_Exit(0);
}

/// One process's view of the limit.
class Party {
 public:
  Party(std::string directory, std::uint32_t slots, bool inotify)
      : system_{
            .wall_now = [] { return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()); },
            .random = [] { return std::uint64_t{0}; }},
        limits_(reactor_, system_, inotify) {
    limit_.name = "bench";
    limit_.directory = std::move(directory);
    limit_.capacity = slots;
  }
  std::int64_t now_ns() const { return reactor_.now().time_since_epoch().count(); }
  limit::HostPermit blocking_acquire(const std::string& run, const limit::HostLimits::Listener& listener = {}) {
    std::optional<limit::HostPermit> permit;
    RootScope scope(reactor_);
    scope.spawn(acquire(run, listener, permit));
    STINT_ASSERT(reactor_.run(scope));
    return std::move(*permit);
  }

 private:
  Task<> acquire(std::string run, limit::HostLimits::Listener listener, std::optional<limit::HostPermit>& into) {
    limit::HostLimits::Options options;
    options.listener = std::move(listener);
    limit::Claimant who;
    who.run = std::move(run);
    std::vector<limit::HostRequest> requests(1);
    requests[0].limit = limit_;
    auto permit = co_await limits_.acquire(std::move(requests), std::move(who), std::move(options));
    if (!permit) {
      std::fprintf(stderr, "%s\n", permit.error().describe().c_str());
      std::_Exit(1);
    }
    into.emplace(std::move(*permit));
  }

  Reactor reactor_;
  domain::System system_;
  limit::HostLimit limit_;
  limit::HostLimits limits_;
};

std::string mark(std::int64_t round) {
  return "bench" + std::to_string(::getpid()) + "r" + std::to_string(round) + ":1";
}

void blocking_handover(const Args& args, Shared& shared, const std::string& directory) {
  const std::int64_t rounds = args.number("rounds");
  const bool kill = args.text("end", "release") == "kill";
  const bool inotify = args.text("wake", "inotify") == "inotify";
  const pid_t waiter = start_process([&] {
    Party party(directory, 1, inotify);
    for (std::int64_t round = 0; round < rounds; ++round) {
      blocking_await(shared, Shared::held);
      limit::HostPermit permit = party.blocking_acquire(mark(round), [&](const domain::WaitReason* why) {
        if (why != nullptr) shared.turn = Shared::waiting;
      });
      shared.got_ns = party.now_ns();
      permit.release();
      shared.turn = Shared::got;
    }
  });
  std::vector<double> us;
  for (std::int64_t round = 0; round < rounds; ++round) {
    const pid_t holder = start_process([&] {
      Party party(directory, 1, inotify);
      limit::HostPermit permit = party.blocking_acquire(mark(round));
      shared.turn = Shared::held;
      blocking_await(shared, Shared::release);
      shared.released_ns = party.now_ns();
      if (kill) ::raise(SIGKILL);
      permit.release();
    });
    blocking_await(shared, Shared::waiting);
    blocking_nap(kAsleep);
    shared.turn = Shared::release;
    blocking_await(shared, Shared::got);
    shared.turn = Shared::idle;
    ::waitpid(holder, nullptr, 0);
    us.push_back(static_cast<double>(shared.got_ns - shared.released_ns) / 1e3);
  }
  ::waitpid(waiter, nullptr, 0);
  us.erase(us.begin());  // warm-up
  args.emit("handover.p50", percentile(us, 0.5), "us");
  args.emit("handover.p99", percentile(us, 0.99), "us");
}

void blocking_contend(Shared& shared, const std::string& directory, std::uint32_t slots, std::int64_t self) {
  Party party(directory, slots, true);
  while (!shared.stop) {
    const std::int64_t since = party.now_ns();
    limit::HostPermit permit = party.blocking_acquire(mark(self));
    shared.wait_ms[shared.waits++ % kWaitsMax] = static_cast<double>(party.now_ns() - since) / 1e6;
    const int inside = ++shared.inside;
    for (int most = shared.most; inside > most && !shared.most.compare_exchange_weak(most, inside);) {
    }
    blocking_nap(kHold);
    --shared.inside;
    ++shared.count[self];
    permit.release();
  }
}

int blocking_grants(const Args& args, Shared& shared, const std::string& directory) {
  const std::int64_t processes = std::min(args.number("processes"), kProcessesMax);
  const auto slots = static_cast<std::uint32_t>(args.number("slots"));
  const std::int64_t seconds = args.number("seconds");
  std::vector<pid_t> pids;
  for (std::int64_t i = 0; i < processes; ++i) {
    pids.push_back(start_process([&] { blocking_contend(shared, directory, slots, i); }));
  }
  blocking_nap(std::chrono::seconds(seconds));
  shared.stop = true;
  for (const pid_t pid : pids) ::waitpid(pid, nullptr, 0);
  std::int64_t total = 0, least = shared.count[0], most = 0;
  for (std::int64_t i = 0; i < processes; ++i) {
    const std::int64_t count = shared.count[i];
    total += count;
    least = std::min(least, count);
    most = std::max(most, count);
  }
  std::vector<double> waits(shared.wait_ms, shared.wait_ms + std::min<std::size_t>(shared.waits, kWaitsMax));
  args.emit("grants.rate", static_cast<double>(total) / static_cast<double>(seconds), "grants/s");
  args.emit("grants.wait_p99", percentile(waits, 0.99), "ms");
  args.emit("grants.fairness", static_cast<double>(least) / static_cast<double>(std::max<std::int64_t>(most, 1)),
            "ratio");
  if (shared.most <= static_cast<int>(slots)) return 0;
  std::fprintf(stderr, "%d held %u slots at once\n", shared.most.load(), slots);
  return 1;
}

int blocking_measure(const Args& args) {
  void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) args.fail("no shared memory");
  Shared& shared = *new (memory) Shared();
  std::string directory = std::filesystem::temp_directory_path().string() + "/stint-bench-XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) args.fail("no temporary directory");
  int status = 0;
  if (args.bench() == "handover") {
    blocking_handover(args, shared, directory);
  } else if (args.bench() == "grants") {
    status = blocking_grants(args, shared, directory);
  } else {
    status = 2;
    std::fprintf(stderr, "usage: limit_bench handover|grants key=value…\n");
  }
  std::filesystem::remove_all(directory);
  return status;
}

}  // namespace
}  // namespace stint::bench

int main(int argc, char** argv) { return stint::bench::blocking_measure(stint::bench::Args(argc, argv)); }
