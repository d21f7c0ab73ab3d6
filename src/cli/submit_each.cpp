#include "cli/submit_each.hpp"

#include "cli/each_lines.hpp"
#include "cli/exit_status.hpp"
#include "cli/fleet_text.hpp"
#include "cli/print.hpp"
#include "cli/printable.hpp"
#include "domain/budget_core.hpp"
#include "domain/run_id.hpp"
#include "os/fd.hpp"
#include "stint/offload.hpp"
#include "stint/retry_core.hpp"
#include "wire/fleet.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace stint::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBatch = 200;
constexpr std::size_t kBlock = 64 << 10;
constexpr BackoffRange kComeAgain{.base = 1s, .cap = 30s};
constexpr int kReadMaxMs = 200;

/// A file or standard input, in pieces.
class Source {
 public:
  /// Does not wait for the writer of a named pipe: reads do.
  static Result<Source> blocking_open(const std::string& name) {
    if (name == "-") return Source({}, STDIN_FILENO, "standard input");
    os::Fd file(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file) return fail(Errc::invalid, name + ": can't be read; check the name");
    const int number = file.get();
    return Source(std::move(file), number, name);
  }
  /// None: no bytes within `kReadMaxMs`, which bounds how long a cancelled reader waits. Empty: end of file.
  Result<std::optional<std::string>> blocking_read() {
    pollfd look{.fd = number_, .events = POLLIN, .revents = 0};
    if (::poll(&look, 1, kReadMaxMs) <= 0) return std::nullopt;
    std::string bytes(kBlock, '\0');
    const ssize_t size = ::read(number_, bytes.data(), bytes.size());
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) return std::nullopt;
    if (size < 0) return fail(os::system_error(name_ + ": can't be read"));
    bytes.resize(static_cast<std::size_t>(size));
    return bytes;
  }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  Source(os::Fd file, int number, std::string name) : file_(std::move(file)), number_(number), name_(std::move(name)) {}
  os::Fd file_;
  int number_;
  std::string name_;
};

class EachSubmitter {
 public:
  EachSubmitter(FleetAccess& access, const SubmitOptions& options, engine::Submission like, Source source,
                BlockingPool& input)
      : access_(access), options_(options), like_(std::move(like)), source_(std::move(source)), input_(input) {
    if (!options.one_budget) return;
    if (like_.budget.time) ends_ = access_.clock.now() + *like_.budget.time;
    if (domain::shared_part(like_.budget)) like_.one_budget = domain::new_run_id(access_.system);
  }

  Task<Result<int>> run() {
    for (bool end = false; !end && !spent_;) {
      STINT_CO_TRY(const std::optional<std::string> bytes,
                   co_await offload(input_, [this] { return source_.blocking_read(); }));
      if (!bytes) continue;
      end = bytes->empty();
      end ? cutter_.finish() : cutter_.add(*bytes);
      while (!cutter_.empty() && !spent_) STINT_CO_CHECK(co_await submit(cutter_.take(kBatch)));
    }
    if (!options_.json) tell();
    if (options_.wait) STINT_CO_CHECK(co_await wait_for_all());
    co_return exit_;
  }

 private:
  struct Submission {
    std::uint64_t line = 0;
    engine::Submission submission;
  };

  Task<Result<>> submit(std::vector<LineCutter::CutLine> lines) {
    std::vector<Submission> batch;
    for (const LineCutter::CutLine& line : lines) {
      auto submission = read_submission(line, like_);
      if (submission) {
        batch.push_back({line.number, std::move(*submission)});
      } else {
        refuse(line.number, submission.error());
      }
    }
    // Submissions that found no room are retried before later ones: the order is kept.
    for (std::uint32_t refusals = 1; !batch.empty(); ++refusals) {
      STINT_CO_TRY(std::vector<Submission> left, co_await offer(std::move(batch)));
      batch = std::move(left);
      if (batch.empty()) break;
      if (options_.no_wait) {
        for (const Submission& each : batch) refuse(each.line, *full_);
        break;
      }
      if (!std::exchange(told_full_, true)) {
        print_error("stint: {}; waiting for room\n", printable(full_->describe()));
      }
      const Duration wait = backoff(kComeAgain, refusals, access_.system.random());
      co_await sleep_for(full_->retry_after().value_or(wait));
    }
    co_return Result<>();
  }

  /// Returns the submissions that found no room.
  Task<Result<std::vector<Submission>>> offer(std::vector<Submission> batch) {
    std::vector<engine::Submission> submissions;
    for (const Submission& each : batch) {
      submissions.push_back(each.submission);
      if (ends_) submissions.back().deadline = std::max<Duration>(*ends_ - access_.clock.now(), 1ms);
    }
    auto answers = co_await access_.fleet.submit(std::move(submissions));
    if (!answers && answers.error() != Errc::full) co_return fail(std::move(answers).error());
    std::vector<Submission> left;
    if (!answers) {
      full_ = std::move(answers).error();
      co_return batch;
    }
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const Result<engine::Submitted>& answer = (*answers)[i];
      if (answer) {
        accept(*answer);
      } else if (answer.error() == Errc::full) {
        full_ = answer.error();
        left.push_back(std::move(batch[i]));
      } else {
        refuse(batch[i].line, answer.error());
      }
    }
    co_return left;
  }

  void accept(const engine::Submitted& submitted) {
    ++(submitted.created ? accepted_ : known_);
    if (options_.wait) ids_.push_back(submitted.id);
    if (options_.json) {
      if (!options_.wait) print_out("{}\n", wire::to_json(submitted, domain::RunState::queued));
    } else {
      print_out("{}\n", printable(submitted.id));
    }
    flush_out();
  }
  /// What refuses a submission because the budget of all is used up: an engine here, or a daemon. Without keys a daemon
  /// has no other conflict to tell of.
  [[nodiscard]] bool is_spent(const Error& error) const {
    return !like_.one_budget.empty() && (error == Errc::exhausted || (error == Errc::conflict && like_.key.empty()));
  }
  void refuse(std::uint64_t line, const Error& error) {
    ++refused_;
    if (is_spent(error)) {
      note(kExitExpired);
      if (std::exchange(spent_, true)) return;
      print_error("stint: {}:{}: {}; nothing more is submitted\n", printable(source_.name()), line,
                  printable(error.describe()));
      return;
    }
    print_error("stint: {}:{}: {}\n", printable(source_.name()), line, printable(error.describe()));
    note(error == Errc::full || error == Errc::closed ? kExitRefused : kExitFailed);
  }
  void tell() const {
    std::string text = some(accepted_, "run") + " submitted";
    if (known_ > 0) text += fmt::format(", {} existed already (same key)", known_);
    if (refused_ > 0) text += ", " + some(refused_, "line") + " refused";
    print_error("stint: {}\n", text);
  }

  Task<Result<>> wait_for_all() {
    for (; told_ < ids_.size(); ++told_) {
      STINT_CO_TRY(const auto ended, co_await access_.fleet.wait(ids_[told_]));
      const engine::RunView& end = *ended;
      const int exit = exit_status(end.run);
      if (options_.one_budget && exit == kExitExpired) exit_ = exit;  // whatever else went wrong
      note(exit);
      if (exit != kExitDone) ++failed_;
      if (options_.json) {
        print_out("{}\n", wire::to_json(end));
      } else {
        print_error("stint: {}\n", end_text(end));
      }
      flush_out();
    }
    if (!options_.json) print_error("stint: {} of {} succeeded\n", ids_.size() - failed_, ids_.size());
    co_return Result<>();
  }
  void note(int exit) noexcept {
    if (exit_ == kExitDone) exit_ = exit;
  }

  FleetAccess& access_;
  const SubmitOptions& options_;
  engine::Submission like_;
  std::optional<TimePoint> ends_;  // of the shared time budget
  Source source_;
  BlockingPool& input_;  // reads source_
  LineCutter cutter_;
  std::vector<std::string> ids_;
  std::size_t told_ = 0;  // runs of ids_ whose end was printed
  bool spent_ = false;    // the shared budget: a line was refused
  std::optional<Error> full_;
  bool told_full_ = false;
  std::uint64_t accepted_ = 0, known_ = 0, refused_ = 0, failed_ = 0;
  int exit_ = kExitDone;
};

}  // namespace

Task<Result<int>> submit_each(FleetAccess& access, const SubmitOptions& options, engine::Submission like) {
  BlockingPool input("input", 1);  // a slow writer of the pipe must not delay the budget or a signal
  STINT_CO_TRY(Source source, co_await offload(input, [&options] { return Source::blocking_open(options.each); }));
  EachSubmitter submitter(access, options, std::move(like), std::move(source), input);
  co_return co_await submitter.run();
}

}  // namespace stint::cli
