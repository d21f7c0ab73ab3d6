#include "cli/top_view.hpp"

#include "cli/status_text.hpp"

#include <gtest/gtest.h>

namespace stint::cli {
namespace {

using namespace std::chrono_literals;
using domain::RunState;
using Act = TopView::Act;

const WallTime kDrawnAt{1'790'000'000'000ms};

TopFrame frame_of(std::size_t running, std::size_t queued) {
  TopFrame frame;
  frame.daemon = true;
  frame.where = "http://127.0.0.1:1";
  frame.status.phase = engine::Phase::serving;
  frame.status.pool.emplace();
  frame.status.pool->pool_size = 4;
  frame.status.pool->target_size = 4;
  for (std::size_t i = 0; i < running + queued; ++i) {
    engine::RunView view;
    view.run.id = "run" + std::to_string(i);
    view.run.agent = "review";
    view.run.created_at = kDrawnAt - 5s;
    view.run.state = i < running ? RunState::running : RunState::queued;
    (i < running ? frame.running : frame.waiting).push_back(std::move(view));
  }
  return frame;
}

std::string text_of(const std::vector<Line>& lines) {
  std::string text;
  for (const Line& line : lines) text += line.str(false) + "\n";
  return text;
}

std::string selected(TopView& view) {
  const std::string text = text_of(view.draw(80, 24, kDrawnAt));
  const auto at = text.find("\n> ");
  return at == std::string::npos ? "" : text.substr(at + 3, text.find(' ', at + 3) - at - 3);
}

TEST(KeyReader, sequences_come_in_pieces) {
  KeyReader reader;
  EXPECT_EQ(reader.add("\033[A\033OBcq"), (std::vector{Key::up, Key::down, Key::cancel, Key::quit}));
  EXPECT_TRUE(reader.add("\033").empty());
  EXPECT_TRUE(reader.add("[").empty());
  EXPECT_EQ(reader.add("B"), std::vector{Key::down});
  EXPECT_EQ(reader.add("\033[1;5Cx"), (std::vector{Key::other, Key::other}));
  EXPECT_EQ(reader.add("\033[111111111").size(), 1U) << "an unfinished sequence is not a key";
}

TEST(TopView, fits_and_shows_the_selected_run) {
  TopView view;
  view.update(frame_of(3, 50));
  for (const auto& [columns, rows] : {std::pair{80, 24}, {40, 10}, {200, 60}, {20, 3}, {1, 1}}) {
    const std::vector<Line> lines = view.draw(columns, rows, kDrawnAt);
    EXPECT_LE(static_cast<int>(lines.size()), rows);
    for (const Line& line : lines) EXPECT_LE(line.width(), columns);
  }
  EXPECT_EQ(selected(view), "run0");
  for (int i = 0; i < 30; ++i) (void)view.press(Key::down);
  EXPECT_EQ(selected(view), "run30");
  for (int i = 0; i < 99; ++i) (void)view.press(Key::page_down);
  EXPECT_EQ(selected(view), "run52");
  for (int i = 0; i < 99; ++i) (void)view.press(Key::up);
  EXPECT_EQ(selected(view), "run0");
}

TEST(TopView, the_selection_stays_with_its_run) {
  TopView view;
  view.update(frame_of(3, 3));
  (void)view.press(Key::down);
  (void)view.press(Key::down);
  EXPECT_EQ(selected(view), "run2");
  TopFrame next = frame_of(3, 3);
  next.running.erase(next.running.begin());
  view.update(next);
  EXPECT_EQ(selected(view), "run2");
  next.running.pop_back();
  view.update(next);
  EXPECT_EQ(selected(view), "run3") << "the run in its row";
  view.update(frame_of(0, 0));
  EXPECT_EQ(selected(view), "");
  EXPECT_EQ(view.press(Key::cancel).act, Act::none);
  EXPECT_EQ(view.press(Key::yes).act, Act::none);
}

TEST(TopView, asks_before_an_action_that_can_not_be_undone) {
  TopView view;
  view.update(frame_of(2, 0));
  (void)view.press(Key::down);
  EXPECT_EQ(view.press(Key::cancel).act, Act::none);
  EXPECT_NE(text_of(view.draw(80, 24, kDrawnAt)).find("Cancel run1? y/n"), std::string::npos);
  view.update(frame_of(1, 0));  // it is gone, and another is selected now
  const TopView::Action action = view.press(Key::yes);
  EXPECT_EQ(action.act, Act::cancel);
  EXPECT_EQ(action.run, "run1") << "the one that was asked about";
  EXPECT_EQ(view.press(Key::drain).act, Act::none);
  EXPECT_EQ(view.press(Key::quit).act, Act::none) << "no";
  EXPECT_EQ(view.press(Key::drain).act, Act::none);
  EXPECT_EQ(view.press(Key::yes).act, Act::drain);
  EXPECT_EQ(view.press(Key::quit).act, Act::quit);
}

TEST(TopView, without_a_daemon_there_is_nothing_to_drain) {
  TopView view;
  TopFrame frame = frame_of(0, 1);
  frame.daemon = false;
  view.update(frame);
  (void)view.press(Key::drain);
  EXPECT_EQ(view.press(Key::yes).act, Act::none);
  const std::string text = text_of(view.draw(80, 24, kDrawnAt));
  EXPECT_NE(text.find("`stint serve` starts one"), std::string::npos);
}

TEST(StatusText, advises_only_when_there_is_something_to_do) {
  engine::FleetStatus status = frame_of(0, 0).status;
  const auto at = [&](double utilization, std::uint64_t ready) {
    status.pool->utilization = utilization;
    status.stats.ready = ready;
    return advice(status);
  };
  EXPECT_EQ(at(0.5, 3), "");
  EXPECT_EQ(at(0.9, 3), "90 % of the workers are busy and 3 runs could start: `stint scale 5` adds workers");
  EXPECT_NE(at(0.1, 0).find("`stint scale` makes the pool smaller"), std::string::npos);
  status.pool->bounds = {2, 50};
  EXPECT_NE(at(0.9, 3).find("grows by itself"), std::string::npos);
  EXPECT_NE(at(0.1, 0).find("shrinks by itself"), std::string::npos);
  status.pool->draining = true;
  EXPECT_EQ(at(0.9, 3), "");
  status.pool.reset();
  EXPECT_EQ(advice(status), "");
}

TEST(StatusText, shows_limits_that_are_held_waited_for_or_paused) {
  std::vector<engine::LimitView> limits(3);
  limits[0].name = "idle";
  limits[0].capacity = 3;
  limits[1].name = "gpu";
  limits[1].capacity = 2;
  limits[1].held = 2;
  limits[1].waiting = 1;
  limits[1].holders = {{.label = "a", .pid = 3, .since = kDrawnAt - 5s},
                       {.run = "b\033[2J", .agent = "review", .since = kDrawnAt - 2min},
                       {},
                       {.label = "d", .pid = 4}};
  limits[2].name = "agent:x";
  limits[2].paused = true;
  limits[2].paused_until = kDrawnAt + 5min;
  EXPECT_EQ(text_of(limit_lines(limits, kDrawnAt, 9)),
            "  limit    gpu  2 of 2 held, 1 waiting: a (pid 3, 5s), b?[2J of review (2m), another tool, by flock "
            "and 1 more\n"
            "  limit    agent:x  0 held  paused for 5m more\n");
  EXPECT_EQ(limit_lines(limits, kDrawnAt, 1).size(), 2U);
  EXPECT_EQ(bar_text(0.5, 4), "[##..]");
  EXPECT_EQ(bar_text(7, 4), "[####]");
}

}  // namespace
}  // namespace stint::cli
