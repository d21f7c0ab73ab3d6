// A task refuses to await what it could not cancel, and the error names the remedy.
//
// MISTAKE 1: (?s)unknown awaitable.*'other::Operation' does not satisfy 'Awaitable'
// MISTAKE 2: (?s)unknown awaitable.*'std::suspend_always' does not satisfy 'Awaitable'
#include "stint/task.hpp"

namespace other {

struct Operation {
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  void await_resume() const noexcept {}
};

}  // namespace other

stint::Task<> program() {
  co_await stint::yield();
#if MISTAKE == 1
  co_await other::Operation();
#elif MISTAKE == 2
  co_await std::suspend_always();
#endif
}
