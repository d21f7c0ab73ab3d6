/// The words of a sandbox: its resources, the actions on them, and the bounds of both. Pure values.
#pragma once

#include "stint/error.hpp"
#include "stint/semaphore.hpp"
#include "stint/time.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::playground {

inline constexpr std::size_t kResourcesMax = 4;     // as many as fit beside each other on a page
inline constexpr std::size_t kTasksMax = 64;        // as many as a diagram can show
inline constexpr std::size_t kActionsMax = 2000;    // a long lesson by hand; a replay of them takes a few ms
inline constexpr std::uint32_t kStepsMax = 20'000;  // several per action
inline constexpr std::size_t kNameBytesMax = 32;
inline constexpr std::uint32_t kUnitsMax = 100;                        // of a capacity, a request, a stream
inline constexpr Duration kTimeMax = std::chrono::hours(1);            // of one wait, virtual
inline constexpr Duration kReplayMax = std::chrono::milliseconds(50);  // of the processor, per request

/// `server` hands out connections without any limit: what a semaphore in front of it limits.
enum class Kind : std::uint8_t { semaphore, mutex, pool, server };
inline constexpr Kind kKinds[] = {Kind::semaphore, Kind::mutex, Kind::pool, Kind::server};
[[nodiscard]] std::string_view to_string(Kind kind) noexcept;

struct ResourceSpec {
  std::string name{};
  Kind kind = Kind::semaphore;
  std::uint32_t capacity = 1;    ///< of a semaphore or a pool
  std::uint32_t bypass_max = 0;  ///< of a semaphore
  friend bool operator==(const ResourceSpec&, const ResourceSpec&) = default;
};

enum class Verb : std::uint8_t {
  acquire,       ///< the task waits for `units` with `priority`, at most for `timeout`
  release,       ///< the task returns everything that it, or the task `of`, has of the resource
  return_units,  ///< the task returns `units` of what it has
  discard,       ///< the task returns its place in a pool and destroys the object
  work,          ///< the task sleeps for `time`
  stream,        ///< the task reads `units` tokens, one each `time`, and gives up after `timeout`
  cancel,        ///< cancels the task's scope
  resize,        ///< sets the capacity of a semaphore
  close,         ///< closes the resource
  bypass,        ///< sets `bypass_max` of a semaphore that is not in use, to `capacity`
  advance,       ///< the clock advances by `time`
};
inline constexpr Verb kVerbs[] = {Verb::acquire, Verb::release, Verb::return_units, Verb::discard,
                                  Verb::work,    Verb::stream,  Verb::cancel,       Verb::resize,
                                  Verb::close,   Verb::bypass,  Verb::advance};
[[nodiscard]] std::string_view to_string(Verb verb) noexcept;

struct Action {
  Verb verb = Verb::advance;
  std::string task{};
  std::string resource{};
  std::string of{};  ///< `release`: the task whose units are returned; empty: its own
  std::uint32_t units = 1;
  int priority = 0;
  std::uint32_t capacity = 0;
  Duration time{};
  std::optional<Duration> timeout{};
  bool owned = false;  ///< `stream`: the timeout stops the producer
  /// The step before which it is performed; empty: when nothing more can happen at that moment.
  std::optional<std::uint32_t> at{};
  friend bool operator==(const Action&, const Action&) = default;
};

enum class Order : std::uint8_t { fifo, seeded };
[[nodiscard]] std::string_view to_string(Order order) noexcept;

/// What a sandbox begins with.
struct Setup {
  std::uint64_t seed = 0;  ///< matters for `Order::seeded` only
  Order order = Order::fifo;
  std::vector<ResourceSpec> resources{};
  friend bool operator==(const Setup&, const Setup&) = default;
};

[[nodiscard]] const ResourceSpec* find(const Setup& setup, std::string_view name) noexcept;
/// Names, kinds and bounds. `invalid` says what is wrong.
[[nodiscard]] Result<> check(const Setup& setup);
/// Whether the action can be meant for these resources; not whether it will succeed.
[[nodiscard]] Result<> check(const Setup& setup, const Action& action);

}  // namespace stint::playground
