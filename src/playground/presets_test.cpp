// Each preset's C++ is run on a stage, and the same preset as a sandbox: both must be seen to do the same.
#include "playground/presets.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace stint::playground {

using namespace std::chrono_literals;

/// For messages of GoogleTest.
void PrintTo(const Event& event, std::ostream* out) {
  *out << std::chrono::duration_cast<std::chrono::milliseconds>(event.at).count() << "ms " << to_string(event.kind)
       << " " << event.task << " " << event.resource << " " << event.units << " " << event.detail << "\n";
}

namespace {

std::vector<Event> without_steps(std::vector<Event> events) {
  for (Event& event : events) event.step = 0;
  return events;
}

std::vector<Event> events_of_code(const Preset& preset) {
  Stage stage;
  preset.run(stage);
  return without_steps(stage.events());
}

View played(const std::string& name) {
  const Preset* const preset = find_preset(name);
  EXPECT_NE(preset, nullptr) << name;
  return play(open(*preset)).value().view;
}

/// When the first such event happened.
std::optional<Duration> when(const View& view, EventKind kind, const std::string& task, const std::string& resource) {
  const auto found = std::ranges::find_if(view.events, [&](const Event& event) {
    return event.kind == kind && event.task == task && event.resource == resource;
  });
  return found == view.events.end() ? std::nullopt : std::optional(found->at);
}

const ResourceView& resource(const View& view, const std::string& name) {
  return *std::ranges::find(view.resources, name, &ResourceView::name);
}

TEST(Presets, the_code_does_what_the_sandbox_does) {
  for (const Preset& preset : presets()) {
    const Played end = play(open(preset)).value();
    EXPECT_TRUE(end.view.done) << preset.name;
    EXPECT_EQ(end.view.events_left_out, 0U) << preset.name;
    EXPECT_FALSE(end.view.events.empty()) << preset.name;
    EXPECT_EQ(without_steps(end.view.events), events_of_code(preset)) << preset.name;
  }
}

TEST(Presets, nothing_is_held_or_waits_at_the_end) {
  for (const Preset& preset : presets()) {
    const View view = play(open(preset)).value().view;
    for (const ResourceView& resource : view.resources) {
      EXPECT_TRUE(resource.holders.empty() && resource.line.empty()) << preset.name << " " << resource.name;
    }
    for (const TaskView& task : view.tasks) {
      EXPECT_TRUE(task.state == TaskState::idle || task.state == TaskState::cancelled)
          << preset.name << " " << task.name;
      EXPECT_EQ(task.queued, 0U) << preset.name << " " << task.name;
    }
  }
}

TEST(Presets, each_asks_a_question_and_shows_its_code) {
  std::set<std::string_view> names;
  EXPECT_EQ(presets().size(), 8U);
  for (const Preset& preset : presets()) {
    names.insert(preset.name);
    EXPECT_GE(preset.choices.size(), 3U) << preset.name;
    EXPECT_LT(preset.answer, preset.choices.size()) << preset.name;
    EXPECT_FALSE(preset.why.empty() || preset.title.empty() || preset.question.empty()) << preset.name;
    for (const std::string_view sentence : preset.sentences) EXPECT_TRUE(sentence.ends_with('.')) << preset.name;
    EXPECT_TRUE(preset.code.text.contains("(Stage& stage) {")) << preset.name;
    EXPECT_FALSE(preset.code.text.contains("#include") || preset.code.text.contains("[show]")) << preset.name;
    EXPECT_FALSE(preset.code.text.contains("//@")) << preset.name;
  }
  EXPECT_EQ(names.size(), presets().size());
  EXPECT_EQ(find_preset("no-such-preset"), nullptr);
}

TEST(Presets, each_event_has_its_line_of_the_code) {
  for (const Preset& preset : presets()) {
    const View view = play(open(preset)).value().view;
    for (const Event& event : view.events) {
      EXPECT_TRUE(preset.code.line_of(event)) << preset.name << ": " << testing::PrintToString(event);
    }
    for (const Mark& mark : preset.code.marks) {
      const auto stands_for = [&](const Event& event) { return preset.code.line_of(event) == mark.line; };
      EXPECT_TRUE(std::ranges::any_of(view.events, stands_for)) << preset.name << ": line " << mark.line;
    }
  }
}

TEST(Presets, the_same_preset_plays_the_same_by_seed) {
  for (const Preset& preset : presets()) {
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
      Sandbox sandbox = open(preset);
      sandbox.setup.order = Order::seeded;
      sandbox.setup.seed = seed;
      EXPECT_EQ(play(sandbox).value().view, play(sandbox).value().view) << preset.name << " " << seed;
    }
  }
}

// The answers.

TEST(Presets, three_at_two) {
  const View view = played("three-at-two");
  EXPECT_EQ(when(view, EventKind::waits, "c", "garage"), 0s);
  EXPECT_EQ(when(view, EventKind::granted, "c", "garage"), 1s);
}

TEST(Presets, stranger_releases) {
  const View view = played("stranger-releases");
  EXPECT_EQ(when(view, EventKind::released, "owner", "door"), 1s);
  EXPECT_EQ(when(view, EventKind::refused, "stranger", ""), 1s);
  EXPECT_EQ(when(view, EventKind::released, "owner", "lock"), 2s);
}

TEST(Presets, priority_inversion) {
  const View view = played("priority-inversion");
  EXPECT_EQ(when(view, EventKind::waits, "high1", "door"), 1s);
  EXPECT_EQ(when(view, EventKind::granted, "high1", "door"), 31s);
  EXPECT_EQ(when(view, EventKind::waits, "high2", "lock"), 41s);
  EXPECT_EQ(when(view, EventKind::granted, "high2", "lock"), 51s);
}

TEST(Presets, large_request) {
  const View view = played("large-request");
  EXPECT_EQ(when(view, EventKind::granted, "large1", "unfair"), 7s);
  EXPECT_EQ(when(view, EventKind::granted, "large2", "fair"), 12s + 2s);
}

TEST(Presets, limit_or_reuse) {
  const View view = played("limit-or-reuse");
  EXPECT_EQ(resource(view, "database").made, 6U);
  EXPECT_EQ(resource(view, "database").discarded, 6U);
  EXPECT_EQ(resource(view, "pool").made, 2U);
  EXPECT_EQ(resource(view, "pool").reused, 4U);
}

TEST(Presets, owned_timeout) {
  const View view = played("owned-timeout");
  EXPECT_EQ(view.tokens, 60U);
  EXPECT_EQ(view.tokens_leaked, 40U);
}

TEST(Presets, cancelled_head) {
  const View view = played("cancelled-head");
  EXPECT_EQ(when(view, EventKind::left, "bus", "garage"), 1s);
  EXPECT_EQ(when(view, EventKind::granted, "bike-a", "garage"), 1s);
  EXPECT_EQ(when(view, EventKind::granted, "bike-b", "garage"), 1s);
  EXPECT_FALSE(when(view, EventKind::left, "bike-a", "garage"));
}

TEST(Presets, resize_with_debt) {
  const View view = played("resize-with-debt");
  EXPECT_EQ(when(view, EventKind::resized, "", "garage"), 500ms);
  EXPECT_EQ(when(view, EventKind::granted, "d", "garage"), 3s);
}

}  // namespace
}  // namespace stint::playground
