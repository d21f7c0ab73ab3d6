#include "cli/demo_view.hpp"

#include "cli/demo_text.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace stint::cli {
namespace {

using namespace std::chrono_literals;
using Parked = GarageView::Parked;

std::vector<std::string> standing(const Spaces& spaces) {
  std::vector<std::string> out;
  for (const auto& space : spaces.all()) {
    out.push_back(space.closed ? "closed" : space.who + (space.closing ? "!" : ""));
  }
  return out;
}
using Standing = std::vector<std::string>;

TEST(Spaces, a_guest_keeps_its_place) {
  Spaces spaces;
  spaces.update({Parked{"van", 1}, Parked{"cab", 1}}, 3);
  EXPECT_EQ(standing(spaces), (Standing{"van", "cab", ""}));
  spaces.update({Parked{"cab", 1}}, 3);
  EXPECT_EQ(standing(spaces), (Standing{"", "cab", ""}));
  spaces.update({Parked{"cab", 1}, Parked{"truck", 2}}, 3);
  EXPECT_EQ(standing(spaces), (Standing{"truck", "cab", "truck"}));
  EXPECT_EQ(spaces.all()[2].part, 2u);
}

TEST(Spaces, a_smaller_capacity_closes_empty_places_first_and_marks_the_rest_as_debt) {
  Spaces spaces;
  spaces.update({Parked{"van", 1}, Parked{"cab", 1}, Parked{"jeep", 1}}, 4);
  spaces.update({Parked{"van", 1}, Parked{"cab", 1}, Parked{"jeep", 1}}, 2);
  EXPECT_EQ(standing(spaces), (Standing{"van", "cab", "jeep!", "closed"}));
  spaces.update({Parked{"cab", 1}, Parked{"jeep", 1}}, 2);  // the first to leave pays the debt, whatever its place
  EXPECT_EQ(standing(spaces), (Standing{"closed", "cab", "jeep", "closed"}));
  spaces.update({Parked{"cab", 1}, Parked{"jeep", 1}}, 4);
  EXPECT_EQ(standing(spaces), (Standing{"", "cab", "jeep", ""}));
}

TEST(Spaces, a_closed_place_stays_closed_while_others_come_and_go) {
  Spaces spaces;
  spaces.update({Parked{"van", 1}, Parked{"cab", 1}}, 2);
  spaces.update({Parked{"cab", 1}}, 1);
  EXPECT_EQ(standing(spaces), (Standing{"closed", "cab"}));
  spaces.update({Parked{"jeep", 1}}, 1);
  EXPECT_EQ(standing(spaces), (Standing{"closed", "jeep"}));
}

struct Picture {
  GarageView view;
  Spaces spaces;
  std::deque<wire::DemoEvent> recent;
};
Picture any_picture(std::mt19937_64& random) {
  Picture picture;
  GarageView& view = picture.view;
  view.now = std::chrono::milliseconds(random() % 40'000);
  view.length = 22s;
  const auto capacity = static_cast<std::uint32_t>(1 + random() % 32);
  std::uint32_t held = 0;
  while (held < capacity && random() % 8 != 0) {
    const auto units = static_cast<std::uint32_t>(1 + random() % std::min(3U, capacity - held));
    const auto inside = std::chrono::milliseconds(random() % 5'000);
    view.parked.push_back({"guest" + std::to_string(held), units, inside, 3s});
    held += units;
  }
  picture.spaces.update(view.parked, capacity);
  view.capacity = static_cast<std::uint32_t>(random() % (capacity + 1));
  view.debt = held > view.capacity ? held - view.capacity : 0;
  picture.spaces.update(view.parked, view.capacity);
  for (std::uint64_t i = random() % 40; i > 0; --i) {
    view.line.push_back({"waiter" + std::to_string(i), static_cast<std::uint32_t>(1 + random() % 4), 2s, {}});
    if (random() % 2 == 0) view.line.back().patience_left = 1s;
  }
  view.caption = "A sentence about what goes on, … which is longer than a narrow terminal is wide, and is cut.";
  for (std::uint64_t i = random() % 30; i > 0; --i) {
    wire::DemoEvent& event = picture.recent.emplace_back();
    event.kind = static_cast<wire::DemoEventKind>(random() % 9);
    event.who = event.kind >= wire::DemoEventKind::resized ? "" : "guest";
    event.units = static_cast<std::uint32_t>(1 + random() % 3);
    event.took = 1500ms;
  }
  return picture;
}

TEST(DemoView, no_picture_is_wider_or_higher_than_the_terminal) {
  std::mt19937_64 random(20261115);
  for (int round = 0; round < 2000; ++round) {
    const Picture picture = any_picture(random);
    Look look;
    look.columns = static_cast<int>(10 + random() % 190);
    look.rows = static_cast<int>(1 + random() % 60);
    look.colour = random() % 2 == 0;
    look.utf8 = random() % 2 == 0;
    const auto lines = draw(picture.view, picture.spaces, picture.recent, look);
    ASSERT_LE(static_cast<int>(lines.size()), look.rows) << "round " << round;
    for (const std::string& line : lines) {
      ASSERT_LE(width_of(line), look.columns) << "round " << round << ": " << line;
      ASSERT_EQ(line.find('\n'), std::string::npos);
      if (!look.colour) ASSERT_EQ(line.find('\033'), std::string::npos) << line;
      const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
      if (!look.utf8) ASSERT_TRUE(std::ranges::all_of(line, is_ascii)) << line;
    }
  }
}

TEST(DemoView, never_shows_more_occupied_places_than_units_are_held) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 2000; ++round) {
    const Picture picture = any_picture(random);
    std::size_t held = 0;
    for (const auto& guest : picture.view.parked) held += guest.units;
    const auto& all = picture.spaces.all();
    const auto occupied = std::ranges::count_if(all, [](const auto& space) { return !space.who.empty(); });
    const auto closing = std::ranges::count_if(all, &Spaces::Space::closing);
    ASSERT_EQ(static_cast<std::size_t>(occupied), held);
    ASSERT_EQ(static_cast<std::uint32_t>(closing), picture.view.debt);
  }
}

TEST(DemoView, a_picture_of_usual_size_names_all_inside_the_line_and_the_counters) {
  Picture picture;
  picture.view.capacity = 2;
  picture.view.length = 22s;
  picture.view.parked = {{"van", 1, 1s, 3s}, {"cab", 1, 2s, 3s}};
  picture.view.line = {{"jeep", 1, 500ms, 1s}};
  picture.view.sums.granted = 2;
  picture.spaces.update(picture.view.parked, 2);
  for (const int columns : {60, 80, 120}) {
    Look look;
    look.columns = columns;
    std::string all;
    for (const std::string& line : draw(picture.view, picture.spaces, picture.recent, look)) all += line + "\n";
    for (const char* const word :
         {"van", "cab", "jeep", "gives up in 1.0 s", "inside 2 of 2", "2 grants, 0 too many"}) {
      EXPECT_NE(all.find(word), std::string::npos) << word << " is missing at " << columns << " columns:\n" << all;
    }
  }
}

TEST(DemoView, an_event_is_one_line_that_can_be_read_alone) {
  wire::DemoEvent event;
  event.at = 12'340ms;
  event.kind = wire::DemoEventKind::enters;
  event.who = "truck";
  event.units = 3;
  event.took = 4s;
  event.capacity = 4;
  event.inside = 4;
  event.waiting = 2;
  EXPECT_EQ(describe_line(event), " 12.34 s  truck   gets 3 spaces after 4.0 s       inside 4 of 4, line 2");
}

TEST(DemoView, the_totals_show_if_the_limit_was_exceeded) {
  wire::DemoSummary sums;
  EXPECT_NE(describe(sums).find("over the limit: never"), std::string::npos);
  sums.over_limit = 2;
  EXPECT_NE(describe(sums).find("over the limit: 2 TIMES"), std::string::npos);
}

}  // namespace
}  // namespace stint::cli
