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
  if (options.each.empty()) return fail(Errc::invalid, "--one-budget is for the runs of --each");
  if (options.time.empty() && options.tokens.empty() && options.cost.empty()) {
    return fail(Errc::invalid, "--one-budget of what? Say --time, --tokens or --cost");
  }
  return {};
}

Result<engine::Submission> read_submission(const SubmitOptions& options) {
  engine::Submission submission;
  if (!options.words.empty()) {
    if (!options.prompt.empty()) {
      return fail(Errc::invalid, "-p needs no agent: leave out '" + options.words.front() + "'");
    }
    submission.agent = options.words.front();
    submission.words.assign(options.words.begin() + 1, options.words.end());
  }
  if (options.words.empty() && options.prompt.empty() && options.each.empty()) {
    return fail(Errc::invalid, "which agent? stint submit AGENT [value…], or stint submit -p TEXT");
  }
  if (!options.each.empty() && !options.prompt.empty()) {
    return fail(Errc::invalid, "--each without an agent takes each line for a prompt: leave out -p");
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
  if (!options.time.empty()) {
    STINT_TRY(submission.budget.time, of_option("--time", agent::parse_duration(options.time)));
  }
  if (!options.tokens.empty()) {
    STINT_TRY(submission.budget.tokens, of_option("--tokens", agent::parse_count(options.tokens)));
  }
  if (!options.cost.empty()) {
    STINT_TRY(submission.budget.cost_micros, of_option("--cost", agent::parse_cost(options.cost)));
  }
  submission.budget.attempts = options.attempts;
  return submission;
}

Task<Result<int>> wait_for(FleetAccess& access, const std::string& id, bool json) {
  if (!json) print_error("stint: {}; Ctrl-C leaves it to the fleet\n", printable(id));
  OutputPrinter printer(access.environment.colour, !access.environment.terminal);
  const auto out = [&](const fleet::OutputReader::Piece& piece) {
    if (!json) printer.print(piece);
  };
  STINT_CO_TRY(const engine::RunView end, co_await fleet::follow(access.fleet, access.clock, id, out, say_outage));
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
  if (!answer->created) print_error("stint: it was there already, by its key\n");
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

/// What is wrong with the settings and the agent's file here: a daemon says it in its log only.
std::vector<agent::Problem> blocking_find_problems(const std::string& agent, const Environment& environment) {
  const auto found = project::blocking_read_checkout(environment);
  if (!found) return {};  // the daemon has its own
  return project::problems_of(agent, agent::blocking_discover(found->project.root), found->warnings);
}

Task<> print_problems_of(const std::string& agent, const Environment& environment) {
  BlockingPool files("files", 1);
  const auto problems = co_await offload(files, [&] { return blocking_find_problems(agent, environment); });
  if (problems) print_problems(*problems, environment);
}

Task<Result<int>> submit(FleetAccess& access, const SubmitOptions& options, engine::Submission submission) {
  STINT_CO_TRY(const bool carried, co_await is_carried(access));
  if (options.wait && !carried) {
    print_error(
        "stint: not submitted: `--wait` needs a running daemon (`stint serve`), and none takes runs here. `stint run` "
        "carries its run itself\n");
    co_return kExitRefused;
  }
  if (!access.elsewhere.empty()) {
    print_error("stint: the daemon of {} carries it, there: by that checkout's files, in its folder\n",
                printable(access.elsewhere));
  }
  if (access.elsewhere.empty()) co_await print_problems_of(submission.agent, access.environment);
  submission.parent = co_await running_parent(access.fleet);
  submission.parent_waits = options.wait && !submission.parent.empty();
  int exit = kExitDone;
  if (options.each.empty()) {
    STINT_CO_TRY(exit, co_await submit_one(access, options, std::move(submission)));
  } else {
    STINT_CO_TRY(exit, co_await submit_each(access, options, std::move(submission)));
  }
  if (!carried && exit == kExitDone) print_error("stint: it waits in the store: {}\n", kNoDaemonHere);
  co_return exit;
}

}  // namespace

SubmitCommand::SubmitCommand(CLI::App& app)
    : command_(app, "submit", "Give the fleet a run: stint submit review 42, stint submit -p TEXT, --each FILE") {
  command_.footer(
      std::string(
          "Prints the id. Values fill the agent's arguments in order; key=value names one. What was accepted is "
          "durable.\n"
          "--each: a line is a JSON object of arguments, or the first value; without AGENT it is a prompt. A bad "
          "line is\nnamed and does not stop the others. A full queue is waited for. --one-budget: --time (from now), "
          "--tokens and\n--cost are for all lines together; when they are used up, what is left expires.\n") +
      kExitStatuses);
  command_.option("AGENT", options_.words, "The agent, then its arguments").value("[VALUE…] [KEY=VALUE…]");
  command_.option("-p,--prompt", options_.prompt, "A prompt instead of an agent").value("TEXT");
  command_.option("--session", options_.session, "Runs of one session go one after the other").value("KEY");
  command_.option("--priority", options_.priority, "A step goes before what is 10 minutes older").value("N");
  command_.option("--key", options_.key, "Of idempotency: the same key again is the same run").value("KEY");
  command_.option("--deadline", options_.deadline, "From now, with the wait in the queue").value("DURATION");
  command_.option("--delay", options_.delay, "Begin not before").value("DURATION");
  command_.option("--time", options_.time, "Budget: from the first start, over waits and attempts").value("DURATION");
  command_.option("--attempts", options_.attempts, "Budget").whole(1, 100);
  command_.option("--tokens", options_.tokens, "Budget: 400k").value("COUNT");
  command_.option("--cost", options_.cost, "Budget: 2.50").value("MONEY");
  command_.option("--driver", options_.driver, "claude, codex, gemini or command; default: the agent's")
      .one_of({"claude", "codex", "gemini", "command"});
  command_.option("--model", options_.model, "Passed to the driver").value("NAME");
  command_.option("--each", options_.each, "A run for each line; - is standard input").value("FILE|-");
  command_.flag("--one-budget", options_.one_budget, "With --each: one budget for all of them");
  command_.flag("--wait", options_.wait, "Until it has ended; its exit status is that of the run");
  command_.flag("--no-wait", options_.no_wait, "With --each: do not wait for room in a full queue");
  command_.flag("--json", options_.json, "One JSON object per run");
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
