#include "wire/reports.hpp"

#include <boost/json.hpp>
#include <gtest/gtest.h>

namespace stint::wire {
namespace {

using namespace std::chrono_literals;
namespace json = boost::json;

WallTime moment(std::int64_t ms) { return WallTime(std::chrono::milliseconds(ms)); }

store::SeriesPoint sampled(std::int64_t ms, std::int64_t running, std::optional<std::int64_t> started = {}) {
  store::SeriesPoint made;
  made.at = moment(ms);
  made.most.running = running;
  made.samples = 1;
  if (started) made.counts.emplace().started = *started;
  return made;
}

TEST(SeriesJson, steps_without_a_point_are_null_and_never_zero) {
  store::Series series;
  series.as_of = moment(1'000'047'123);
  series.step = 10s;
  series.points = {sampled(1'000'010'123, 3), sampled(1'000'020'123, 0, 0), sampled(1'000'040'123, 5, 2)};
  const json::object object = json::parse(to_json(series, 60s)).as_object();
  EXPECT_EQ(object.at("first_at"), 999'990'123);
  EXPECT_EQ(object.at("count"), 6);
  EXPECT_EQ(json::serialize(object.at("series").at("running")), "[null,null,3,0,null,5]");
  EXPECT_EQ(json::serialize(object.at("series").at("started")), "[null,null,null,0,null,2]") << "unknown in the third";
  EXPECT_EQ(json::serialize(object.at("samples")), "[null,null,1,1,null,1]");
}

TEST(SeriesJson, a_fleet_that_was_never_sampled_has_only_gaps) {
  store::Series series;
  series.as_of = moment(1'000'047'000);
  series.step = 10s;
  const json::object object = json::parse(to_json(series, 30s)).as_object();
  EXPECT_EQ(json::serialize(object.at("series").at("held")), "[null,null,null]");
  EXPECT_EQ(object.at("first_at"), 1'000'020'000);
}

TEST(SeriesJson, is_read_back_as_it_was) {
  store::Series series;
  series.as_of = moment(1'000'045'000);
  series.step = 10s;
  series.points = {sampled(1'000'020'000, 3, 4), sampled(1'000'040'000, 1)};
  store::Event& mark = series.marks.emplace_back();
  mark.at = moment(1'000'030'500);
  mark.cause = "resized";
  mark.data = R"({"limit":"gpu","capacity":2})";
  const auto read = read_series(to_json(series, 60s));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->points, series.points);
  ASSERT_EQ(read->marks.size(), 1U);
  EXPECT_EQ(read->marks[0].data, mark.data);
  EXPECT_EQ(read->marks[0].at, mark.at);
  EXPECT_FALSE(read_series("{}"));
}

TEST(AgentJson, a_day_has_all_its_hours_with_zero_where_nothing_was_used) {
  engine::AgentDetail agent;
  agent.name = "a";
  agent.as_of = moment(1'800'000'000'000) + 61min;  // 2027-01-15T09:01
  store::Spent& hour = agent.day.hours.emplace_back();
  hour.day = "2027-01-15";
  hour.hour = 8;
  hour.runs = 2;
  hour.cost_micros = 30;
  agent.day.used = {.cost_micros = 30, .attempts = 2};
  agent.day.ended.failed = 1;
  agent.day.ended.worked_p90 = 1500ms;
  const std::string text = to_json(agent);
  const json::object day = json::parse(text).as_object().at("day").as_object();
  const json::array& hours = day.at("hours").as_array();
  ASSERT_EQ(hours.size(), 24U);
  EXPECT_EQ(hours[23].at("cost_micros"), 0);
  EXPECT_EQ(hours[22].at("cost_micros"), 30);
  EXPECT_EQ(hours[22].at("at"), 1'800'000'000'000);
  EXPECT_TRUE(day.at("worked_p50_ms").is_null()) << "unknown";
  const auto read = read_agent(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->day.used, agent.day.used);
  EXPECT_EQ(read->day.ended.worked_p90, 1500ms);
  EXPECT_FALSE(read->day.ended.worked_p50);
  ASSERT_EQ(read->day.hours.size(), 24U);
  EXPECT_EQ(read->day.hours[22].day, "2027-01-15");
  EXPECT_EQ(read->day.hours[22].hour, 8U);
  EXPECT_EQ(read->day.hours[22].cost_micros, 30);
}

TEST(CostJson, is_read_back_as_it_was) {
  engine::CostReport report;
  report.since = moment(5);
  report.as_of = moment(7);
  report.lines.push_back({.agent = "a", .day = "2027-01-15", .run = "", .title = "", .attempts = 1, .cost_micros = -3});
  report.total = {.tokens = 1, .cost_micros = -3, .attempts = 1};
  report.complete = false;
  const auto read = read_cost(to_json(report));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->total, report.total);
  EXPECT_EQ(read->lines.at(0).day, "2027-01-15");
  EXPECT_EQ(read->lines.at(0).cost_micros, -3);
  EXPECT_FALSE(read->complete);
}

TEST(CostBy, names_what_it_does_not_know) {
  ASSERT_TRUE(read_cost_by("day,agent"));
  EXPECT_EQ(cost_by_text(*read_cost_by("day,agent")), "agent,day");
  EXPECT_TRUE(read_cost_by("run")->run);
  EXPECT_FALSE(read_cost_by(""));
  EXPECT_FALSE(read_cost_by("agent,"));
  EXPECT_TRUE(read_cost_by("model").error().describe().contains("model"));
  EXPECT_TRUE(read_cost_by("agent,weather").error().describe().contains("'weather'"));
}

}  // namespace
}  // namespace stint::wire
