#include "driver/tool_process.hpp"

#include "driver/dialect_support.hpp"
#include "os/process.hpp"
#include "os/spawn.hpp"
#include "os/terminal.hpp"
#include "stint/combinators.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/write.hpp>

#include <csignal>
#include <sys/wait.h>

namespace stint::driver {
namespace {

using namespace std::chrono_literals;

// Bounds on reading pipes after the end, in case a process outside its tree keeps them open.
constexpr Duration kPipesDrainMax = 1s;
constexpr std::size_t kPipesDrainBytesMax = 1U << 20;
constexpr Duration kToolEndExtra = 30s;  // beyond the grace period: then the warden goes on alone

}  // namespace

class ToolProcess::Streams {
 public:
  Streams(asio::io_context& io, os::Fd in, os::Fd out, os::Fd err)
      : input(io, in.release()), output(io, out.release()), errors(io, err.release()) {
    for (auto* const read : {&output, &errors}) read->non_blocking(true);
  }
  Descriptor input, output, errors;
};

ToolProcess::ToolProcess(Wardens& wardens, ToolProcessOptions options,
                         std::function<void(std::string_view)> take_output)
    : wardens_(wardens), options_(std::move(options)), take_output_(std::move(take_output)) {}

ToolProcess::~ToolProcess() = default;

Task<Result<std::unique_ptr<ToolProcessEnd>>> ToolProcess::run() {
  STINT_CO_CHECK(start());
  co_return co_await finally_do(supervise(), end_and_wait(), options_.grace + kToolEndExtra);
}

Result<> ToolProcess::start() {
  if (end_before_start_) return fail(Errc::cancelled, "ended before it was started");
  if (options_.command.empty() || options_.command.front().empty()) return fail(Errc::invalid, "names no program");
  STINT_TRY(os::Pair input, os::pipe_to_write());
  STINT_TRY(os::Pair output, os::pipe_to_read());
  STINT_TRY(os::Pair errors, os::pipe_to_read());
  WardOptions start;
  start.run = options_.run;
  start.command = options_.command;
  std::vector<std::string> changes = options_.environment;
  changes.push_back(std::string(os::kMarkVariable) + "=" +
                    os::mark_beneath(os::environment(os::kMarkVariable), options_.run));
  start.environment = os::environment_with(changes);
  start.directory = options_.directory;
  start.put = {{input.theirs.get(), 0}, {output.theirs.get(), 1}, {errors.theirs.get(), 2}};
  start.own_group = true;
  start.grace = options_.grace;
  STINT_TRY(ward_, Ward::start(wardens_, start));
  was_started_ = true;
  streams_ = std::make_unique<Streams>(wardens_.reactor().io(), std::move(input.ours), std::move(output.ours),
                                       std::move(errors.ours));
  return {};
}

Task<Result<std::unique_ptr<ToolProcessEnd>>> ToolProcess::supervise() {
  auto body = [&](Scope& scope) -> Task<Result<std::unique_ptr<ToolProcessEnd>>> {
    scope.spawn(feed());
    scope.spawn(read(streams_->output, &ToolProcess::take_output));
    scope.spawn(read(streams_->errors, &ToolProcess::take_errors));
    const WardenReport ended = co_await ward_->ended();
    ward_.reset();
    over_ = true;
    (void)co_await drained_.wait(0, kPipesDrainMax);
    scope.cancel();
    if (ended.start_errno != 0) {
      co_return fail(os::system_error("cannot start " + options_.command.front(), ended.start_errno));
    }
    co_return end_of(ended);
  };
  co_return co_await with_scope(std::ref(body));
}

/// After a stop from above: the process must be gone before the stop passes on.
Task<> ToolProcess::end_and_wait() {
  if (ward_ == nullptr) co_return;
  ward_->end(SIGTERM);
  const WardenReport ended = co_await ward_->ended();
  ward_.reset();
  if (options_.on_ended) options_.on_ended(ended.processes);
}

void ToolProcess::end(int signal) {
  if (ward_ != nullptr) {
    ward_->end(signal);
  } else if (!was_started_) {
    end_before_start_ = signal;
  }
}

bool ToolProcess::write(std::string_view text) {
  if (unwritten_.size() + text.size() > kUnwrittenMax) return false;
  unwritten_ += text;
  input_changed_.notify();
  return true;
}

void ToolProcess::close_input() {
  close_input_ = true;
  input_changed_.notify();
}

Task<> ToolProcess::feed() {
  boost::system::error_code ignored;
  while (true) {
    const std::uint64_t seen = input_changed_.count();
    if (!unwritten_.empty()) {
      const std::string now = std::exchange(unwritten_, {});
      const auto [error, written] = co_await asio::async_write(streams_->input, asio::buffer(now), use_task);
      if (error) break;  // the process has closed its stdin
    } else if (close_input_) {
      break;
    } else {
      co_await input_changed_.wait(seen);
    }
  }
  streams_->input.close(ignored);
}

Task<> ToolProcess::read(Descriptor& from, void (ToolProcess::*take)(std::string_view)) {
  std::size_t drained = 0;
  while (drained < kPipesDrainBytesMax) {
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
  if (--open_pipes_ == 0) drained_.notify();
}

void ToolProcess::take_errors(std::string_view bytes) {
  error_tail_ += bytes;
  if (error_tail_.size() > 2 * kErrorTailMax) error_tail_.erase(0, error_tail_.size() - kErrorTailMax);
}

std::unique_ptr<ToolProcessEnd> ToolProcess::end_of(const WardenReport& report) const {
  auto end = std::make_unique<ToolProcessEnd>();
  if (!report.by_stint && WIFEXITED(report.wait_status)) end->exit_status = WEXITSTATUS(report.wait_status);
  if (!report.by_stint && WIFSIGNALED(report.wait_status)) end->signal = WTERMSIG(report.wait_status);
  end->error_tail = ending(error_tail_, kErrorTailMax);
  return end;
}

}  // namespace stint::driver
