/// Reads a file of submissions, one per line. Works on pieces, so that the lines of a long-lived pipe are submitted as
/// they arrive.
#pragma once

#include "engine/views.hpp"
#include "fleet/fleet.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stint::cli {

inline constexpr std::size_t kEachLineMax = 1 << 20;  ///< bytes: the bound of arguments

/// Cuts bytes into lines. Marks a line that is too long and drops its text; skips empty lines. Pure.
class LineCutter {
 public:
  struct CutLine {
    std::uint64_t number = 0;  ///< in the file, from 1
    std::string text;
    bool too_long = false;
  };
  void add(std::string_view bytes);
  /// Bytes after the last line break count as a line.
  void finish();
  /// Takes at most `most` complete lines.
  [[nodiscard]] std::vector<CutLine> take(std::size_t most);
  [[nodiscard]] bool empty() const noexcept { return ready_.empty(); }

 private:
  void end_line();
  std::string open_;
  bool too_long_ = false;
  bool any_ = false;  // the open line has bytes
  std::uint64_t number_ = 0;
  std::vector<CutLine> ready_;
};

/// `like`: what all submissions share. A line is a JSON object of arguments, or the first value without a name; without
/// an agent it is a prompt. Fails with `invalid`.
[[nodiscard]] Result<engine::Submission> read_submission(const LineCutter::CutLine& line,
                                                         const engine::Submission& like);

}  // namespace stint::cli
