#include "cli/submit.hpp"

#include "agent/quantity.hpp"
#include "cli/exit_status.hpp"
#include "cli/fleet_place.hpp"
#include "cli/fleet_text.hpp"
#include "cli/option_value.hpp"
#include "cli/output_printer.hpp"
#include "cli/print.hpp"
#include "cli/printable.hpp"
#include "cli/submit_each.hpp"
#include "domain/trace.hpp"
#include "engine/views.hpp"
#include "fleet/parent_run.hpp"
#include "fleet/read_project.hpp"
#include "os/process.hpp"
#include "os/terminal.hpp"
#include "stint/offload.hpp"
#include "wire/fleet.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace stint::cli {
namespace {

Result<> check_one_budget(const SubmitOptions& options) {
  if (options.each.empty()) return fail(Errc::invalid, "--one-budget needs --each");
  if (options.budget.time.empty() && options.budget.tokens.empty() && options.budget.cost.empty()) {
    return fail(Errc::invalid, "--one-budget needs --time, --tokens or --cost");
  }
  return {};
}

Result<engine::Submission> read_submission(const SubmitOptions& options) {
  engine::Submission submission;
  if (!options.words.empty()) {
    if (!options.prompt.empty()) {
      return fail(Errc::invalid, "-p takes no agent: leave out '" + options.words.front() + "'");
    }
    submission.agent = options.words.front();
    submission.words.assign(options.words.begin() + 1, options.words.end());
  }
  if (options.words.empty() && options.prompt.empty() && options.each.empty()) {
    return fail(Errc::invalid, "no agent given. Use `stint submit AGENT [value…]` or `stint submit -p TEXT`");
  }
  if (!options.each.empty() && !options.prompt.empty()) {
    return fail(Errc::invalid, "--each without an agent uses each line as a prompt: leave out -p");
  }
  if (options.one_budget) STINT_CHECK(check_one_budget(options));
  submission.prompt = options.prompt;
  submission.session = options.session;
  submission.trace = domain::trace_of(os::environment("TRACEPARENT")).value_or("");
  submission.key = options.key;
  submission.driver = options.driver;
  submission.model = options.model;
  if (!options.priority.empty()) {
    const bool below = options.priority.starts_with('-');
    STINT_TRY(
        const std::int64_t steps,
        of_option("--priority", agent::parse_integer(options.priority.substr(below ? 1 : 0), 0, domain::kPriorityMax)));
    submission.priority = static_cast<int>(below ? -steps : steps);
  }
  if (!options.deadline.empty()) {
    STINT_TRY(submission.deadline, ahead("--deadline", agent::parse_duration(options.deadline)));
  }
  if (!options.delay.empty()) {
    STINT_TRY(submission.delay, of_option("--delay", agent::parse_duration(options.delay)));
  }
  STINT_TRY(submission.budget, options.budget.read());
  return submission;
}

Task<Result<int>> wait_for(FleetAccess& access, const std::string& id, bool json) {
  if (!json) print_error("stint: waiting for {}; Ctrl-C stops waiting, the run goes on\n", printable(id));
  OutputPrinter printer(access.environment.colour, !access.environment.terminal);
  const auto out = [&](const fleet::OutputReader::Piece& piece) {
    if (!json) printer.print(piece);
  };
  STINT_CO_TRY(const engine::RunView end, co_await fleet::follow(access.fleet, access.clock, id, out, print_outage));
  printer.finish();
  if (json) {
    print_out("{}\n", wire::to_json(end));
  } else {
    print_error("stint: {}\n", end_text(end));
  }
  co_return exit_status(end.run);
}

Task<Result<int>> submit_one(FleetAccess& access, const SubmitOptions& options, engine::Submission submission) {
  std::vector<engine::Submission> submissions;
  submissions.push_back(std::move(submission));
  STINT_CO_TRY(const auto answers, co_await access.fleet.submit(std::move(submissions)));
  const Result<engine::Submitted>& answer = answers.front();
  if (!answer) {
    complain(answer.error());
    co_return answer.error() == Errc::invalid ? kExitUsage : exit_status(answer.error());
  }
  if (!answer->created) print_error("stint: the idempotency key names an existing run; nothing was submitted\n");
  if (options.wait) co_return co_await wait_for(access, answer->id, options.json);
  if (options.json) {
    domain::RunState state = domain::RunState::queued;
    if (!answer->created) {
      STINT_CO_TRY(const engine::RunView view, co_await find_run(access.fleet, answer->id));
      state = view.run.state;
    }
    print_out("{}\n", wire::to_json(*answer, state));
  } else {
    print_out("{}\n", printable(answer->id));
  }
  co_return kExitDone;
}

/// Problems of the settings and the agent's file in this checkout: a daemon reports its own only in its log.
std::vector<agent::Problem> blocking_find_problems(const std::string& agent, const Environment& environment) {
  const auto found = project::blocking_read_checkout(environment);
  if (!found) return {};  // the daemon reads its own
  return project::problems_of(agent, agent::blocking_discover(found->project.root), found->warnings);
}

Task<> print_problems_of(const std::string& agent, const Environment& environment) {
  BlockingPool files("files", 1);
  const auto problems = co_await offload(files, [&] { return blocking_find_problems(agent, environment); });
  if (problems) print_problems(*problems, environment);
}

Task<Result<int>> submit(FleetAccess& access, const SubmitOptions& options, engine::Submission submission) {
  STINT_CO_TRY(const bool carried, co_await access.connection.is_carried());
  if (options.wait && !carried) {
    print_error(
        "stint: not submitted: `--wait` needs a running daemon (`stint serve`), and none takes runs here. `stint run` "
        "carries its run itself\n");
    co_return kExitRefused;
  }
  if (!access.connection.elsewhere().empty()) {
    print_error("stint: the daemon of {} carries the run, with that checkout's files and in its folder\n",
                printable(access.connection.elsewhere()));
  }
  if (access.connection.elsewhere().empty()) co_await print_problems_of(submission.agent, access.environment);
  submission.parent = co_await fleet::running_parent(access.fleet);
  submission.parent_waits = options.wait && !submission.parent.empty();
  int exit = kExitDone;
  if (options.each.empty()) {
    STINT_CO_TRY(exit, co_await submit_one(access, options, std::move(submission)));
  } else {
    STINT_CO_TRY(exit, co_await submit_each(access, options, std::move(submission)));
  }
  if (!carried && exit == kExitDone) print_error("stint: the run waits in the store: {}\n", kNoDaemonHere);
  co_return exit;
}

}  // namespace

SubmitCommand::SubmitCommand(CLI::App& app)
    : command_(app, "submit", "Submit a run to the fleet: stint submit review 42, stint submit -p TEXT, --each FILE") {
  command_.footer(
      std::string(
          "Prints the run's id; an accepted run is durable. Values fill the agent's arguments in order; key=value "
          "names one.\n"
          "--each: a line is a JSON object of arguments, or the first value; without AGENT it is a prompt. A bad line\n"
          "is reported and does not stop the others. When the queue is full, the command waits for room.\n"
          "--one-budget: --time (from now), --tokens and --cost cover all lines together; when one of them is used "
          "up,\n"
          "the remaining runs expire.\n") +
      kExitStatuses);
  command_.option("AGENT", options_.words, "Name the agent, then its arguments").value("[VALUE…] [KEY=VALUE…]");
  command_.option("-p,--prompt", options_.prompt, "Run a prompt instead of an agent").value("TEXT");
  command_.option("--session", options_.session, "Run after earlier runs of this session").value("KEY");
  command_.option("--priority", options_.priority, "Overtake runs up to N × 10 minutes older; may be negative")
      .value("N");
  command_.option("--key", options_.key, "Set the idempotency key: the same key names the same run").value("KEY");
  command_.option("--deadline", options_.deadline, "End the run this long after now, its time in the queue included")
      .value("DURATION");
  command_.option("--delay", options_.delay, "Begin no earlier than this long after now").value("DURATION");
  options_.budget.declare(command_);
  command_.driver_option(options_.driver);
  command_.option("--model", options_.model, "Choose the model; passed to the driver").value("NAME");
  command_.option("--each", options_.each, "Submit one run per line; - reads standard input").value("FILE|-");
  command_.flag("--one-budget", options_.one_budget, "Give all runs of --each one budget together");
  command_.flag("--wait", options_.wait, "Print the run's output until it ends, and exit with its status");
  command_.flag("--no-wait", options_.no_wait, "Fail instead of waiting when the queue is full (--each)");
  command_.flag("--json", options_.json, "Print one JSON object per run");
}

bool SubmitCommand::chosen() const { return command_.chosen(); }

int SubmitCommand::run(const domain::System& system) {
  const auto submission = read_submission(options_);
  if (!submission) {
    complain(submission.error());
    return kExitUsage;
  }
  return run_on_fleet(system, {.agents = true, .makes_store = true},
                      [&, this](FleetAccess& access) { return submit(access, options_, *submission); });
}

}  // namespace stint::cli
