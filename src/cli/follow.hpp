/// What a run prints, as it comes: from the store's two ends of it to a reader that has seen a part.
#pragma once

#include "engine/fleet.hpp"

#include <functional>
#include <string>

namespace stint::cli {

/// How much of an output somebody has seen. Pure.
class OutputReader {
 public:
  struct Piece {
    std::uint64_t left_out = 0;  ///< bytes before it that are gone, or were never kept
    std::string text;
  };
  /// What is new since the last call.
  [[nodiscard]] std::vector<Piece> take(const store::Output& output);

 private:
  std::uint64_t seen_ = 0;
};

/// "… 5000 bytes left out …"
[[nodiscard]] std::string left_out_text(std::uint64_t bytes);

/// Gives `out` all that the run prints, until it is at rest. The run as it is then.
Task<Result<engine::RunView>> follow(engine::Fleet& fleet, std::string id,
                                     std::function<void(const OutputReader::Piece&)> out);

}  // namespace stint::cli
