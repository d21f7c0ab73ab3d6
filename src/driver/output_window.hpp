/// Keeps the beginning and the end of a text that may be too long for a model. The rule: three quarters of the room for
/// the beginning, where a result begins, and a quarter for the end, where an error stands; between them a line says how
/// many bytes were left out. Cut between characters. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stint::driver {

class OutputWindow {
 public:
  explicit OutputWindow(std::size_t bytes_max) : head_max_(bytes_max - bytes_max / 4), tail_max_(bytes_max / 4) {}

  void add(std::string_view piece);
  /// What is not UTF-8 is replaced by U+FFFD.
  [[nodiscard]] std::string text() const;

 private:
  const std::size_t head_max_, tail_max_;
  std::string head_, tail_;  // the tail may have twice its bound, so that cutting costs nothing per piece
  std::uint64_t dropped_ = 0;
};

[[nodiscard]] std::string bounded_output(std::string_view text, std::size_t bytes_max);

}  // namespace stint::driver
