/// Shared by the tests of upstreams and of calls: a simulator with clocks, and failures as a provider sends them.
#pragma once

#include "model/upstream.hpp"
#include "stint/scope.hpp"
#include "stint/testing.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace stint::model {

/// A simulator, and the system's clock and random numbers from it. The wall clock begins at 1000 s.
struct SimulatedSystem {
  explicit SimulatedSystem(std::uint64_t seed = 0, Simulator::Order order = Simulator::Order::seeded)
      : sim(seed, order) {
    system.wall_now = [this] {
      return WallTime(std::chrono::seconds(1000) + std::chrono::floor<std::chrono::milliseconds>(since_begin()));
    };
    system.random = [this] { return sim.random()(); };
  }
  [[nodiscard]] Duration since_begin() const { return sim.now() - TimePoint(); }

  Simulator sim;
  domain::System system;
};

inline Failure failure_of(FailureKind kind, int status, std::optional<Duration> delay = std::nullopt) {
  Failure failure;
  failure.kind = kind;
  failure.status = status;
  failure.repeat = Retry::safe;
  failure.delay = delay;
  failure.message = "scripted";
  return failure;
}
inline Failure throttled(Duration delay) { return failure_of(FailureKind::retry, 429, delay); }
inline Failure overloaded() { return failure_of(FailureKind::overload, 529); }
inline Failure server_error() { return failure_of(FailureKind::retry, 500); }

inline UpstreamKey test_key() {
  return {.provider = "anthropic", .account = "account:anthropic", .model_class = "big"};
}

}  // namespace stint::model
