/// Events in the garage of `stint demo`, and their form as one line of JSON each.
#pragma once

#include "stint/time.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace stint::wire {

enum class DemoEventKind : std::uint8_t {
  waits,      ///< found no room and waits in line
  enters,     ///< was granted what it requested
  leaves,     ///< gave its permit back
  gives_up,   ///< its deadline passed while it waited
  cancelled,  ///< was cancelled while it waited or held a permit
  refused,    ///< requested more than the capacity
  sent_home,  ///< the semaphore was closed
  resized,    ///< the capacity changed
  closes,     ///< the garage admits no new cars
};
[[nodiscard]] std::string_view to_string(DemoEventKind kind) noexcept;

struct DemoEvent {
  Duration at{};  ///< since the beginning, in the demo's own time
  DemoEventKind kind = DemoEventKind::waits;
  std::string who;  ///< empty: the garage itself
  std::uint32_t units = 1;
  Duration took{};          ///< how long it waited (enters, gives_up, cancelled …) or stayed (leaves)
  std::uint32_t place = 0;  ///< position in line, from 1, of a waiting car
  bool was_inside = false;  ///< whether a cancelled car was inside
  // State after the event; a cancel is reported when it is requested, everything else when it has happened.
  std::uint32_t capacity = 0;
  std::uint32_t inside = 0;
  std::uint32_t waiting = 0;
};

/// The totals of a demo.
struct DemoSummary {
  Duration took{};
  std::uint32_t granted = 0;
  std::uint32_t gave_up = 0;
  std::uint32_t cancelled = 0;
  std::uint32_t refused = 0;
  std::uint32_t sent_home = 0;
  std::uint32_t inside_max = 0;
  std::uint32_t capacity_max = 0;
  std::uint32_t over_limit = 0;  ///< grants that exceeded the limit in force. Must be 0.
  std::uint32_t debt_max = 0;
  std::uint32_t line_max = 0;
  Duration wait_max{};
  std::uint32_t permits_out = 0;  ///< permits held at the end. Must be 0.
  bool interrupted = false;
};

/// One object, no line break.
[[nodiscard]] std::string to_json(const DemoEvent& event);
[[nodiscard]] std::string to_json(const DemoSummary& summary);

}  // namespace stint::wire
