/// Standard output to a reader that may be slow, for a process that must go on meanwhile: what its reader does not take
/// yet is kept, and whoever says more is asked to wait. What can't be written at all is lost, and remembered as such
/// (cli/print.hpp). Own thread only.
#pragma once

#include "stint/notification.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace stint::cli {

class Outlet {
 public:
  static constexpr std::size_t kFull = 256 << 10;

  /// The descriptor stays as it is, also blocking: others have it, too.
  explicit Outlet(int descriptor) noexcept : descriptor_(descriptor) {}
  Outlet(const Outlet&) = delete;
  Outlet& operator=(const Outlet&) = delete;

  /// In order. What the reader takes at once is written when it returns.
  void put(std::string_view text);
  /// Is told when more than kFull is kept, and when there is room again.
  void on_full(std::function<void(bool)> callback) { on_full_ = std::move(callback); }
  /// Writes what is kept, until it is stopped.
  Task<> run();
  /// All is written, or nobody reads it any more.
  Task<> drained();

 private:
  void write_some();

  const int descriptor_;
  std::string kept_;
  bool full_ = false, closed_ = false;
  std::function<void(bool)> on_full_;
  Notification put_, written_;
};

}  // namespace stint::cli
