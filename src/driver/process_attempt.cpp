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

constexpr Duration kDrainMax = 2s;  // for pipes that somebody outside keeps open
constexpr std::size_t kDrainBytesMax = 1U
                                       << 20;   // of each, if that one also writes: as much as a pipe can be made hold
constexpr std::size_t kErrorLineMax = 8 << 10;  // of a line of stderr: the rest of it is not looked into
constexpr Duration kLifeCheckLeast = 50ms, kLifeCheckMost = 30s;
constexpr int kLifeChecksPerTimeout = 4;
constexpr Duration kBusyPerTick = 200ms;   // a tick of the kernel's is 10 ms
constexpr Duration kFinishOffExtra = 30s;  // beyond all graces: then the warden is left to its work

}  // namespace

class ProcessAttempt::Streams {
 public:
  Streams(asio::io_context& io, os::Fd in, os::Fd out, os::Fd err)
      : input(io, in.release()), output(io, out.release()), errors(io, err.release()) {
    for (auto* const read : {&output, &errors}) read->non_blocking(true);
  }

  Descriptor input, output, errors;
  std::string pending;  // for input, while a write is under way
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
  const Duration most = polite_ + grace_ + kFinishOffExtra;
  STINT_CO_TRY(const Ended ended, co_await finally_do(attend(), finish_off(), most));
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

Task<Result<Ended>> ProcessAttempt::attend() {
  struct Leave {  // also when the body is stopped: end() may be called until the scope is gone
    Scope*& scope;
    ~Leave() { scope = nullptr; }
  };
  note_life();
  auto body = [&](Scope& scope) -> Task<Result<Ended>> {
    scope_ = &scope;
    const Leave leave{scope_};
    scope.spawn(write("", false));
    scope.spawn(read(streams_->output, &ProcessAttempt::take_output));
    scope.spawn(read(streams_->errors, &ProcessAttempt::take_errors));
    scope.spawn(watch_life());
    const Ended ended = co_await ward_->ended();
    left_ = ward_->left();
    ward_.reset();
    over_ = true;
    let_go_.notify();
    // Nothing of it is alive, so the pipes are at their end, unless somebody else has them open.
    (void)co_await drained_.wait(0, kDrainMax);
    scope.cancel();
    co_return ended;
  };
  co_return co_await with_scope(std::ref(body));
}

/// After a stop from above: the process must be gone before that goes on.
Task<> ProcessAttempt::finish_off() {
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
  why_ended_ = WhyEnded{kind, std::move(why), leaving_};
  if (scope_ != nullptr) scope_->spawn(escalate());
}

/// The dialect's own way, then the ladder.
Task<> ProcessAttempt::escalate() {
  const PoliteEnd polite = dialect_.polite_end();
  if (scope_ == nullptr) co_return;  // it has ended by itself meanwhile
  scope_->spawn(write(polite.stdin_bytes, polite.close_stdin));
  if (polite.signal == 0) co_await sleep_for(polite_);
  if (ward_ != nullptr) ward_->end(polite.signal != 0 ? polite.signal : SIGTERM);
}

/// It has said what it had to say: it may go by itself.
Task<> ProcessAttempt::see_off() {
  co_await write("", true);
  co_await sleep_for(grace_);
  if (ward_ != nullptr) ward_->end(SIGTERM);
}

Task<> ProcessAttempt::write(std::string text, bool close) {
  Streams& streams = *streams_;
  streams.close_after = streams.close_after || close;
  streams.pending += text;
  if (std::exchange(streams.writing, true)) co_return;  // who writes comes to it
  while (!streams.pending.empty() && streams.input.is_open()) {
    const std::string now = std::exchange(streams.pending, {});
    const auto [error, written] = co_await asio::async_write(streams.input, asio::buffer(now), use_task);
    if (error) break;  // it does not want to hear more
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
  if (holds_ == 0) let_go_.notify();
}

/// Until it may be read.
Task<> ProcessAttempt::let_go(const Descriptor& from) {
  if (&from != &streams_->output) co_return;
  while (holds_ > 0 && !over_) co_await let_go_.wait(let_go_.count());
}

Task<> ProcessAttempt::read(Descriptor& from, void (ProcessAttempt::*take)(std::string_view)) {
  std::size_t drained = 0;
  while (drained < kDrainBytesMax) {
    co_await let_go(from);
    const auto [failed] = co_await from.async_wait(Descriptor::wait_read, use_task);
    if (failed) break;
    boost::system::error_code error;
    const std::span<char> room = wardens_.read_room();  // everybody's: no await until it is used
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
  heed_dialect();
}

/// The CLI would go on by itself where Stint decides: it is ended, and what it met is the outcome.
void ProcessAttempt::heed_dialect() {
  if (!dialect_.gives_up() || why_ended_ || leaving_ || scope_ == nullptr) return;
  end(OutcomeKind::api_error, "it would ask its provider again by itself");
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
  heed_dialect();
  if (dialect_.result_seen() && scope_ != nullptr && !std::exchange(leaving_, true)) scope_->spawn(see_off());
}

Task<> ProcessAttempt::watch_life() {
  const Duration pause = std::clamp(idle_timeout_ / kLifeChecksPerTimeout, kLifeCheckLeast, kLifeCheckMost);
  // An idle CLI's own timers use some CPU time; a twentieth of one core is work.
  const auto busy = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(pause / kBusyPerTick));
  std::uint64_t ticks = 0;
  while (!why_ended_ && ward_ != nullptr) {
    co_await sleep_for(pause);
    if (ward_ == nullptr || why_ended_) co_return;
    if (holds_ > 0) note_life();
    const std::uint64_t now = ward_->cpu_ticks();
    const std::uint64_t before = std::exchange(ticks, now);
    if (now < before || now - before >= busy) note_life();  // less: one of its processes has ended
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

Result<std::unique_ptr<ProcessReport>> ProcessAttempt::report(const Ended& ended) {
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
    report->outcome.message = "some of its processes do not end, not even by SIGKILL: " + left_;
    return report;
  }
  // An agent that was asked to end may still give a result, of having been interrupted: that is not why it ended.
  const bool done = why_ended_ ? why_ended_->done_before : leaving_;
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
    report->outcome.message = "stint was stopped for longer than the lease, and the process was ended";
  } else if (ended.by_stint) {
    report->outcome.kind = OutcomeKind::in_doubt;
    report->outcome.message = "the warden was killed, and the process was ended: what it had done is unknown";
  }
  return report;
}

}  // namespace stint::driver
