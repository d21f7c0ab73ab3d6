#include "cli/output_printer.hpp"

#include "cli/print.hpp"

#include <cstdio>

namespace stint::cli {

void OutputPrinter::put(std::string_view text) {
  if (text.empty()) return;
  write_out(text);
  in_line_ = text.back() != '\n';
}

void OutputPrinter::print(const fleet::OutputReader::Piece& piece) {
  if (piece.left_out > 0) {
    if (raw_) {
      flush_out();
      print_error("stint: {}\n", fleet::left_out_text(piece.left_out));
    } else {
      put(clean_.finish());
      if (in_line_) put("\n");
      put(fleet::left_out_text(piece.left_out) + "\n");
    }
  }
  put(raw_ ? piece.text : clean_.add(piece.text));
  flush_out();
}

void OutputPrinter::finish() {
  if (!raw_) put(clean_.finish());
  if (!raw_ && in_line_) put("\n");
  flush_out();
}

}  // namespace stint::cli
