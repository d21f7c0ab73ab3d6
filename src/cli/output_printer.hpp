/// Prints what runs printed: on a terminal made safe for it, elsewhere byte by byte, with what is said about it on
/// stderr.
#pragma once

#include "cli/printable.hpp"
#include "fleet/follow.hpp"

namespace stint::cli {

class OutputPrinter {
 public:
  /// `raw`: byte by byte, whatever it is.
  OutputPrinter(bool colour, bool raw) noexcept : clean_(colour), raw_(raw) {}
  void print(const fleet::OutputReader::Piece& piece);
  /// The rest, and the end of the last line.
  void finish();

 private:
  void put(std::string_view text);
  CleanText clean_;
  const bool raw_;
  bool in_line_ = false;  // the last line has no end yet
};

}  // namespace stint::cli
