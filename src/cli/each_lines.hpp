/// A file of submissions, one on each line: read in pieces, so that a pipe that goes on for hours is served as it
/// comes.
#pragma once

#include "engine/views.hpp"
#include "fleet/fleet.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stint::cli {

inline constexpr std::size_t kEachLineMax = 1 << 20;  ///< bytes: as much as arguments may have

/// Bytes become lines. One that is too long is cut out and told of; empty ones are passed over. Pure.
class LineCutter {
 public:
  struct CutLine {
    std::uint64_t number = 0;  ///< in the file, from 1
    std::string text;
    bool too_long = false;
  };
  void add(std::string_view bytes);
  /// What comes after the last line break is a line as well.
  void finish();
  /// At most so many whole lines.
  [[nodiscard]] std::vector<CutLine> take(std::size_t most);
  [[nodiscard]] bool empty() const noexcept { return ready_.empty(); }

 private:
  void end_line();
  std::string open_;
  bool too_long_ = false;
  bool any_ = false;  // of the open line
  std::uint64_t number_ = 0;
  std::vector<CutLine> ready_;
};

/// `like` is what all of them share. A line is an object of arguments, or the first value that has no name; without an
/// agent it is a prompt. `invalid` says what is wrong with it.
[[nodiscard]] Result<engine::Submission> read_submission(const LineCutter::CutLine& line,
                                                         const engine::Submission& like);

}  // namespace stint::cli
