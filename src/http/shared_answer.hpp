/// An answer that many clients ask for often: made at most a few times a second, by whichever request finds it old, and
/// shared by all. Requests that come meanwhile wait for it: a hundred at once cost one reading of the store.
///
/// Read your writes: changed() marks the moment of a change. No request that begins after it gets an answer whose
/// reading began before it. Own thread only.
#pragma once

#include "stint/error.hpp"
#include "stint/notification.hpp"
#include "stint/task.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace stint::http {

class SharedAnswer {
 public:
  static constexpr Duration kFresh = std::chrono::milliseconds(250);   // so old may an answer be
  static constexpr Duration kGapMin = std::chrono::milliseconds(100);  // between the beginnings of two readings …
  static constexpr int kGapShare = 4;                                  // … and so many times what the last one took …
  static constexpr Duration kGapMax = std::chrono::seconds(2);         // … at most this

  using Text = std::shared_ptr<const std::string>;  // shared by the responses that are still being sent
  struct Parts {
    std::function<Task<Result<std::string>>()> make;
    std::function<Duration()> elapsed;  ///< a clock that only goes forward
  };
  explicit SharedAnswer(Parts parts) : parts_(std::move(parts)) {}

  /// A failure is shared like an answer.
  [[nodiscard]] Task<Result<Text>> get();
  void changed() noexcept { ++changes_; }

 private:
  class Making;
  [[nodiscard]] bool is_fresh() const;
  Task<> make();

  Parts parts_;
  std::optional<Result<Text>> last_;
  std::uint64_t changes_ = 0;
  std::uint64_t covered_ = 0;   // the changes before the reading of last_ began
  Duration read_at_{};          // when that was
  Duration next_at_{};          // the next reading begins no earlier
  std::uint64_t readings_ = 0;  // that came to their end
  bool making_ = false;
  Notification made_;
};

}  // namespace stint::http
