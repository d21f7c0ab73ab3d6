/// The sandboxes of a daemon, by id. Bounded: a new one takes the place of the one that was idle for the longest time,
/// and one that is idle for `kSandboxIdleMax` is dropped. Its reader can make it anew from its actions. Own thread
/// only.
#pragma once

#include "playground/sandbox.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace stint::playground {

inline constexpr std::size_t kSandboxesMax = 16;  // about 300 kB each at most
inline constexpr Duration kSandboxIdleMax = std::chrono::minutes(15);

class Sandboxes {
 public:
  using Handle = std::shared_ptr<const Sandbox>;  // shared with the request that replays it

  /// `id` must be new.
  Handle add(std::string id, Sandbox sandbox, Duration now);
  /// Null: there is none, or it was dropped.
  [[nodiscard]] Handle find(std::string_view id, Duration now);
  /// Replaces `before`. False if it is gone or was changed meanwhile.
  [[nodiscard]] bool replace(std::string_view id, const Handle& before, Sandbox after, Duration now);
  bool remove(std::string_view id);
  [[nodiscard]] std::size_t count(Duration now);

 private:
  struct Kept {
    Handle sandbox;
    Duration used;
  };
  void drop_idle(Duration now);
  std::map<std::string, Kept, std::less<>> kept_;
};

}  // namespace stint::playground
