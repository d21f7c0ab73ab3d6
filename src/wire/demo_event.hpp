/// What happens in the garage of `stint demo`, and its form as one line of JSON each.
#pragma once

#include "stint/time.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace stint::wire {

enum class DemoEventKind : std::uint8_t {
  waits,      ///< found no room and stands in the line
  enters,     ///< was granted what it asked for
  leaves,     ///< gave its permit back
  gives_up,   ///< its deadline passed in the line
  cancelled,  ///< somebody stopped it, in the line or inside
  refused,    ///< asked for more than there will ever be
  sent_home,  ///< the semaphore was closed
  resized,    ///< the garage has another capacity
  closes,     ///< the garage takes nobody new
};
[[nodiscard]] std::string_view to_string(DemoEventKind kind) noexcept;

struct DemoEvent {
  Duration at{};  ///< since the beginning, in the demo's own time
  DemoEventKind kind = DemoEventKind::waits;
  std::string who;  ///< empty: the garage itself
  std::uint32_t units = 1;
  Duration took{};          ///< how long it waited (enters, gives_up, cancelled …) or stayed (leaves)
  std::uint32_t place = 0;  ///< in the line, from 1, of who waits
  bool was_inside = false;  ///< of a cancel
  // How things stand; a cancel is told when it is asked for, everything else when it has happened.
  std::uint32_t capacity = 0;
  std::uint32_t inside = 0;
  std::uint32_t waiting = 0;
};

/// The sums of a run.
struct DemoSummary {
  Duration took{};
  std::uint32_t granted = 0;
  std::uint32_t gave_up = 0;
  std::uint32_t cancelled = 0;
  std::uint32_t refused = 0;
  std::uint32_t sent_home = 0;
  std::uint32_t inside_max = 0;
  std::uint32_t capacity_max = 0;
  std::uint32_t over_limit = 0;  ///< grants that found more inside than the limit in force. Must be 0.
  std::uint32_t debt_max = 0;
  std::uint32_t line_max = 0;
  Duration wait_max{};
  std::uint32_t permits_out = 0;  ///< at the end. Must be 0.
  bool interrupted = false;
};

/// One object, no line break.
[[nodiscard]] std::string to_json(const DemoEvent& event);
[[nodiscard]] std::string to_json(const DemoSummary& summary);

}  // namespace stint::wire
