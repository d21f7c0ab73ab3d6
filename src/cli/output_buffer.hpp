/// A buffer before standard output, for a process that must not block on a slow reader: keeps what the reader has not
/// taken yet, and signals back-pressure to the producer. Output that can't be written is dropped and reported through
/// note_lost_output (cli/print.hpp). Own thread only.
#pragma once

#include "stint/notification.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace stint::cli {

class OutputBuffer {
 public:
  static constexpr std::size_t kFull = 256 << 10;  ///< bytes; above it back-pressure begins

  /// Does not change the descriptor's flags (it stays blocking): other processes share it.
  explicit OutputBuffer(int descriptor) noexcept : descriptor_(descriptor) {}
  OutputBuffer(const OutputBuffer&) = delete;
  OutputBuffer& operator=(const OutputBuffer&) = delete;

  /// Appends, and writes as much as the reader takes at once.
  void put(std::string_view text);
  /// Calls back with true when more than kFull bytes are buffered, with false when the buffer is empty again.
  void on_full(std::function<void(bool)> callback) { on_full_ = std::move(callback); }
  /// Writes what is buffered, until it is cancelled.
  Task<> run();
  /// Waits until the buffer is empty, or the reader is gone.
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
