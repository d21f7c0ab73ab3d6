#include "wire/reports.hpp"

#include "wire/agent_values.hpp"
#include "wire/time_text.hpp"
#include "wire/values.hpp"

#include <algorithm>
#include <array>
#include <ranges>

namespace stint::wire {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct Gauge {
  std::string_view name;
  std::int64_t store::Sample::* member;
};
constexpr std::array kGauges = {Gauge{"startable", &store::Sample::startable}, Gauge{"held", &store::Sample::held},
                                Gauge{"running", &store::Sample::running}, Gauge{"busy", &store::Sample::busy},
                                Gauge{"workers", &store::Sample::workers}};
struct Counter {
  std::string_view name;
  std::int64_t store::SeriesCounts::* member;
};
constexpr std::array kCounters = {
    Counter{"started", &store::SeriesCounts::started}, Counter{"succeeded", &store::SeriesCounts::succeeded},
    Counter{"failed", &store::SeriesCounts::failed},   Counter{"cancelled", &store::SeriesCounts::cancelled},
    Counter{"expired", &store::SeriesCounts::expired}, Counter{"in_doubt", &store::SeriesCounts::in_doubt},
    Counter{"tokens", &store::SeriesCounts::tokens},   Counter{"cost_micros", &store::SeriesCounts::cost_micros}};

/// The places of the grid: `count` of them, the last at or before now.
struct Grid {
  WallTime first{};
  milliseconds step{};
  std::size_t count = 0;

  [[nodiscard]] WallTime at(std::size_t place) const { return first + step * place; }
};

/// Points are equally far apart but need not lie on full steps of the wall clock, which may have been set.
Grid grid_of(const store::Series& series, Duration span) {
  Grid grid;
  grid.step = std::chrono::duration_cast<milliseconds>(series.step);
  grid.count = static_cast<std::size_t>(std::chrono::duration_cast<milliseconds>(span) / grid.step);
  const milliseconds past = series.points.empty() ? series.as_of.time_since_epoch() % grid.step
                                                  : (series.as_of - series.points.back().at) % grid.step;
  grid.first = series.as_of - past - grid.step * (grid.count - 1);
  return grid;
}

/// One list per name: null where the grid has no point, or its value is unknown.
template <class Read>
json::array list_of(const store::Series& series, const Grid& grid, Read read) {
  json::array list;
  list.reserve(grid.count);
  auto point = series.points.begin();
  for (std::size_t place = 0; place < grid.count; ++place) {
    while (point != series.points.end() && point->at < grid.at(place)) ++point;
    const bool there = point != series.points.end() && point->at == grid.at(place);
    list.push_back(there ? read(*point) : json::value(nullptr));
  }
  return list;
}

json::object mark_value(const store::Event& mark) {
  json::object object{{"at", to_ms(mark.at)}, {"cause", text_value(mark.cause)}};
  if (mark.node) object["node"] = mark.node->value;
  if (mark.data.empty()) return object;
  boost::system::error_code error;
  json::value data = json::parse(mark.data, error);
  if (!error && data.is_object()) object["data"] = std::move(data);
  return object;
}

json::value ms_or_null(const std::optional<Duration>& length) {
  return length ? json::value(to_ms(*length)) : json::value(nullptr);
}

WallTime time_of(const store::Spent& hour) {
  const auto day = parse_time(hour.day + "T00:00:00Z");
  return day.value_or(WallTime()) + hours(hour.hour);
}

/// Every hour of the last day: what was not spent is zero.
json::array hours_value(const engine::AgentDetail& agent) {
  json::array list;
  const WallTime last = std::chrono::floor<hours>(agent.as_of);
  for (WallTime at = last - hours(23); at <= last; at += hours(1)) {
    const auto found = std::ranges::find(agent.day.hours, at, time_of);
    const store::Spent sum = found == agent.day.hours.end() ? store::Spent() : *found;
    list.push_back(
        {{"at", to_ms(at)}, {"attempts", sum.runs}, {"tokens", sum.tokens}, {"cost_micros", sum.cost_micros}});
  }
  return list;
}

json::object day_value(const engine::AgentDetail& agent) {
  const store::EndedStats& ended = agent.day.ended;
  json::array failures;
  for (const engine::RunView& view : agent.day.failures) {
    failures.push_back({{"id", text_value(view.run.id)},
                        {"state", to_string(view.run.state)},
                        {"title", text_value(view.input.title)},
                        {"error", text_value(view.run.error)},
                        {"finished_at", maybe_time(view.run.finished_at)}});
  }
  return {{"succeeded", ended.succeeded},
          {"failed", ended.failed},
          {"cancelled", ended.cancelled},
          {"expired", ended.expired},
          {"complete", ended.complete},
          {"worked_p50_ms", ms_or_null(ended.worked_p50)},
          {"worked_p90_ms", ms_or_null(ended.worked_p90)},
          {"waited_p50_ms", ms_or_null(ended.waited_p50)},
          {"waited_p90_ms", ms_or_null(ended.waited_p90)},
          {"attempts", agent.day.used.attempts},
          {"tokens", agent.day.used.tokens},
          {"cost_micros", agent.day.used.cost_micros},
          {"hours", hours_value(agent)},
          {"failures", std::move(failures)}};
}

Error not_a_report() { return {Errc::failed, "this is not an answer of a daemon of this version"}; }

const json::object* object_in(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  return value == nullptr ? nullptr : value->if_object();
}

const json::array* array_at(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  return value == nullptr ? nullptr : value->if_array();
}

std::optional<Duration> length_at(const json::object& object, std::string_view name) {
  const auto ms = maybe_number_at(object, name);
  return ms ? std::optional<Duration>(milliseconds(*ms)) : std::nullopt;
}

engine::AgentDay read_day(const json::object& object) {
  engine::AgentDay day;
  const auto count = [&](std::string_view name) { return static_cast<std::uint64_t>(number_at(object, name)); };
  day.ended = {.succeeded = count("succeeded"),
               .failed = count("failed"),
               .cancelled = count("cancelled"),
               .expired = count("expired"),
               .worked_p50 = length_at(object, "worked_p50_ms"),
               .worked_p90 = length_at(object, "worked_p90_ms"),
               .waited_p50 = length_at(object, "waited_p50_ms"),
               .waited_p90 = length_at(object, "waited_p90_ms"),
               .complete = flag_at(object, "complete")};
  day.used = {.tokens = number_at(object, "tokens"),
              .cost_micros = number_at(object, "cost_micros"),
              .attempts = number_at(object, "attempts")};
  if (const json::array* const list = array_at(object, "hours")) {
    for (const json::value& each : *list) {
      const json::object* const hour = each.if_object();
      if (hour == nullptr) continue;
      const WallTime at = time_at(*hour, "at").value_or(WallTime());
      store::Spent& sum = day.hours.emplace_back();
      sum.day = time_text(at).substr(0, std::string_view("2026-11-15").size());
      sum.hour = static_cast<std::uint32_t>((at - std::chrono::floor<std::chrono::days>(at)) / hours(1));
      sum.runs = number_at(*hour, "attempts");
      sum.tokens = number_at(*hour, "tokens");
      sum.cost_micros = number_at(*hour, "cost_micros");
    }
  }
  if (const json::array* const list = array_at(object, "failures")) {
    for (const json::value& each : *list) {
      const json::object* const failure = each.if_object();
      if (failure == nullptr) continue;
      engine::RunView& view = day.failures.emplace_back();
      view.run.id = text_at(*failure, "id");
      view.run.state = domain::parse_run_state(text_at(*failure, "state")).value_or(domain::RunState::failed);
      view.run.error = text_at(*failure, "error");
      view.run.finished_at = time_at(*failure, "finished_at");
      view.input.title = text_at(*failure, "title");
    }
  }
  return day;
}

}  // namespace

std::string to_json(const store::Series& series, Duration span) {
  const Grid grid = grid_of(series, span);
  json::object lists;
  for (const Gauge& gauge : kGauges) {
    lists[gauge.name] =
        list_of(series, grid, [&](const store::SeriesPoint& point) { return json::value(point.most.*gauge.member); });
  }
  for (const Counter& counter : kCounters) {
    lists[counter.name] = list_of(series, grid, [&](const store::SeriesPoint& point) {
      return point.counts ? json::value((*point.counts).*counter.member) : json::value(nullptr);
    });
  }
  json::array marks;
  for (const store::Event& mark : series.marks) marks.push_back(mark_value(mark));
  return json::serialize(json::object{
      {"as_of", to_ms(series.as_of)},
      {"step_s", std::chrono::duration_cast<seconds>(series.step).count()},
      {"first_at", to_ms(grid.first)},
      {"count", grid.count},
      {"samples", list_of(series, grid, [](const store::SeriesPoint& point) { return json::value(point.samples); })},
      {"series", std::move(lists)},
      {"marks", std::move(marks)}});
}

std::string to_json(const engine::AgentDetail& agent) {
  json::object object{{"name", text_value(agent.name)}, {"as_of", to_ms(agent.as_of)}};
  object["definition"] = agent.definition ? json::value(agent_value(*agent.definition)) : json::value(nullptr);
  if (!agent.refused.empty()) object["refused"] = text_value(agent.refused);
  object["problems"] = problems_value(agent.problems);
  object["day"] = day_value(agent);
  return json::serialize(object);
}

std::string agent_to_json(std::span<const domain::Agent> agents, std::span<const agent::Problem> problems,
                          const engine::AgentDetail& statistics) {
  json::array list;
  for (const domain::Agent& agent : agents) list.push_back(agent_value(agent));
  return json::serialize(json::object{
      {"agents", std::move(list)}, {"problems", problems_value(problems)}, {"day", day_value(statistics)}});
}

std::string to_json(const engine::CostReport& report) {
  json::array lines;
  for (const engine::CostLine& line : report.lines) {
    json::object object{{"attempts", line.attempts}, {"tokens", line.tokens}, {"cost_micros", line.cost_micros}};
    if (!line.day.empty()) object["day"] = text_value(line.day);
    if (!line.agent.empty()) object["agent"] = text_value(line.agent);
    if (!line.run.empty()) object["run"] = text_value(line.run);
    if (!line.title.empty()) object["title"] = text_value(line.title);
    lines.push_back(std::move(object));
  }
  return json::serialize(json::object{{"since_at", to_ms(report.since)},
                                      {"as_of", to_ms(report.as_of)},
                                      {"lines", std::move(lines)},
                                      {"total",
                                       {{"attempts", report.total.attempts},
                                        {"tokens", report.total.tokens},
                                        {"cost_micros", report.total.cost_micros}}},
                                      {"complete", report.complete}});
}

Result<engine::CostQuery> read_cost_by(std::string_view by) {
  engine::CostQuery query;
  if (by.empty()) return fail(Errc::invalid, "'by' is empty: write some of agent, day and run, separated by commas");
  for (const auto part : std::views::split(by, ',')) {
    const std::string_view word(part.begin(), part.end());
    if (word == "agent") query.agent = true;
    if (word == "day") query.day = true;
    if (word == "run") query.run = true;
    if (word == "agent" || word == "day" || word == "run") continue;
    if (word == "model") {
      return fail(Errc::invalid, "'by' can't be 'model': the store does not keep yet which model used what");
    }
    return fail(Errc::invalid, "'by' must be some of agent, day and run, separated by commas, not '" +
                                   std::string(word.substr(0, 40)) + "'");
  }
  return query;
}

std::string cost_by_text(const engine::CostQuery& query) {
  std::string text;
  const auto add = [&](bool wanted, std::string_view word) {
    if (wanted) text += (text.empty() ? "" : ",") + std::string(word);
  };
  add(query.agent, "agent");
  add(query.day, "day");
  add(query.run, "run");
  return text;
}

Result<engine::AgentDetail> read_agent(std::string_view text) {
  STINT_TRY(const json::object object, parse_object(text));
  const json::object* const day = object_in(object, "day");
  if (day == nullptr) return fail(not_a_report());
  engine::AgentDetail agent;
  agent.name = text_at(object, "name");
  agent.refused = text_at(object, "refused");
  agent.as_of = time_at(object, "as_of").value_or(WallTime());
  agent.day = read_day(*day);
  return agent;
}

Result<engine::CostReport> read_cost(std::string_view text) {
  STINT_TRY(const json::object object, parse_object(text));
  const json::array* const lines = array_at(object, "lines");
  const json::object* const total = object_in(object, "total");
  if (lines == nullptr || total == nullptr) return fail(not_a_report());
  engine::CostReport report;
  report.since = time_at(object, "since_at").value_or(WallTime());
  report.as_of = time_at(object, "as_of").value_or(WallTime());
  report.complete = flag_at(object, "complete");
  report.total = {.tokens = number_at(*total, "tokens"),
                  .cost_micros = number_at(*total, "cost_micros"),
                  .attempts = number_at(*total, "attempts")};
  for (const json::value& each : *lines) {
    const json::object* const line = each.if_object();
    if (line == nullptr) return fail(not_a_report());
    report.lines.push_back({.agent = text_at(*line, "agent"),
                            .day = text_at(*line, "day"),
                            .run = text_at(*line, "run"),
                            .title = text_at(*line, "title"),
                            .attempts = number_at(*line, "attempts"),
                            .tokens = number_at(*line, "tokens"),
                            .cost_micros = number_at(*line, "cost_micros")});
  }
  return report;
}

Result<store::Series> read_series(std::string_view text) {
  STINT_TRY(const json::object object, parse_object(text));
  const json::object* const lists = object_in(object, "series");
  const json::array* const samples = array_at(object, "samples");
  if (lists == nullptr || samples == nullptr) return fail(not_a_report());
  store::Series series;
  series.as_of = time_at(object, "as_of").value_or(WallTime());
  series.step = seconds(number_at(object, "step_s"));
  const WallTime first = time_at(object, "first_at").value_or(WallTime());
  const auto value = [&](std::string_view name, std::size_t place) -> std::optional<std::int64_t> {
    const json::array* const list = array_at(*lists, name);
    if (list == nullptr || place >= list->size()) return std::nullopt;
    return whole_number((*list)[place]);
  };
  for (std::size_t place = 0; place < samples->size(); ++place) {
    if ((*samples)[place].is_null()) continue;
    store::SeriesPoint& point = series.points.emplace_back();
    point.at = first + std::chrono::duration_cast<milliseconds>(series.step) * place;
    point.samples = whole_number((*samples)[place]).value_or(0);
    for (const Gauge& gauge : kGauges) point.most.*gauge.member = value(gauge.name, place).value_or(0);
    if (!value(kCounters[0].name, place)) continue;
    store::SeriesCounts& counts = point.counts.emplace();
    for (const Counter& counter : kCounters) counts.*counter.member = value(counter.name, place).value_or(0);
  }
  if (const json::array* const marks = array_at(object, "marks")) {
    for (const json::value& each : *marks) {
      const json::object* const mark = each.if_object();
      if (mark == nullptr) continue;
      store::Event& event = series.marks.emplace_back();
      event.at = time_at(*mark, "at").value_or(WallTime());
      event.cause = text_at(*mark, "cause");
      if (const json::object* const data = object_in(*mark, "data")) event.data = json::serialize(*data);
    }
  }
  return series;
}

}  // namespace stint::wire
