// What is possible here: the least that a coroutine semaphore can do. One thread, no cancel token, no deadlines, no
// results, no names, no asserts. It is no peer; it says how far from the floor of this machine a figure is.
// usage: floor sem.uncontended n=
//              sem.contended tasks= iters= permits=
//              sem.waiter_mem n=      sem.cancel n=      spawn n=      await_child n=
#include "peer.hpp"

#include <coroutine>
#include <exception>

namespace {

const char* const kPeer = "floor";

struct Node {
  Node* next = this;
  Node* prev = this;
  void push_back(Node& node) {
    node.prev = prev;
    node.next = this;
    prev->next = &node;
    prev = &node;
  }
  void unlink() {
    prev->next = next;
    next->prev = prev;
  }
  bool empty() const { return next == this; }
};
struct Waiting : Node {
  std::coroutine_handle<> frame;
  bool granted = false;
};

/// The run queue: a list of what waits to be resumed.
class Loop {
 public:
  void post(Waiting& waiting) { ready_.push_back(waiting); }
  void run() {
    while (!ready_.empty()) {
      auto& waiting = static_cast<Waiting&>(*ready_.next);
      waiting.unlink();
      waiting.frame.resume();
    }
  }

 private:
  Node ready_;
};

/// Starts at once, destroys itself.
struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};
/// Lazy, awaited by its parent, symmetric transfer.
struct Child {
  struct promise_type {
    std::coroutine_handle<> parent;
    Child get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct Return {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> child) noexcept {
          return child.promise().parent;
        }
        void await_resume() noexcept {}
      };
      return Return{};
    }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  ~Child() { frame.destroy(); }
  bool await_ready() { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> parent) {
    frame.promise().parent = parent;
    return frame;
  }
  void await_resume() {}
  std::coroutine_handle<promise_type> frame;
};

struct Yield : Waiting {
  explicit Yield(Loop& loop) : loop_(loop) {}
  bool await_ready() { return false; }
  void await_suspend(std::coroutine_handle<> awaiting) {
    frame = awaiting;
    loop_.post(*this);
  }
  void await_resume() {}

 private:
  Loop& loop_;
};

class Semaphore {
 public:
  Semaphore(Loop& loop, long permits) : loop_(loop), free_(permits) {}
  struct Acquire : Waiting {
    explicit Acquire(Semaphore& owner) : semaphore(owner) {}
    bool await_ready() {
      if (semaphore.free_ <= 0 || !semaphore.line_.empty()) return false;
      --semaphore.free_;
      return granted = true;
    }
    void await_suspend(std::coroutine_handle<> awaiting) {
      frame = awaiting;
      semaphore.line_.push_back(*this);
    }
    bool await_resume() { return granted; }
    Semaphore& semaphore;
  };
  Acquire acquire() { return Acquire(*this); }
  void release() {
    if (line_.empty()) {
      ++free_;
    } else {
      wake(true);
    }
  }
  void cancel_all() {
    while (!line_.empty()) wake(false);
  }

 private:
  void wake(bool granted) {
    auto& waiting = static_cast<Waiting&>(*line_.next);
    waiting.unlink();
    waiting.granted = granted;
    loop_.post(waiting);
  }

  Loop& loop_;
  Node line_;
  long free_;
};

Detached pairs(Semaphore& semaphore, long count) {
  for (long i = 0; i < count; ++i) {
    co_await semaphore.acquire();
    asm volatile("" ::: "memory");  // or the compiler sees that the pair does nothing
    semaphore.release();
  }
}
double uncontended(long count) {
  Loop loop;
  Semaphore semaphore(loop, 10);
  const auto start = Clock::now();
  pairs(semaphore, count);
  return ns_since(start) / static_cast<double>(count);
}

Detached holds(Loop& loop, Semaphore& semaphore, long iters) {
  for (long i = 0; i < iters; ++i) {
    co_await semaphore.acquire();
    co_await Yield(loop);
    semaphore.release();
  }
}
double contended(const Args& args) {
  const long tasks = args.number("tasks");
  const long iters = args.number("iters");
  Loop loop;
  Semaphore semaphore(loop, args.number("permits"));
  const auto start = Clock::now();
  for (long i = 0; i < tasks; ++i) holds(loop, semaphore, iters);
  loop.run();
  return ns_since(start) / static_cast<double>(tasks * iters);
}

Detached parks(Semaphore& semaphore, long& gone) {
  const bool granted = co_await semaphore.acquire();
  gone += granted ? 0 : 1;
}
void waiter_memory(const Args& args) {
  const long count = args.number("n");
  Loop loop;
  Semaphore semaphore(loop, 0);
  long gone = 0;
  const double before = resident_bytes();
  for (long i = 0; i < count; ++i) parks(semaphore, gone);
  args.emit("sem.waiter_mem", kPeer, (resident_bytes() - before) / static_cast<double>(count), "bytes");
  semaphore.cancel_all();
  loop.run();
}
double cancel(long count) {
  Loop loop;
  Semaphore semaphore(loop, 0);
  long gone = 0;
  for (long i = 0; i < count; ++i) parks(semaphore, gone);
  const auto start = Clock::now();
  semaphore.cancel_all();
  loop.run();
  return ns_since(start) / static_cast<double>(gone);
}

Detached runs(Loop& loop) { co_await Yield(loop); }
double spawn(long count) {
  Loop loop;
  const auto start = Clock::now();
  for (long i = 0; i < count; ++i) {
    runs(loop);
    if (i % 1000 == 999) loop.run();
  }
  loop.run();
  return ns_since(start) / static_cast<double>(count);
}
[[gnu::noinline]] Child nothing() { co_return; }
Detached awaits(long count) {
  for (long i = 0; i < count; ++i) co_await nothing();
}
double await_child(long count) {
  const auto start = Clock::now();
  awaits(count);
  return ns_since(start) / static_cast<double>(count);
}

double measure(const Args& args) {
  const std::string& bench = args.bench();
  if (bench == "sem.contended") return contended(args);
  const long count = args.number("n");
  if (bench == "sem.uncontended") return uncontended(count);
  if (bench == "sem.cancel") return cancel(count);
  if (bench == "spawn") return spawn(count);
  if (bench == "await_child") return await_child(count);
  args.fail("not a bench of this program");
}

}  // namespace

int main(int argc, char** argv) {
  const Args args(argc, argv);
  if (args.bench() == "sem.waiter_mem") {
    waiter_memory(args);
  } else {
    repeat(args, args.bench().c_str(), kPeer, "ns", [&] { return measure(args); });
  }
}
