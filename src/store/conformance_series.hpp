/// The fixture of the conformance tests of time series: a node that samples an agent's runs.
#pragma once

#include "store/conformance.hpp"
#include "store/series.hpp"

namespace stint::store {

class SeriesTest : public StoreTest {
 protected:
  static constexpr Duration kStep = kSeriesSteps[0].length;

  SeriesTest() {
    define("a");
    node_ = enrol();
  }
  Duration sample(Sample sample = {}) { return get(store().sample(node_, sample)); }
  /// Time passes, and the node lives on.
  void pass(Duration by) {
    world().advance(by);
    get(store().beat(node_));
  }
  /// Time passes until the next step, and the node takes its sample.
  void next(Sample sample = {}) {
    pass(kStep);
    this->sample(sample);
  }
  Series series(Duration step = kStep, Duration span = std::chrono::hours(1)) {
    return get(store().series({.step = step, .span = span}));
  }
  std::vector<SeriesPoint> points(Duration step = kStep) { return series(step).points; }
  void carry(domain::Settle how, std::int64_t tokens = 0) {
    submit("a");
    settle(node_, claim_one(node_, "a"), how, [&](Settlement& end) {
      end.tokens = tokens;
      end.cost_micros = 10 * tokens;
    });
  }

  NodeNumber node_{};
};

}  // namespace stint::store
