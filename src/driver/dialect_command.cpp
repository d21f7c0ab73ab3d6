// Any command: its output is the answer, its exit status the result.
#include "driver/dialect_support.hpp"
#include "driver/registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

namespace stint::driver {
namespace {

class CommandDialect final : public Dialect {
 public:
  Launch launch(const Invocation& invocation) override {
    Launch launch;
    launch.argv = invocation.command;
    launch.argv.insert(launch.argv.end(), invocation.driver_args.begin(), invocation.driver_args.end());
    launch.stdin_text = invocation.prompt;
    if (!invocation.command.empty()) name_ = one_line(invocation.command.front(), kNameMax);
    return launch;
  }
  bool has_lines() const override { return false; }
  void read(std::string_view piece, std::vector<Progress>& out) override {
    text_ += piece;
    for (; !piece.empty(); piece.remove_prefix(std::min(piece.size(), Progress::kTextMax))) {
      emit(out, ProgressKind::text, piece.substr(0, Progress::kTextMax));
    }
    // Twice the bound, so that cutting costs nothing per piece.
    if (text_.size() > 2 * Outcome::kTextMax) text_ = ending(text_, Outcome::kTextMax);
  }
  bool result_seen() const override { return false; }
  PoliteEnd polite_end() override {
    PoliteEnd end;
    end.close_stdin = true;
    end.signal = SIGTERM;
    return end;
  }
  Outcome finish(const ProcessEnd& end) override {
    Outcome outcome;
    if (end.oom || end.signal || !end.exit_status) {
      outcome = ended_without_result(name_, end);
    } else {
      outcome.exit_status = end.exit_status;
      outcome.kind = *end.exit_status == 0 ? OutcomeKind::succeeded : OutcomeKind::agent_error;
      if (end.killed_by_us && *end.exit_status != 0) outcome.kind = OutcomeKind::cancelled;
      if (*end.exit_status != 0) {
        const std::string tail = one_line(ending(end.stderr_tail, kTailShown), kTailShown);
        outcome.message =
            fmt::format("{} ended with exit status {}{}{}", name_, *end.exit_status, tail.empty() ? "" : ": ", tail);
      }
    }
    while (text_.ends_with('\n') || text_.ends_with('\r')) text_.pop_back();
    outcome.text = ending(text_, Outcome::kTextMax);
    return outcome;
  }

 private:
  static constexpr std::size_t kNameMax = 200;
  static constexpr std::size_t kTailShown = 600;
  std::string name_ = "the command";
  std::string text_;  // only the end, if it is long
};

}  // namespace

std::unique_ptr<Dialect> make_command() { return std::make_unique<CommandDialect>(); }

}  // namespace stint::driver
