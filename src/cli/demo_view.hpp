/// Draws `stint demo`: pure functions from the garage's state to lines of text.
#pragma once

#include "stint/time.hpp"
#include "wire/demo_event.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace stint::cli {

/// The garage at one moment; durations in the demo's own time.
struct GarageView {
  struct Parked {
    std::string who;
    std::uint32_t units = 1;
    Duration inside{};
    Duration stay{};
  };
  struct Waiting {
    std::string who;
    std::uint32_t units = 1;
    Duration waited{};
    std::optional<Duration> patience_left;
  };
  Duration now{};
  Duration length{};
  std::uint32_t capacity = 0;
  std::uint32_t debt = 0;
  std::vector<Parked> parked;
  std::vector<Waiting> line;  // in order
  std::string caption;
  wire::DemoSummary sums;
};

/// Assigns a parking space to each unit. A semaphore only counts; this class keeps each unit in its place. Places above
/// the capacity are closed: empty ones at once, occupied ones (the debt) when they become free.
class Spaces {
 public:
  struct Space {
    std::string who;         ///< empty: free
    std::uint32_t part = 0;  ///< which of the guest's spaces this is, from 1
    std::uint32_t parts = 1;
    bool closed = false;   ///< free, and beyond the capacity
    bool closing = false;  ///< occupied beyond the capacity
  };
  void update(const std::vector<GarageView::Parked>& parked, std::uint32_t capacity);
  [[nodiscard]] const std::vector<Space>& all() const noexcept { return spaces_; }

 private:
  void leave(const std::vector<GarageView::Parked>& parked);
  void close_down(std::uint32_t capacity);
  void enter(const GarageView::Parked& guest);

  std::vector<Space> spaces_;
};

struct Look {
  int columns = 80;
  int rows = 24;
  bool colour = false;
  bool utf8 = true;
};

/// At most `rows` lines of at most `columns` columns each.
[[nodiscard]] std::vector<std::string> draw(const GarageView& view, const Spaces& spaces,
                                            const std::deque<wire::DemoEvent>& recent, const Look& look);

/// "parks after 1.2 s"
[[nodiscard]] std::string describe(const wire::DemoEvent& event);
/// One line for an event, for logs and pipes.
[[nodiscard]] std::string describe_line(const wire::DemoEvent& event);
/// Several lines, each with a line break.
[[nodiscard]] std::string describe(const wire::DemoSummary& summary);

}  // namespace stint::cli
