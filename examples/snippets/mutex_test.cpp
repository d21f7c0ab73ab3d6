// The code that the docs show of mutexes.
#include "stint/mutex.hpp"

#include "stint/scope.hpp"
#include "stint/testing.hpp"

#include <gtest/gtest.h>

namespace stint {
namespace {

using namespace std::chrono_literals;

// [mutex]
struct Account {
  Mutex mutex{"account"};
  int balance = 100;
};

Task<Result<>> withdraw(Account& account, int amount) {
  STINT_CO_TRY(const MutexGuard guard, co_await account.mutex.lock());
  const int before = account.balance;
  co_await sleep_for(1s);  // asks the bank; no other coroutine enters meanwhile
  if (before < amount) co_return fail(Errc::exhausted, "not enough on the account");
  account.balance = before - amount;
  co_return Result<>();
}
// [/mutex]

TEST(Mutexes, one_at_a_time_across_an_await) {
  Account account;
  Simulator simulator;
  RootScope scope(simulator);
  for (int i = 0; i < 4; ++i) scope.spawn(withdraw(account, 20));
  simulator.settle();
  EXPECT_EQ(account.balance, 20);
  EXPECT_EQ(simulator.now(), TimePoint(4s));
}

// [owner]
Task<> unlocks_what_it_does_not_hold(MutexGuard& others) {
  Result<> end = co_await others.unlock();
  EXPECT_EQ(end.error(), Errc::denied);
}

Task<> locks_twice(Mutex& mutex) {
  const Result<MutexGuard> first = co_await mutex.lock();
  const Result<MutexGuard> second = co_await mutex.lock();  // would wait for itself forever
  EXPECT_EQ(second.error(), Errc::invalid);
}
// [/owner]

TEST(Mutexes, unlocking_by_another_chain_and_a_second_lock_are_refused) {
  Mutex mutex("lock"), other("other");
  Simulator simulator;
  RootScope scope(simulator);
  MutexGuard held;
  auto holds = [&]() -> Task<> {
    held = std::move(*co_await mutex.lock());
    co_await sleep_for(1h);
    held = MutexGuard();
  };
  scope.spawn(holds());
  simulator.run_ready();
  scope.spawn(unlocks_what_it_does_not_hold(held));
  scope.spawn(locks_twice(other));
  simulator.settle();
}

}  // namespace
}  // namespace stint
