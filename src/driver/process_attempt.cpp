#include "driver/process_attempt.hpp"

#include "driver/dialect_support.hpp"
#include "os/process.hpp"
#include "os/spawn.hpp"
#include "os/terminal.hpp"
#include "stint/combinators.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <sys/wait.h>

namespace stint::driver {
namespace {

using namespace std::chrono_literals;

// Bounds on reading pipes after the end, in case a process outside the attempt keeps them open or writes to them.
constexpr Duration kDrainMax = 2s;
constexpr std::size_t kDrainBytesMax = 1U << 20;  // of each pipe: the largest capacity that a pipe can have
constexpr std::size_t kErrorLineMax = 8 << 10;    // of a line of stderr: the rest is not parsed
constexpr Duration kLifeCheckLeast = 50ms, kLifeCheckMost = 30s;
constexpr int kLifeChecksPerTimeout = 4;
constexpr Duration kBusyPerTick = 200ms;  // a tick of the kernel is 10 ms
constexpr Duration kEndExtra = 30s;       // beyond all grace periods: then the warden goes on alone

}  // namespace

class ProcessAttempt::Streams {
 public:
  Streams(asio::io_context& io, os::Fd in, os::Fd out, os::Fd err)
      : input(io, in.release()), output(io, out.release()), errors(io, err.release()) {
    for (auto* const read : {&output, &errors}) read->non_blocking(true);
  }

  Descriptor input, output, errors;
  std::string pending;  // for input, while a write is in flight
  bool writing = false;
  bool close_after = false;  // when everything is written
};

ProcessAttempt::ProcessAttempt(Wardens& wardens, Dialect& dialect, ProcessOptions options, ProcessEvents events)
    : wardens_(wardens),
      dialect_(dialect),
      options_(std::make_unique<ProcessOptions>(std::move(options))),
      idle_timeout_(options_->idle_timeout),
      polite_(options_->polite),
      grace_(options_->grace),
      events_(std::move(events)) {}

ProcessAttempt::~ProcessAttempt() = default;

Task<Result<std::unique_ptr<ProcessReport>>> ProcessAttempt::run(std::unique_ptr<const Invocation> invocation) {
  STINT_CO_CHECK(start(*invocation));
  invocation.reset();
  const Duration most = polite_ + grace_ + kEndExtra;
  STINT_CO_TRY(const WardenReport ended, co_await finally_do(supervise(), end_and_wait(), most));
  co_return report(ended);
}

Result<> ProcessAttempt::start(const Invocation& invocation) {
  Launch launch = dialect_.launch(invocation);
  if (why_ended_) return fail(Errc::cancelled, why_ended_->message);
  if (launch.argv.empty() || launch.argv.front().empty()) return fail(Errc::invalid, "there is no command to start");
  program_ = launch.argv.front();
  STINT_TRY(os::Pair input, os::pipe_to_write());
  STINT_TRY(os::Pair output, os::pipe_to_read());
  STINT_TRY(os::Pair errors, os::pipe_to_read());
  const std::unique_ptr<ProcessOptions> options = std::move(options_);
  WardOptions start;
  start.run = std::move(options->run);
  start.cgroup = std::move(options->cgroup);
  start.memory_bytes_max = options->memory_bytes_max;
  start.command = std::move(launch.argv);
  std::vector<std::string> changes = std::move(options->environment);
  for (const auto& [name, value] : launch.env) changes.push_back(value ? name + "=" + *value : name);
  changes.push_back(std::string(os::kMarkVariable) + "=" +
                    os::mark_beneath(os::environment(os::kMarkVariable), start.run));
  start.environment = os::environment_with(changes);
  start.directory = std::move(options->directory);
  start.slots = std::move(options->slots);
  start.put = {{input.theirs.get(), 0}, {output.theirs.get(), 1}, {errors.theirs.get(), 2}};
  start.own_group = true;
  start.lease = options->lease;
  start.grace = options->grace;
  start.killed_max = options->killed_max;
  STINT_TRY(ward_, Ward::start(wardens_, start));
  streams_ = std::make_unique<Streams>(wardens_.reactor().io(), std::move(input.ours), std::move(output.ours),
                                       std::move(errors.ours));
  streams_->pending = std::move(launch.stdin_text);
  streams_->close_after = launch.close_stdin;
  return {};
}

Task<Result<WardenReport>> ProcessAttempt::supervise() {
  struct Leave {  // also when the body is stopped: end() may be called until the scope is gone
    Scope*& scope;
    ~Leave() { scope = nullptr; }
  };
  note_life();
  auto body = [&](Scope& scope) -> Task<Result<WardenReport>> {
    scope_ = &scope;
    const Leave leave{scope_};
    scope.spawn(write("", false));
    scope.spawn(read(streams_->output, &ProcessAttempt::take_output));
    scope.spawn(read(streams_->errors, &ProcessAttempt::take_errors));
    scope.spawn(watch_life());
    const WardenReport ended = co_await ward_->ended();
    left_ = ward_->left();
    ward_.reset();
    over_ = true;
    unheld_.notify();
    // No process of it is alive, so the pipes are at their end, unless another process has them open.
    (void)co_await drained_.wait(0, kDrainMax);
    scope.cancel();
    co_return ended;
  };
  co_return co_await with_scope(std::ref(body));
}

/// After a stop from above: the process must be gone before the stop passes on.
Task<> ProcessAttempt::end_and_wait() {
  if (ward_ == nullptr) co_return;
  ward_->end(SIGTERM);
  (void)co_await ward_->ended();
  ward_.reset();
}

void ProcessAttempt::end(OutcomeKind kind, std::string why) {
  if (why_ended_) {
    if (why_ended_->gave_up) *why_ended_ = WhyEnded{kind, std::move(why)};
    if (ward_ != nullptr) ward_->end(SIGKILL);
    return;
  }
  why_ended_ = WhyEnded{kind, std::move(why), result_seen_};
  if (scope_ != nullptr) scope_->spawn(escalate());
}

/// Ends the process with the dialect's polite end first, then with the ladder.
Task<> ProcessAttempt::escalate() {
  const PoliteEnd polite = dialect_.polite_end();
  if (scope_ == nullptr) co_return;  // the process has ended by itself
  scope_->spawn(write(polite.stdin_bytes, polite.close_stdin));
  if (polite.signal == 0) co_await sleep_for(polite_);
  if (ward_ != nullptr) ward_->end(polite.signal != 0 ? polite.signal : SIGTERM);
}

/// After the result: gives the process its grace period to exit by itself.
Task<> ProcessAttempt::await_exit() {
  co_await write("", true);
  co_await sleep_for(grace_);
  if (ward_ != nullptr) ward_->end(SIGTERM);
}

Task<> ProcessAttempt::write(std::string text, bool close) {
  Streams& streams = *streams_;
  streams.close_after = streams.close_after || close;
  streams.pending += text;
  if (std::exchange(streams.writing, true)) co_return;  // the write in flight continues with it
  while (!streams.pending.empty() && streams.input.is_open()) {
    const std::string now = std::exchange(streams.pending, {});
    const auto [error, written] = co_await asio::async_write(streams.input, asio::buffer(now), use_task);
    if (error) break;  // the process has closed its stdin
  }
  streams.writing = false;
  boost::system::error_code ignored;
  if (streams.close_after) streams.input.close(ignored);
}

std::optional<domain::WaitReason> ProcessAttempt::waits_for() const {
  using domain::WaitCause;
  if (ward_ == nullptr) return std::nullopt;
  if (why_ended_) {
    return domain::WaitReason{
        .cause = WaitCause::ending, .beyond = ward_->beyond_reach(), .detail = why_ended_->message};
  }
  std::string network = dialect_.waits_for();
  if (network.empty()) return std::nullopt;
  return domain::WaitReason{.cause = WaitCause::network, .detail = std::move(network)};
}

void ProcessAttempt::hold(bool held) noexcept {
  holds_ += held ? 1 : -1;
  if (holds_ == 0) unheld_.notify();
}

/// Waits until `from` may be read: stdout is not read while it is held.
Task<> ProcessAttempt::wait_unheld(const Descriptor& from) {
  if (&from != &streams_->output) co_return;
  while (holds_ > 0 && !over_) co_await unheld_.wait(unheld_.count());
}

Task<> ProcessAttempt::read(Descriptor& from, void (ProcessAttempt::*take)(std::string_view)) {
  std::size_t drained = 0;
  while (drained < kDrainBytesMax) {
    co_await wait_unheld(from);
    const auto [failed] = co_await from.async_wait(Descriptor::wait_read, use_task);
    if (failed) break;
    boost::system::error_code error;
    const std::span<char> room = wardens_.read_room();  // shared: must be used before the next await
    const std::size_t got = from.read_some(asio::buffer(room.data(), room.size()), error);
    if (error == asio::error::would_block) continue;
    if (error) break;
    if (over_) drained += got;
    (this->*take)(std::string_view(room.data(), got));
  }
  (this->*take)({});
  reader_ended();
}

void ProcessAttempt::reader_ended() noexcept {
  if (--open_pipes_ == 0) drained_.notify();
}

void ProcessAttempt::take_errors(std::string_view bytes) {
  if (bytes.empty()) return;
  note_life();
  if (events_.raw_errors) events_.raw_errors(bytes);
  error_tail_ += bytes;
  if (error_tail_.size() > 2 * ProcessEnd::kTailMax) error_tail_.erase(0, error_tail_.size() - ProcessEnd::kTailMax);
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    error_line_ += bytes.substr(0, std::min(end, kErrorLineMax - error_line_.size()));
    if (end == std::string_view::npos) return;
    bytes.remove_prefix(end + 1);
    take_error_line(std::exchange(error_line_, {}));
  }
}

void ProcessAttempt::take_error_line(std::string_view line) {
  dialect_.read_error(line);
  end_if_dialect_gives_up();
}

/// Ends a CLI that would retry by itself: Stint decides about retries, and the CLI's error is the outcome.
void ProcessAttempt::end_if_dialect_gives_up() {
  if (!dialect_.gives_up() || why_ended_ || result_seen_ || scope_ == nullptr) return;
  end(OutcomeKind::api_error, "the CLI began to retry by itself");
  why_ended_->done_before = true;
  why_ended_->gave_up = true;
}

void ProcessAttempt::take_output(std::string_view bytes) {
  if (bytes.empty()) {
    if (!line_.empty() && !skipping_) take_line(std::exchange(line_, {}));
    return;
  }
  note_life();
  output_seen_ = true;
  if (events_.raw_output) events_.raw_output(bytes);
  if (!dialect_.has_lines()) return take(bytes);
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
    if (!skipping_) line_ += part;
    skipping_ = skipping_ || line_.size() > Dialect::kLineMax;
    if (skipping_) line_.clear();
    if (end == std::string_view::npos) return;
    if (!std::exchange(skipping_, false)) take_line(line_);
    line_.clear();
  }
}

void ProcessAttempt::take_line(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  take(line);
}

void ProcessAttempt::take(std::string_view words) {
  progress_.clear();
  dialect_.read(words, progress_);
  for (const Progress& progress : progress_) {
    tools_used_ = tools_used_ || progress.kind == ProgressKind::tool_start;
    if (events_.progress) events_.progress(progress);
  }
  end_if_dialect_gives_up();
  if (dialect_.result_seen() && scope_ != nullptr && !std::exchange(result_seen_, true)) scope_->spawn(await_exit());
}

Task<> ProcessAttempt::watch_life() {
  const Duration pause = std::clamp(idle_timeout_ / kLifeChecksPerTimeout, kLifeCheckLeast, kLifeCheckMost);
  // The timers of an idle CLI use some CPU time; a twentieth of one core counts as work.
  const auto busy = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(pause / kBusyPerTick));
  std::uint64_t ticks = 0;
  while (!why_ended_ && ward_ != nullptr) {
    co_await sleep_for(pause);
    if (ward_ == nullptr || why_ended_) co_return;
    if (holds_ > 0) note_life();
    const std::uint64_t now = ward_->cpu_ticks();
    const std::uint64_t before = std::exchange(ticks, now);
    if (now < before || now - before >= busy) note_life();  // fewer ticks than before: one of its processes has ended
    if (wardens_.reactor().now() - last_life_ < idle_timeout_) continue;
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(idle_timeout_).count();
    const bool brief = ms < 1000;
    const std::string network = dialect_.waits_for();
    end(network.empty() ? OutcomeKind::stalled : OutcomeKind::api_error,
        "no output and no work for " + std::to_string(brief ? ms : ms / 1000) + (brief ? " ms" : " s") +
            (network.empty() ? "" : "; " + network_wait(network)));
    why_ended_->unreachable = !network.empty();
  }
}

Result<std::unique_ptr<ProcessReport>> ProcessAttempt::report(const WardenReport& ended) {
  if (ended.start_errno != 0) {
    Error error = os::system_error("cannot start " + program_, ended.start_errno);
    if (ended.start_errno != ENOENT) return fail(std::move(error));
    return fail(error.code(), std::string(error.what()) + ". Is it installed? `stint doctor` looks for the agent CLIs");
  }
  ProcessEnd end;
  if (!ended.by_stint && WIFEXITED(ended.wait_status)) end.exit_status = WEXITSTATUS(ended.wait_status);
  if (!ended.by_stint && WIFSIGNALED(ended.wait_status)) end.signal = WTERMSIG(ended.wait_status);
  end.killed_by_us = why_ended_.has_value() || ended.by_lease;
  end.oom = ended.out_of_memory;
  end.stderr_tail = error_tail_;
  auto report = std::make_unique<ProcessReport>();
  report->outcome = dialect_.finish(end);
  report->processes_ended = ended.processes;
  report->ending = std::chrono::microseconds(ended.ending_us);
  report->tools_used = tools_used_;
  report->output_seen = output_seen_;
  report->conversation_unknown = dialect_.is_conversation_unknown();
  report->left = left_;
  if (!left_.empty()) {
    report->outcome.kind = OutcomeKind::in_doubt;
    report->outcome.message = "some of its processes did not end, even after SIGKILL: " + left_;
    return report;
  }
  // An agent that is being ended may still report a result such as "interrupted": that is not the reason of its end.
  const bool done = why_ended_ ? why_ended_->done_before : result_seen_;
  if (done || report->outcome.kind == OutcomeKind::succeeded) return report;
  if (why_ended_) {
    const std::string network = dialect_.waits_for();
    report->outcome.kind = why_ended_->kind;
    report->outcome.unreachable = why_ended_->unreachable;
    report->outcome.message = why_ended_->message;
    if (why_ended_->kind == OutcomeKind::over_budget && !network.empty()) {
      report->outcome.message += "; at the end " + network_wait(network);
    }
  } else if (ended.by_lease) {
    report->outcome.kind = OutcomeKind::crashed;
    report->outcome.message = "stint was stopped for longer than the lease, so the warden ended the process";
  } else if (ended.by_stint) {
    report->outcome.kind = OutcomeKind::in_doubt;
    report->outcome.message = "the warden was killed, so stint ended the process: its effects are unknown";
  }
  return report;
}

}  // namespace stint::driver
