/// The C++ of a lesson as a page shows it: the part of the source file between `// [show]` and `// [/show]`, without
/// the marks that say which line is at work when an event happens. Pure.
///
/// A mark ends a line: `//@ released low: door lock`. Its words are event kinds, at most one beginning of task names
/// with a colon, and resources; without resources, or without a task, it stands for all of them.
#pragma once

#include "playground/observer.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::playground {

struct Mark {
  std::uint32_t line = 0;  ///< of the shown code, from 1
  std::vector<EventKind> kinds{};
  std::string task{};  ///< how the names of its tasks begin
  std::vector<std::string> resources{};
  friend bool operator==(const Mark&, const Mark&) = default;
};

struct ShownCode {
  std::string text{};
  std::vector<Mark> marks{};
  /// The first line whose mark fits the event.
  [[nodiscard]] std::optional<std::uint32_t> line_of(const Event& event) const;
};

[[nodiscard]] ShownCode show(std::string_view source);

}  // namespace stint::playground
