#include "cli/output_printer.hpp"

#include <cstdio>

namespace stint::cli {

void OutputPrinter::put(std::string_view text) {
  if (text.empty()) return;
  std::fwrite(text.data(), 1, text.size(), stdout);
  in_line_ = text.back() != '\n';
}

void OutputPrinter::print(const OutputReader::Piece& piece) {
  if (piece.left_out > 0) {
    put(raw_ ? std::string() : clean_.finish());
    if (in_line_) put("\n");
    put(left_out_text(piece.left_out) + "\n");
  }
  put(raw_ ? piece.text : clean_.add(piece.text));
  std::fflush(stdout);
}

void OutputPrinter::finish() {
  if (!raw_) put(clean_.finish());
  if (!raw_ && in_line_) put("\n");
  std::fflush(stdout);
}

}  // namespace stint::cli
