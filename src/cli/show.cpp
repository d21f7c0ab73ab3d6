#include "cli/show.hpp"

#include "agent/quantity.hpp"
#include "cli/fleet_place.hpp"
#include "cli/fleet_text.hpp"
#include "cli/print.hpp"
#include "cli/printable.hpp"
#include "cli/reason_text.hpp"
#include "engine/views.hpp"
#include "wire/fleet.hpp"
#include "wire/run_codec.hpp"

#include <fmt/format.h>

namespace stint::cli {
namespace {

constexpr std::uint32_t kShownPage = 500;
constexpr std::size_t kEventsShown = 200;  // of a longer history, the first and the last half

using engine::RunView;

Task<Result<std::vector<store::Event>>> all_events(fleet::Fleet& fleet, const std::string& id) {
  std::vector<store::Event> events;
  while (true) {
    const std::int64_t after = events.empty() ? 0 : events.back().seq;
    STINT_CO_TRY(std::vector<store::Event> page, co_await fleet.events(id, after, kShownPage));
    const bool last = page.size() < kShownPage;
    std::ranges::move(page, std::back_inserter(events));
    if (last) co_return events;
  }
}

class RunSheet {
 public:
  explicit RunSheet(const FleetAccess& access) : access_(access), now_(access.system.wall_now()) {}

  void put(const RunView& view) {
    const store::Run& run = view.run;
    Line head;
    head.add(printable(run.id), Style::bold).add("  " + printable(run.agent) + "  ");
    head.add(state_text(run), state_style(run.state));
    print(head);
    field("title", view.input.title);
    field("prompt", view.input.prompt);
    for (const auto& [name, values] : view.input.args) {
      field("argument", name + " = " + fmt::format("{}", fmt::join(values, ", ")));
    }
    field("session", run.session);
    field("parent", run.parent);
    field("retry of", view.input.retry_of);
    field("trace", view.input.trace);
    field("key", run.key);
    field("driver", view.input.driver);
    field("model", view.input.model);
    field("budget", budget(view.input.budget));
    put_times(run);
    field("attempts", attempts(run));
    field("worker", view.carried_by.value_or(""));
    field("used", used(view.memo.usage));
    field("error", run.error);
    for (const Denial& denial : view.memo.denials) {
      field("refused", fmt::format("{} {}; to allow it: {}", denial.tool, denial.call, denial.allow));
    }
    if (view.memo.processes_ended > 0) {
      field("ended", fmt::format("{} in {}", some(view.memo.processes_ended, "process", "processes"),
                                 length_text(view.memo.ending)));
    }
  }
  void put(const std::vector<store::Event>& events, WallTime begin) {
    if (events.empty()) return;
    print_out("\n");
    const std::size_t ends = kEventsShown / 2;
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (events.size() > kEventsShown && i == ends) {
        i = events.size() - ends;
        print(Line(fmt::format("            … {} events left out; --json has all …", i - ends), Style::dim));
      }
      const bool is_span = events[i].cause == "span";
      const auto span = is_span ? run_codec_.read_span(events[i].data) : std::nullopt;
      print(event_line(events[i], span ? span_text(*span) : run_codec_.read_note(events[i].data), begin));
    }
  }
  void put(const engine::Timeline& timeline) {
    const std::vector<Line> lines = timeline_lines(timeline);
    if (!lines.empty()) print_out("\n");
    for (const Line& line : lines) print(line);
    for (const engine::AttemptLane& lane : timeline.attempts) {
      const std::string verdict = verdict_text(lane);
      if (verdict.empty()) continue;
      const std::string error = lane.error.empty() ? std::string() : ": " + printable(lane.error);
      field("verdict", fmt::format("attempt {}{} → {}", lane.attempt, error, verdict));
    }
  }
  void put_result(const RunView& view) {
    if (view.memo.text.empty()) return;
    print_out("\n{}\n", clean_text(view.memo.text, access_.environment.colour));
  }
  void put(const std::vector<std::string>& lines) {
    if (!lines.empty()) print_out("\n");
    for (const std::string& line : lines) print_out("{}\n", line);
  }
  [[nodiscard]] WallTime now() const noexcept { return now_; }

 private:
  void print(const Line& line) { print_out("{}\n", line.str(access_.environment.colour)); }
  void field(std::string_view name, const std::string& value) {
    if (value.empty()) return;
    Line line;
    line.add(fmt::format("  {:<9} ", name), Style::dim).add(printable(value));
    print(line);
  }
  void put_times(const store::Run& run) {
    const auto moment = [&](WallTime time) {
      return fmt::format("{} ({})", moment_text(time),
                         time > now_ ? "in " + length_text(time - now_) : age_text(now_ - time) + " ago");
    };
    field("created", moment(run.created_at));
    if (run.not_before) field("begins", moment(*run.not_before));
    if (run.started_at) field("started", moment(*run.started_at));
    if (run.finished_at) {
      const std::string took =
          run.started_at ? ", after " + length_text(*run.finished_at - *run.started_at) : std::string();
      field("finished", moment(*run.finished_at) + took);
    }
    if (run.deadline) field("deadline", moment(*run.deadline));
    if (run.expires_at && !run.finished_at) field("expires", moment(*run.expires_at));
  }
  static std::string budget(const domain::BudgetSpec& budget) {
    std::string text;
    const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
    if (budget.time) add(length_text(*budget.time));
    if (budget.attempts) add(some(static_cast<std::uint64_t>(*budget.attempts), "attempt"));
    if (budget.tokens) add(count_text(*budget.tokens) + " tokens");
    if (budget.cost_micros) add("$" + agent::format_cost(*budget.cost_micros));
    return text;
  }
  static std::string attempts(const store::Run& run) {
    if (run.attempt == 0 && run.lost == 0) return {};
    return std::to_string(run.attempt) + (run.lost > 0 ? fmt::format(", {} lost (process died)", run.lost) : "");
  }
  static std::string used(const Usage& usage) {
    if (usage.tokens() == 0 && usage.cost_micros == 0) return {};
    return fmt::format("{} tokens ({} in, {} from cache, {} out), {}", count_text(usage.tokens()),
                       count_text(usage.fresh_in), count_text(usage.cache_read), count_text(usage.out),
                       cost_text(usage));
  }

  const FleetAccess& access_;
  const WallTime now_;
  const wire::RunCodec run_codec_;
};

Task<Result<int>> show(FleetAccess& access, const std::string& id, bool json) {
  STINT_CO_TRY(const RunView view, co_await find_run(access.fleet, id));
  STINT_CO_TRY(const std::vector<store::Event> events, co_await all_events(access.fleet, view.run.id));
  STINT_CO_TRY(const engine::Timeline timeline, co_await access.fleet.timeline(view.run.id));
  if (json) {
    print_out("{}\n", wire::to_json(view, timeline, events));
    co_return kExitDone;
  }
  RunSheet sheet(access);
  sheet.put(view);
  if (view.run.state == domain::RunState::queued || view.run.state == domain::RunState::parked) {
    STINT_CO_TRY(const engine::WhyView why, co_await access.fleet.why(view.run.id));
    STINT_CO_TRY(const bool carried, co_await access.connection.is_carried());
    std::vector<std::string> lines;
    for (const std::string& each : why_lines(why, sheet.now(), carried)) lines.push_back("  waits: " + each);
    sheet.put(lines);
  }
  sheet.put(timeline);
  sheet.put(events, view.run.created_at);
  sheet.put_result(view);
  sheet.put(next_steps(view.run));
  co_return kExitDone;
}

Task<Result<int>> tell_why(FleetAccess& access, const std::string& id, bool json) {
  STINT_CO_TRY(const RunView view, co_await find_run(access.fleet, id));
  STINT_CO_TRY(const engine::WhyView why, co_await access.fleet.why(view.run.id));
  if (json) {
    print_out("{}\n", wire::to_json(why));
    co_return kExitDone;
  }
  STINT_CO_TRY(const bool carried, co_await access.connection.is_carried());
  print_out("{} {}\n", printable(view.run.id), state_text(view.run));
  for (const std::string& line : why_lines(why, access.system.wall_now(), carried)) print_out("  {}\n", line);
  co_return kExitDone;
}

}  // namespace

ShowCommand::ShowCommand(CLI::App& app)
    : command_(app, "show", "Show a run: submission, timeline, events, usage, result") {
  command_.footer("`stint logs ID` prints the run's output.");
  command_.option("ID", id_, "Give the run's id, or a unique prefix").value("").required();
  command_.flag("--json", json_, "Print one JSON object, with its timeline and all events");
}

bool ShowCommand::chosen() const { return command_.chosen(); }

int ShowCommand::run(const domain::System& system) {
  return run_on_fleet(system, {}, [this](FleetAccess& access) { return show(access, id_, json_); });
}

WhyCommand::WhyCommand(CLI::App& app) : command_(app, "why", "Explain why a run waits") {
  command_.footer(
      "Prints every reason: session, back-off, quota, a limit and its holders, a pause, the place in the queue.");
  command_.option("ID", id_, "Give the run's id, or a unique prefix").value("").required();
  command_.flag("--json", json_, "Print one JSON object");
}

bool WhyCommand::chosen() const { return command_.chosen(); }

int WhyCommand::run(const domain::System& system) {
  return run_on_fleet(system, {}, [this](FleetAccess& access) { return tell_why(access, id_, json_); });
}

}  // namespace stint::cli
