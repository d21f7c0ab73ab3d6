#!/usr/bin/env python3
"""Breaks the core of the library in one place at a time and expects the named tests to fail.

    tools/mutants.py BUILD_DIR             all mutants; minutes each on a busy machine, so not part of `./dev test`
    tools/mutants.py BUILD_DIR WORD…       those whose name contains one of the words
    tools/mutants.py --list

A mutant is one edit: a text that occurs exactly once in its file, and its replacement. The library is compiled
with the address sanitizer (or the thread sanitizer, where only that one detects the error) together with the test files that
define the named tests, in a copy of core/ under BUILD_DIR. A test that hangs, dies or fails has caught it. A text that is
no longer found is an error too: move the mutant along with the code.
"""
import argparse
import dataclasses
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SECONDS_MAX = 180  # a test that takes longer hangs
# Parts that are built on the core: its tests do not need them, and compiling them again for each mutant takes long.
NOT_CORE = ("adaptive", "aimd", "autoscale", "http_status", "limit_set", "object_pool", "rate", "retry", "worker_pool")

TASK, CANCEL, EXECUTOR, SCOPE = "include/stint/task.hpp", "src/cancel.cpp", "src/executor.cpp", "include/stint/scope.hpp"
COMBINATORS_HPP, COMBINATORS = "include/stint/combinators.hpp", "src/combinators.cpp"
ASIO_HPP, ASIO = "include/stint/asio.hpp", "src/asio.cpp"
SEMAPHORE_HPP, SEMAPHORE = "include/stint/semaphore.hpp", "src/semaphore.cpp"
HOLDERS = "src/semaphore_holders.cpp"


@dataclasses.dataclass
class Mutant:
    name: str
    file: str
    old: str
    new: str
    tests: str  # patterns of Suite.name, separated by spaces; at least one of them must fail
    sanitizer: str = "address"


MUTANTS = [
    # ---- Task ----
    Mutant("nested resume instead of symmetric transfer", TASK,
           "if (const TaskLink* link = promise.awaiter()) return link->parent;",
           "if (const TaskLink* link = promise.awaiter()) { link->parent.resume(); return std::noop_coroutine(); }",
           "TaskTest.ten_million*"),
    Mutant("exceptions are dropped", TASK, "if (has(kThrew)) std::rethrow_exception(thrown);", "", "TaskTest.exceptions*"),
    Mutant("frames are destroyed by recursion", CANCEL, "for (std::coroutine_handle<> frame = leaf->awaiting_; frame != root;) {",
           "for (std::coroutine_handle<> frame = root; frame != root;) {",
           "TaskTest.a_chain_of_100000_frames_is_stopped* SemaphoreCancel.a_wait_beneath*"),
    Mutant("an empty task may be awaited", TASK, 'STINT_ASSERT(child && "the task is empty', '(void)(child && "the task is empty',
           "TaskDeathTest.awaiting_an*"),
    Mutant("a task may be awaited twice", TASK, "STINT_ASSERT(promise().awaiter_bits == 0 &&", "(void)(promise().awaiter_bits == 0 &&",
           "TaskDeathTest.a_task_is*"),
    # ---- Stop ----
    Mutant("frames are destroyed before the leaf completed", CANCEL, "if (chain.parked != nullptr) chain.parked->cancel();",
           "if (chain.parked != nullptr) chain.parked->cancel(), chain.ended(End::stopped);", "Stop.destroys*"),
    Mutant("a wait ignores the token", TASK, "if (!token().cancelled()) return true;", "return true;", "Stop.a_sleep*"),
    Mutant("a cancelled acquire takes free units", SEMAPHORE_HPP,
           "  if (token().cancelled()) {\n    state_ = State::stopped;\n    return false;\n  }\n  if (units_ == 0", "  if (units_ == 0",
           "SemaphoreCancel.a_cancelled_scope_gets*"),
    Mutant("a cancelled acquire joins the line", SEMAPHORE_HPP, "if (state_ != State::stopped) return true;", "return true;",
           "SemaphoreCancel.a_cancelled_scope_never*"),
    Mutant("a grant wins over an earlier cancel", CANCEL, "if (token.cancelled()) return chain().ended(End::stopped);", "",
           "SemaphoreCancel.a_cancel_between* Stop.*"),
    Mutant("a cancel of many wakes all at once", CANCEL, "count < kCancelsPerBatch && ", "", "Stop.a_large*"),
    Mutant("cleanup is not shielded", COMBINATORS, "shield_.emplace(executor());", "shield_.emplace(token());", "Stop.finally*"),
    Mutant("no cleanup if the body never started", COMBINATORS, "park_shielded();", "if (!park()) return;", "Stop.finally*"),
    Mutant("race does not wait for the loser", COMBINATORS_HPP, "if (--running_ == 0) complete();",
           "if (running_-- == sizeof...(Ts)) complete();", "Stop*.race*"),
    Mutant("with_scope does not wait for its children", SCOPE, "scope_->on_idle_ = this;\n    scope_->check_idle();", "complete();",
           "StopOverSeeds.with_scope*"),
    Mutant("with_deadline does not stop its task", COMBINATORS_HPP,
           "void fire() noexcept override { token_->cancel(Reason::deadline); }", "void fire() noexcept override {}",
           "Stop.with_deadline*"),
    Mutant("select takes the first to run", COMBINATORS, "preferred_ = earliest_ready(&branch);", "preferred_ = &branch;",
           "SelectTest.the_first* SelectTest.an_item*"),
    Mutant("select starts branches after one that is ready", COMBINATORS_HPP, "if (undecided() && branch.ready()) preferred_ = &branch;", "",
           "SelectTest.awaitables_that*"),
    Mutant("select does not stop the branch that is not preferred", CANCEL,
           "if (token.arbitrated_ && !chain().may_resume(*this)) return chain().ended(End::stopped);", "", "SelectTest.*"),
    # ---- Other threads ----
    Mutant("a destroyed scope leaves its cancel pointing at it", "src/scope.cpp", "request->scope = nullptr;", "(void)request;",
           "ScopeThreads.an_idle*"),
    Mutant("a scope is not destroyed while a cancel is pending", "src/scope.cpp", "(executor_ == nullptr || running_ == 0) &&",
           "(executor_ == nullptr || idle()) &&", "ScopeThreads.an_idle*"),
    Mutant("an executor drops what is queued", EXECUTOR, "runnable.dropped();", "",
           "RunOn.an_executor_destroyed_before* ScopeThreads.a_pending*"),
    Mutant("a late post is dropped", ASIO, "posting_.fetch_sub(1, std::memory_order_release);\n      drop_late(runnable);",
           "posting_.fetch_sub(1, std::memory_order_release);", "ReactorTest.queued_and*"),
    Mutant("a cancel is posted to an executor that may be gone", "src/run_on.cpp", "if (left_there_) return;", "",
           "RunOn.an_executor_destroyed_during* RunOn.a_cancel_ends*"),
    Mutant("a cancel before the start is lost", "src/run_on.cpp", "if (self.cancelled_) self.token_->cancel(Reason::user);", "",
           "RunOn.a_cancel_before*"),
    Mutant("a context is destroyed while its acquire completes", ASIO, "while (holds_.load(std::memory_order_acquire) != 0) std::this_thread::yield();",
           "", "TokenThreads.a_context* TokenThreads.a_release*"),
    Mutant("a signal cancels a destroyed operation", ASIO_HPP, "if (link_) link_->disconnect();", "", "TokenTest.a_signal_may_outlive*"),
    Mutant("async_run loses an early cancel", ASIO_HPP, "if (self->cancelled_) co_return;", "",
           "AttachedTest.a_cancel_before* AttachedTest.the_first_of*"),
    Mutant("async_run lets a non-std exception escape", ASIO_HPP,
           '    } catch (...) {\n      self->finish(fail(Errc::failed, "the task threw something that is not a std::exception"));\n', "",
           "AttachedTest.an_exception*"),
    Mutant("a handler runs where its operation ended", ASIO_HPP,
           "    using executor_type = asio::io_context::executor_type;\n"
           "    cancellation_slot_type get_cancellation_slot() const noexcept { return operation->signal_.slot(); }\n"
           "    executor_type get_executor() const noexcept { return operation->io_->get_executor(); }\n"
           "    void operator()(Args... args) const {\n      if (operation->executor().is_current()) {",
           "    cancellation_slot_type get_cancellation_slot() const noexcept { return operation->signal_.slot(); }\n"
           "    auto get_executor() const noexcept { return operation->io_->get_executor(); }\n"
           "    void operator()(Args... args) const {\n      if (true) {",
           "UseTaskThreads.*", "thread"),
    Mutant("an attached context does not wait for children", ASIO, "work_.emplace(io_.get_executor());\n  } else {", "} else {",
           "AttachedThreads.*"),
    # ---- Reactor ----
    Mutant("every post wakes Asio", ASIO, "if (must_wake()) return true;\n  posting_", "if (true) return true;\n  posting_",
           "ReactorTest.a_burst* ReactorTest.posts_to*"),
    Mutant("a wake-up is never removed", ASIO, "wake_in_flight_.store(false, std::memory_order_seq_cst);", "",
           "ReactorTest.a_burst* ReactorTest.no_post*"),
    Mutant("the reactor sleeps without a second check", ASIO,
           "if (inbox_.load(std::memory_order_seq_cst) == nullptr) io_.run_one();", "io_.run_one();",
           "ReactorTest.a_post*"),
    Mutant("I/O is polled only when idle", ASIO_HPP, "      poll_in_turn();\n", "", "ReactorTest.a_full*"),
    Mutant("a poll runs every handler there is", ASIO, "handlers < kHandlersPerPoll && ", "", "ReactorTest.endless*"),
    Mutant("timers are rounded down", EXECUTOR, "when + kTick - Duration(1)", "when",
           "ReactorTest.timers* SemaphoreTimed.never_early*"),
    Mutant("an I/O leaf does not wait for its handler", ASIO_HPP, "if (!result_) signal_.emit(asio::cancellation_type::terminal);",
           "complete();", "ReactorTest.a_cancelled*"),
    Mutant("a start that throws leaves the leaf parked", ASIO_HPP, "unpark();  // the frame continues with the exception: nothing",
           "// nothing", "ReactorTest.an_asio*"),
    Mutant("an executor leaves its frames behind", ASIO, "  abandon_all();\n", "", "ReactorTest.may_be* SemaphoreThreads.permits_are*"),
    # ---- Semaphore: counting and order ----
    Mutant("newcomers barge", SEMAPHORE_HPP, "while ((word & kSlow) == 0 && word >= 2 * units) {", "while (word >= 2 * units) {",
           "Semaphore.large_head* Semaphore.new_requests*"),
    Mutant("last come, first served", SEMAPHORE, "lines_[kPlainLine].push_back(waiter);", "lines_[kPlainLine].push_front(waiter);",
           "Semaphore.grants_in*"),
    Mutant("last come, first served among the special", SEMAPHORE, "lines_[line].push_back(waiter);", "lines_[line].push_front(waiter);",
           "SemaphorePriority.higher_goes*"),
    Mutant("a request for zero units is accepted", SEMAPHORE, "return units == 0 || (most", "return (most", "Semaphore.zero_units*"),
    Mutant("a request beyond the capacity waits", SEMAPHORE, "if (impossible(waiter.units_)) return State::invalid;", "",
           "Semaphore.more_than*"),
    Mutant("units of a permit may be released by number", SEMAPHORE, "while (detached >= units) {",
           "while (detached >= units || units <= capacity() - available()) {",
           "Semaphore.releasing_* Semaphore.units_of* SemaphoreProperty.agrees*"),
    Mutant("a newcomer that is the new head is not granted", SEMAPHORE,
           "if (!alone && (bypass_max_ != 0 || head() == &waiter)) settle(lock, wakes);", "",
           "SemaphorePriority.a_new* SemaphoreBypass.at_most*"),
    Mutant("joins the line without re-reading the free units", SEMAPHORE, "const bool fits = word >= wanted;", "const bool fits = false;",
           "Semaphore.a_release_between*"),
    Mutant("a fast acquire sees nothing", SEMAPHORE_HPP,
           "if (swap(word, word - 2 * units, std::memory_order_acquire)) return true;",
           "if (swap(word, word - 2 * units, std::memory_order_relaxed)) return true;",
           "SemaphoreThreads.writes_before_a_release_are_visible_after*", "thread"),
    Mutant("a fast release shows nothing", SEMAPHORE_HPP,
           "!swap(word, word + 2 * std::int64_t{units}, std::memory_order_release)",
           "!swap(word, word + 2 * std::int64_t{units}, std::memory_order_relaxed)",
           "SemaphoreThreads.writes_before_a_release_are_visible_after*", "thread"),
    Mutant("a grant resumes on the releasing thread", SEMAPHORE, "wakes.post(waiter.executor(), waiter);",
           "static_cast<Runnable&>(waiter).run();", "SemaphoreThreads.a_grant_from*"),
    Mutant("a plain line is served without counting", SEMAPHORE, "    ++granted;\n    free -= waiter.units_;\n", "    ++granted;\n",
           "Semaphore.available* Explorer.five*"),
    Mutant("a plain line lets the impossible wait", SEMAPHORE, " && waiter.units_ - 1 < capacity();", ";",
           "Semaphore.zero_units* Semaphore.more_than*"),
    Mutant("a plain line that empties forgets the holders", SEMAPHORE, "(tracks_ || !empty ? kSlow : 0)", "(!empty ? kSlow : 0)",
           "PermitHolders.* SemaphoreProperty.agrees*"),
    Mutant("a line with bypass passes for a plain one", SEMAPHORE, "flags_(options.bypass_max != 0 ? kBypassed : 0)", "flags_(0)",
           "SemaphoreBypass.*"),
    Mutant("a closed line passes for a plain one", SEMAPHORE_HPP, "return flags_ == 1U << kPlainLine;",
           "return (flags_ & ~kClosed) == 1U << kPlainLine;",
           "SemaphoreBatch.nothing_is*"),
    Mutant("a settler that released the lock overwrites the fast path", SEMAPHORE, "if ((word & kSlow) == 0) return;", "",
           "SemaphoreThreads.a_semaphore* SemaphoreHistory.no_unit*"),
    # ---- Semaphore: bypass and priority ----
    Mutant("the head's bypass bound is infinite", SEMAPHORE, "if (bypassed_[line_of(head)] >= bypass_max_ || free <= 0) return nullptr;", "",
           "SemaphoreBypass.*"),
    Mutant("bypasses are not counted", SEMAPHORE, "if (first != &waiter) ++bypassed_[line_of(*first)];", "",
           "SemaphoreBypass.* SemaphoreProperty.*"),
    Mutant("the bypass count is not reset for the next head", SEMAPHORE, "if (&lines_[line].front() == &waiter) bypassed_[line] = 0;", "",
           "SemaphoreBypass.the_count*"),
    Mutant("bypass scans the whole line", SEMAPHORE, "if (++looked == kBypassScanMax) return nullptr;", "",
           "SemaphoreBypass.the_search*"),
    Mutant("waiters do not age", SEMAPHORE, "passed_over_[i] += (lower >> i) & 1U;", "passed_over_[i] += 0;",
           "SemaphorePriority.a_lower* SemaphoreProperty.*"),
    Mutant("a bypass resets the age of the first of its line", SEMAPHORE,
           "if (&lines_[line].front() == &waiter) passed_over_[line] = 0;", "passed_over_[line] = 0;",
           "SemaphorePriority.waiters_behind* SemaphoreProperty.*"),
    Mutant("the highest in line does not age", SEMAPHORE, "for (std::uint32_t lines = occupied(); lines != 0;",
           "for (std::uint32_t lines = occupied() & ~(1U << chosen); lines != 0;", "SemaphorePriority.among_lines* SemaphoreProperty.agrees*"),
    Mutant("a priority out of range passes while units are free", SEMAPHORE_HPP,
           "return (in_range || token().cancelled()) && Acquire::await_ready();", "return (void)in_range, Acquire::await_ready();",
           "SemaphorePriority.out_of_range*"),
    # ---- Semaphore: cancel and time ----
    Mutant("a leaving head forgets its followers", SEMAPHORE,
           "if (first || bypass_max_ != 0 || occupied() == 0) settle(lock, wakes);",
           "if (occupied() == 0) settle(lock, wakes);", "SemaphoreCancel.*head* Explorer.five* SemaphoreProperty.agrees*"),
    Mutant("an undelivered grant is lost", SEMAPHORE, "if ((owed & kUndelivered) != 0) take_back();", "", "SemaphoreCancel.a_cancel_between*"),
    Mutant("an undelivered grant is lost with its executor", SEMAPHORE, "if ((owed & kUndelivered) != 0) take_back();", "",
           "SemaphoreThreads.permits* SemaphoreClose.a_destroyed*"),
    Mutant("a decided wait is decided again", SEMAPHORE, "if (waiter.state_ != State::waiting) return false;", "",
           "SemaphoreCancel.a_cancel_between* Explorer.five*"),
    Mutant("a timed wait never ends", SEMAPHORE, "if (deadline_ != TimePoint::max()) executor().arm(*this, deadline_);", "",
           "SemaphoreTimed.a_deadline_that*"),
    Mutant("never is a deadline", SEMAPHORE, "if (deadline_ != TimePoint::max()) executor().arm(", "executor().arm(",
           "SemaphoreTimed.a_wait_without*"),
    Mutant("a labelled wait never ends", SEMAPHORE, "if (!deadline_.is_never()) executor().arm(*this, deadline_.when());", "",
           "SemaphoreTimed.labelled*"),
    # ---- Semaphore: close and destruction ----
    Mutant("new requests ignore close", SEMAPHORE, "if (is_closed()) return State::closed;", "", "SemaphoreClose.new_requests*"),
    Mutant("the last release reopens a closed semaphore", SEMAPHORE, "const bool slow = is_closed() || tracks_ ||",
           "const bool slow = tracks_ ||", "SemaphoreClose.*"),
    Mutant("a grant after the close has begun", SEMAPHORE, "is_closed() ? nullptr : head();", "head();", "SemaphoreBatch.nothing_is*"),
    Mutant("it may be destroyed while a waiter waits", SEMAPHORE, 'STINT_ASSERT(occupied() == 0 && "this semaphore still has waiters");', "",
           "SemaphoreCloseDeathTest.can_not_be_destroyed_with_waiters"),
    Mutant("it may be destroyed while a permit is held", SEMAPHORE,
           'STINT_ASSERT(available() == capacity() && "a permit of this semaphore is still held");', "", "SemaphoreCloseDeathTest.*is_held"),
    Mutant("it may be destroyed while a release is in progress", SEMAPHORE, "while (settling_ != 0) {", "while (false) {",
           "SemaphoreClose.its_destructor*"),
    # ---- Semaphore: batches ----
    Mutant("all are granted under one hold of the lock", SEMAPHORE, "    yield_lock(lock, wakes);\n  }\n}", "    wakes.flush();\n  }\n}",
           "SemaphoreBatch.other_threads* SemaphoreBatch.executors_are*"),
    Mutant("executors are woken under the lock", SEMAPHORE, "  Wakes wakes;\n  Lock lock(mutex_, std::adopt_lock);",
           "  Lock lock(mutex_, std::adopt_lock);\n  Wakes wakes;", "SemaphoreBatch.executors_are*"),
    Mutant("executors are woken under the lock by a resize", SEMAPHORE, "  Wakes wakes;\n  Lock lock(mutex_);\n  resize(",
           "  Lock lock(mutex_);\n  Wakes wakes;\n  resize(", "SemaphoreBatch.executors_are*"),
    Mutant("executors are woken under the lock by a close", SEMAPHORE, "  Wakes wakes;\n  Lock lock(mutex_);\n  flags_ |= kClosed;",
           "  Lock lock(mutex_);\n  Wakes wakes;\n  flags_ |= kClosed;", "SemaphoreBatch.executors_are*"),
    Mutant("between two batches the line is open", SEMAPHORE, "word_.store(2 * free + (slow ? kSlow : 0), std::memory_order_release);",
           "word_.store(2 * free + (slow && waiter == nullptr ? kSlow : 0), std::memory_order_release);", "SemaphoreBatch.*"),
    Mutant("the next waiter to fail is assumed to be still there", SEMAPHORE, "link = waiters.first();  // the line", "// others",
           "SemaphoreBatch.the_next*"),
    Mutant("a batch of failures and one of grants owe too many wake-ups", SEMAPHORE, "granted < kGrantsPerBatch && !wakes.full()",
           "granted < kGrantsPerBatch", "SemaphoreBatch.an_impossible*"),
    # ---- Semaphore: resize ----
    Mutant("resize does not settle", SEMAPHORE, "if (stricter) fail_impossible(lock, wakes);\n  settle(lock, wakes);",
           "if (stricter) fail_impossible(lock, wakes);", "SemaphoreResize.growth* Explorer.five*"),
    Mutant("a debt is forgiven", SEMAPHORE, "  add_units(free_change);\n", "  add_units(std::max(free_change, -available()));\n",
           "SemaphoreResize.a_capacity* SemaphoreResize.shrinking*"),
    Mutant("requests that became impossible keep waiting", SEMAPHORE, "if (stricter) fail_impossible(lock, wakes);", "",
           "SemaphoreResize.requests_that*"),
    Mutant("a pause hides requests that became impossible", SEMAPHORE, " || this->capacity() == 0;  // with", ";  // 0",
           "SemaphoreResize.a_request*"),
    # ---- Permit ----
    Mutant("a part is not taken from the whole", HOLDERS, "  units_ -= units;\n", "", "PermitTest.splits*"),
    Mutant("the listed part is not taken from the whole", HOLDERS, "  holders_[holder - 1].units -= units;\n", "", "PermitTest.splits*"),
    Mutant("a part is younger than the whole", HOLDERS, "holders_[part - 1].since = before.since;", "", "PermitHolders.each*"),
    Mutant("what is merged is not listed", HOLDERS, "holders_[into - 1].units += holders_[from - 1].units;", "", "PermitTest.merges_with_a_permit*"),
    Mutant("a permit merged with itself is lost", HOLDERS, "if (!other || &other == this) return {};", "if (!other) return {};",
           "PermitTest.merging_with*"),
    Mutant("permits of two semaphores are merged", HOLDERS, "if (semaphore_ != other.semaphore_) {", "if (false) {",
           "PermitTest.permits_of*"),
    Mutant("self-assignment releases", SEMAPHORE_HPP, "Permit taken(std::move(other));  // moved",
           "Permit(std::move(*this));\n  Permit taken(std::move(other));  // moved", "PermitTest.self_assignment*"),
    Mutant("what is forgotten comes back", SEMAPHORE, "resize(lock, wakes, after,", "resize(lock, wakes, before,", "PermitTest.forgotten_units*"),
    Mutant("detach reads what is not there", HOLDERS, "if (semaphore_ == nullptr) return 0;", "",
           "PermitTest.nothing_is_detached*"),
    Mutant("a holder stays listed", SEMAPHORE, "  if (holder != 0) remove_holder(holder);\n  if (add_fast", "  if (add_fast",
           "PermitTest.a_released*"),
    Mutant("an adopted permit is not listed", SEMAPHORE, "  if (!tracks_) return {*this, units, 0};\n", "  return {*this, units, 0};\n",
           "PermitTest.adopted_units*"),
    Mutant("labels are not kept", HOLDERS, "label = static_cast<const LabelledAcquire&>(*waiter).label_;", "label = {};",
           "SemaphoreClose.a_holder*"),
]


class Tree:
    """A copy of core/ and its objects, of which ninja keeps track."""

    def __init__(self, build):
        self.core, self.objects = build / "core", build / "objects"
        shutil.rmtree(self.core, ignore_errors=True)
        shutil.copytree(ROOT / "core", self.core)
        self.objects.mkdir(parents=True, exist_ok=True)
        lists = (self.core / "CMakeLists.txt").read_text()
        names = re.findall(r"src/(\w+)\.cpp", lists)
        self.sources = [name for name in names if not name.endswith(("_test", "_bench")) and not name.startswith(NOT_CORE)]
        self.tests = {}  # "Suite.name" → file
        for name in (name for name in names if name.endswith("_test")):
            text = (self.core / f"src/{name}.cpp").read_text()
            for suite, test in re.findall(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", text, re.M):
                self.tests[f"{suite}.{test}"] = name
        definitions = re.search(r"set\(STINT_ASIO_DEFINITIONS\n(.*?)\)", (ROOT / "cmake/Flags.cmake").read_text(), re.S).group(1)
        self.definitions = ["-D" + word for word in re.sub(r"#.*", "", definitions).split()]

    def files_of(self, patterns):
        found = {file for test, file in self.tests.items() if any(fnmatch.fnmatchcase(test, each) for each in patterns)}
        unknown = [each for each in patterns if not fnmatch.filter(self.tests, each)]
        if unknown:
            sys.exit(f"mutants: there is no test {', '.join(unknown)}")
        return sorted(found)

    def build(self, files, sanitizer):
        """Builds the program of these test files; returns its path, or None and the errors of the compiler."""
        flags = ["-std=c++23", "-O1", "-g1", "-fno-omit-frame-pointer", f"-fsanitize={sanitizer}", *self.definitions]
        launcher = "ccache " if shutil.which("ccache") else ""
        compile_it = f"{launcher}clang++-19 {' '.join(flags)} -I{self.core}/include -MMD -MF $out.d -c $in -o $out"
        link = f"clang++-19 -fsanitize={sanitizer} $in -lrapidcheck -lgtest -lgtest_main -lpthread -o $out"
        rules = [f"rule compile\n  command = {compile_it}\n  depfile = $out.d\n  deps = gcc", f"rule link\n  command = {link}"]
        objects = []
        for name in [*self.sources, *files]:
            objects.append(f"{self.objects}/{sanitizer}/{name}.o")
            rules.append(f"build {objects[-1]}: compile {self.core}/src/{name}.cpp")
        program = self.objects / sanitizer / "test"
        rules.append(f"build {program}: link {' '.join(objects)}")
        (self.objects / "build.ninja").write_text("\n".join(rules) + "\n")
        done = subprocess.run(["ninja", "-C", str(self.objects), "--quiet", str(program)], capture_output=True, text=True)
        return (program, "") if done.returncode == 0 else (None, done.stdout)

    def verdict(self, patterns, sanitizer):
        """The failed tests; an empty text if all pass."""
        program, errors = self.build(self.files_of(patterns), sanitizer)
        if program is None:
            raise RuntimeError("does not compile\n" + "\n".join(errors.splitlines()[:20]))
        filters = ":".join(f"{each}:*/{each}/*" for each in patterns)
        environment = dict(os.environ, ASAN_OPTIONS="detect_leaks=0", TSAN_OPTIONS="halt_on_error=1")
        try:
            done = subprocess.run([str(program), "--gtest_filter=" + filters, "--gtest_brief=1"], capture_output=True,
                                  text=True, errors="replace", timeout=SECONDS_MAX, env=environment)
        except subprocess.TimeoutExpired:
            return "hangs"
        failed = sorted({line.split()[3].rstrip(",") for line in done.stdout.splitlines() if line.startswith("[  FAILED  ]") and "." in line})
        return "" if done.returncode == 0 else ", ".join(failed) or f"dies with {done.returncode}"


def main(arguments):
    parser = argparse.ArgumentParser(description="Breaks the code in one place at a time and expects tests to fail.")
    parser.add_argument("build", nargs="?", type=pathlib.Path, metavar="BUILD_DIR")
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--list", action="store_true", help="print the mutants' names")
    options = parser.parse_args(arguments)
    if options.list:
        for mutant in MUTANTS:
            print(mutant.name)
        return 0
    if options.build is None:
        parser.error("BUILD_DIR is missing")
    wanted = [mutant for mutant in MUTANTS if not options.words or any(word in mutant.name for word in options.words)]
    tree = Tree(options.build.resolve())
    for sanitizer in sorted({mutant.sanitizer for mutant in wanted}):
        patterns = sorted({each for mutant in wanted if mutant.sanitizer == sanitizer for each in mutant.tests.split()})
        if red := tree.verdict(patterns, sanitizer):
            sys.exit(f"mutants: tests fail before any mutation: {red}")
    survivors = lost = 0
    for mutant in wanted:
        path = tree.core / mutant.file
        text = path.read_text()
        if text.count(mutant.old) != 1:
            print(f"LOST      {mutant.name}: {mutant.file} has its text {text.count(mutant.old)} times", flush=True)
            lost += 1
            continue
        path.write_text(text.replace(mutant.old, mutant.new))
        try:
            verdict = tree.verdict(mutant.tests.split(), mutant.sanitizer)
        except RuntimeError as error:
            print(f"LOST      {mutant.name}: {error}", flush=True)
            lost += 1
            continue
        finally:
            path.write_text(text)
        survivors += not verdict
        print(f"{'caught   ' if verdict else 'SURVIVES '} {mutant.name}{': ' + verdict if verdict else ''}", flush=True)
    print(f"mutants: {len(wanted) - survivors - lost} caught, {survivors} survive, {lost} lost")
    return survivors + lost != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
