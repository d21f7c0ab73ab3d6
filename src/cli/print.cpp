#include "cli/print.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>

namespace stint::cli {
namespace {

// Global like stdout itself.
std::atomic<int> first_error = 0;

}  // namespace

void note_lost_output(int error) noexcept {
  int none = 0;
  if (error != 0 && error != EPIPE) first_error.compare_exchange_strong(none, error);
}

void write_out(std::string_view text) noexcept {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) note_lost_output(errno);
}

void write_error(std::string_view text) noexcept { (void)std::fwrite(text.data(), 1, text.size(), stderr); }

void flush_out() noexcept {
  if (std::fflush(stdout) != 0) note_lost_output(errno);
}

int lost_output() noexcept {
  flush_out();
  return first_error;
}

}  // namespace stint::cli
