#include "store/line.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

namespace stint::store {
namespace {

using Pairs = std::vector<std::pair<std::int64_t, std::string>>;

template <class Range>
Pairs pairs_of(Range&& range) {
  Pairs found;
  for (const auto& slot : range) found.emplace_back(slot.number, *slot.thing);
  return found;
}

TEST(Line, one_that_stays_at_the_front_does_not_keep_what_went_behind_it) {
  Line<std::string> line;
  for (std::int64_t i = 1; i <= 100; ++i) line.add(i, std::to_string(i));
  for (std::int64_t i = 2; i <= 99; ++i) {
    line.erase(i);
    ASSERT_EQ(*line.find(1), "1");
    ASSERT_EQ(*line.find(100), "100");
    ASSERT_EQ(line.find(i), nullptr);
    ASSERT_EQ(line.size(), static_cast<std::size_t>(100 - i + 1));
  }
  EXPECT_EQ(pairs_of(line.after(0)), (Pairs{{1, "1"}, {100, "100"}}));
}

/// Against a map: whatever comes and goes.
TEST(LineProperty, is_a_map_whose_numbers_rise) {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto below = [&](std::size_t bound) { return static_cast<std::int64_t>(random() % bound); };
    Line<std::string> line;
    std::map<std::int64_t, std::string> model;
    std::int64_t next = 1;
    for (int step = 0; step < 300; ++step) {
      if (model.empty() || below(100) < (step < 150 ? 60 : 35)) {
        next += 1 + (below(4) == 0 ? below(3) : 0);
        line.add(next, std::to_string(next));
        model.emplace(next, std::to_string(next));
      } else {
        const auto victim = std::next(model.begin(), below(model.size()));
        line.erase(victim->first);
        model.erase(victim);
      }
      ASSERT_EQ(line.size(), model.size());
      const std::int64_t asked = below(static_cast<std::size_t>(next) + 2);
      const auto known = model.find(asked);
      const std::string* const found = line.find(asked);
      ASSERT_EQ(found != nullptr, known != model.end()) << asked;
      if (found != nullptr) ASSERT_EQ(*found, known->second);
      ASSERT_EQ(pairs_of(line.after(asked)), Pairs(model.upper_bound(asked), model.end()));
      Pairs before(model.begin(), model.lower_bound(asked));
      std::ranges::reverse(before);
      ASSERT_EQ(pairs_of(line.before(asked)), before);
    }
  }
}

}  // namespace
}  // namespace stint::store
