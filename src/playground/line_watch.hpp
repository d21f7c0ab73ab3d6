/// Watches the holders and the waiters of one semaphore or mutex. Compares two of its listings and says what happened
/// in between. Internal to the observer.
#pragma once

#include "playground/observer.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::playground {

class LineWatch {
 public:
  using Emit = std::function<void(EventKind kind, const std::string& task, std::uint32_t units)>;
  struct Entry {
    std::string task;
    std::uint32_t units = 0;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  /// What a primitive shows of itself.
  struct Listing {
    std::uint32_t capacity = 0;
    bool closed = false;
    std::vector<Entry> holders;  ///< one per task
    std::vector<Entry> line;
    /// Units that are granted, but not yet delivered; empty: the primitive does not show it.
    std::optional<std::uint32_t> flying;
  };

  explicit LineWatch(const Semaphore& semaphore);
  explicit LineWatch(const Mutex& mutex);

  [[nodiscard]] const std::string& name() const noexcept;
  void look_at(const Semaphore& semaphore) noexcept { semaphore_ = &semaphore; }
  void look(bool quiet, const Emit& emit);

 private:
  [[nodiscard]] bool is_unchanged() const;
  [[nodiscard]] Listing list() const;
  void settle_gone(const Listing& now, const Emit& emit);
  void judge(std::vector<Entry> vanished, const Listing& now, const Emit& emit);
  void judge_mutex(const std::vector<Entry>& vanished, const Listing& now, const Emit& emit);

  const Semaphore* semaphore_ = nullptr;
  const Mutex* mutex_ = nullptr;
  Listing last_;
  std::vector<Entry> gone_;  // left the line; whether they were granted their units is not known yet
  bool flies_ = false;       // a grant was in flight at the last look
  std::int64_t available_ = 0;
};

}  // namespace stint::playground
