// Scopes that are cancelled by other threads.
#include "semaphore_test_support.hpp"
#include "stint/asio.hpp"

#include <thread>

namespace stint {
namespace {

Task<> waits_for_ever() { co_await sleep_for(1h); }

TEST(ScopeThreads, an_idle_scope_may_be_destroyed_with_a_pending_cancel) {
  Reactor reactor;
  {
    RootScope scope(reactor);
    std::thread([&] { scope.cancel(Reason::user, "too late"); }).join();
    EXPECT_FALSE(scope.idle()) << "the cancel counts until it has run";
  }
  RootScope next(reactor);  // the request still runs, and finds no scope
  next.spawn(note([] {}));
  reactor.run_until([&] { return next.idle(); });
  EXPECT_FALSE(next.cancelled());
}
TEST(ScopeThreads, a_pending_cancel_is_dropped_with_the_executor) {
  auto reactor = std::make_unique<Reactor>();
  RootScope scope(*reactor);
  std::thread([&] { scope.cancel(); }).join();
  reactor.reset();
  EXPECT_TRUE(scope.idle());
}
TEST(ScopeThreads, an_attached_reactor_may_be_destroyed_with_a_pending_cancel) {
  asio::io_context io;
  {
    Reactor reactor(io);
    RootScope scope(reactor);
    std::thread([&] { scope.cancel(); }).join();
  }
  io.run();
}
TEST(ScopeThreads, a_cancel_reaches_children_spawned_before_and_after_it) {
  Reactor reactor;
  RootScope scope(reactor);
  scope.spawn(waits_for_ever());
  std::thread([&] { scope.cancel(Reason::shutdown, "host is going down"); }).join();
  scope.spawn(waits_for_ever());
  reactor.run_until([&] { return scope.idle(); });
  EXPECT_EQ(scope.reason(), Reason::shutdown);
  EXPECT_EQ(scope.cause(), "host is going down");
}

/// Opens a scope that another thread cancels, as late as at its end.
Task<> opens_and_closes(std::atomic<Scope*>& open, std::atomic<bool>& cancelled, int turns) {
  const auto body = [&](Scope& inner) -> Task<> {
    struct Handshake {  // in the body's frame, which outlives the scope's last child, not the scope
      ~Handshake() {
        while (!cancelled) std::this_thread::yield();
      }
      std::atomic<bool>& cancelled;
    } const handshake{cancelled};
    open = &inner;
    for (int turn = 0; turn < turns; ++turn) co_await yield();
  };
  (void)co_await with_scope(body);
}
TEST(ScopeThreads, a_cancel_at_any_time_of_a_nested_scope_has_one_outcome) {
  Reactor reactor;
  std::atomic<Scope*> open = nullptr;
  std::atomic<bool> cancelled = false, over = false;
  std::thread canceller([&] {
    while (!over) {
      Scope* const scope = open.exchange(nullptr);
      if (scope == nullptr) {
        std::this_thread::yield();
        continue;
      }
      scope->cancel();
      cancelled = true;
    }
  });
  for (int round = 0; round < rounds(2000); ++round) {
    RootScope scope(reactor);
    cancelled = false;
    scope.spawn(opens_and_closes(open, cancelled, round % 4));
    reactor.run_until([&] { return scope.idle(); });
    ASSERT_FALSE(scope.cancelled()) << "only the nested one";
  }
  over = true;
  canceller.join();
}

}  // namespace
}  // namespace stint
