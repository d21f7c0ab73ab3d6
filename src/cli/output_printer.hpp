/// Prints the output of runs: made safe on a terminal, unchanged elsewhere. Notes about it go to stderr.
#pragma once

#include "cli/printable.hpp"
#include "fleet/follow.hpp"

namespace stint::cli {

class OutputPrinter {
 public:
  /// `raw`: unchanged, also on a terminal.
  OutputPrinter(bool colour, bool raw) noexcept : clean_(colour), raw_(raw) {}
  void print(const fleet::OutputReader::Piece& piece);
  /// Prints the rest, and ends the last line.
  void finish();

 private:
  void put(std::string_view text);
  CleanText clean_;
  const bool raw_;
  bool in_line_ = false;  // the last line has no end yet
};

}  // namespace stint::cli
