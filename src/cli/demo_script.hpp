/// The script of `stint demo`: when workers arrive, and what happens to the garage. Pure: the same options give the
/// same script. The outcome (who waits, who is granted when) is not scripted: the semaphore decides it.
#pragma once

#include "stint/time.hpp"

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace stint::cli {

struct DemoOptions {
  std::uint32_t capacity = 4;
  std::uint32_t workers = 9;
  Duration length = std::chrono::seconds(22);
  std::uint64_t seed = 1;
};

/// One round of a worker.
struct Visit {
  Duration drive{};                  ///< before it arrives
  Duration stay{};                   ///< once it is inside
  std::optional<Duration> patience;  ///< its deadline, counted from its arrival; none: waits for ever
  std::uint32_t units = 1;
  int priority = 0;
};

/// What one worker does, round after round.
class Habits {
 public:
  Habits(std::uint64_t seed, std::uint32_t worker);
  Visit next();

 private:
  Duration draw(Duration least, Duration most);

  std::mt19937_64 random_;
  const std::uint32_t worker_;
  Duration first_arrival_;
  bool first_ = true;
};

enum class ActKind : std::uint8_t {
  say,          ///< only shows the caption
  large,        ///< a worker asks for `number` units
  cancel_line,  ///< cancels a waiting worker
  cancel_in,    ///< cancels a worker that is inside
  resize,       ///< to `number`
  whole,        ///< a worker asks for all units, goes to the head of the line, and is cancelled there
  close,
};

struct Act {
  Duration at{};
  ActKind kind = ActKind::say;
  std::uint32_t number = 0;
  std::string who;
  std::string caption;  ///< shown from here on
};

/// In order of time. Omits acts that a small capacity can't show.
[[nodiscard]] std::vector<Act> script(const DemoOptions& options);

/// Unique names: van, cab … scoot, van2 …
[[nodiscard]] std::string worker_name(std::uint32_t worker);

}  // namespace stint::cli
