// Random histories of samples against the documented rule, and a provider with a hidden capacity that the limit must
// find.
#include "stint/aimd_core.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

namespace stint {
namespace {

using namespace std::chrono_literals;

struct Begun {
  AimdCore::Sample sample;
  int decreases_seen;  // when it began
};

RC_GTEST_PROP(AimdProperty, every_history_keeps_the_rule, ()) {
  const auto min = *rc::gen::inRange<std::uint32_t>(1, 5);
  const auto max = *rc::gen::inRange<std::uint32_t>(5, 40);
  const AimdPolicy policy{.min = min, .max = max, .initial = *rc::gen::inRange<std::uint32_t>(1, 50)};
  AimdCore core(policy);
  std::vector<Begun> running;
  std::vector<TimePoint> growths;
  int decreases = 0;
  TimePoint now{1000h};
  const int steps = *rc::gen::inRange(0, 200);
  for (int step = 0; step < steps; ++step) {
    now += std::chrono::milliseconds(*rc::gen::inRange(0, 700));
    if (running.size() < core.limit() && *rc::gen::inRange(0, 3) != 0) {
      running.push_back({core.begin(), decreases});
      continue;
    }
    if (running.empty()) continue;
    const std::size_t i = static_cast<std::size_t>(*rc::gen::inRange(0, 1000)) % running.size();
    const auto signal = *rc::gen::weightedElement<LoadSignal>(
        {{6, LoadSignal::success}, {1, LoadSignal::overload}, {1, LoadSignal::ignored}});
    const std::uint32_t before = core.limit();
    const auto inflight = static_cast<std::uint32_t>(running.size());
    const bool stale = running[i].decreases_seen != decreases;
    RC_ASSERT(core.end(running[i].sample, signal, now) == (core.limit() != before));
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
    RC_ASSERT(core.inflight() == running.size());
    RC_ASSERT(core.limit() >= min);
    RC_ASSERT(core.limit() <= max);
    if (stale || signal == LoadSignal::ignored) RC_ASSERT(core.limit() == before);
    if (signal == LoadSignal::success) RC_ASSERT(core.limit() == before || core.limit() == before + 1);
    if (core.limit() > before) {
      RC_ASSERT(inflight * 2 >= before);
      if (!growths.empty()) RC_ASSERT(now - growths.back() >= policy.growth_interval);
      growths.push_back(now);
    }
    if (signal == LoadSignal::overload && !stale) {
      RC_ASSERT(core.limit() < before || before == min);
      ++decreases;
    }
  }
}

/// A provider that refuses calls above its capacity: the limit converges to it from any start and stays near it.
RC_GTEST_PROP(AimdProperty, converges_to_a_hidden_capacity, ()) {
  const auto capacity = *rc::gen::inRange<std::uint32_t>(2, 100);
  AimdCore core({.min = 1, .max = 200, .initial = *rc::gen::inRange<std::uint32_t>(1, 200)});
  TimePoint now{1000h};
  std::uint32_t least = 200, most = 0;
  for (int second = 0; second < 600; ++second) {
    std::vector<AimdCore::Sample> wave;
    for (std::uint32_t i = 0; i < core.limit(); ++i) wave.push_back(core.begin());
    now += 1s;
    for (std::size_t i = 0; i < wave.size(); ++i) {
      core.end(wave[i], i < capacity ? LoadSignal::success : LoadSignal::overload, now);
    }
    if (second < 300) continue;
    least = std::min(least, core.limit());
    most = std::max(most, core.limit());
  }
  RC_ASSERT(most <= capacity + 1);
  RC_ASSERT(least >= capacity * 6 / 10);
}

}  // namespace
}  // namespace stint
