/// Printing for all commands. A failed write (a full disk, a closed terminal) must not end a command: its work is done,
/// and its exit status has to report that. fmt::print would throw; these functions do not.
///
/// Lost output on stdout is remembered, and main() turns a success into a failure. Lost output on stderr is dropped:
/// there is no other place to report it. Any thread.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace stint::cli {

void write_out(std::string_view text) noexcept;
void write_error(std::string_view text) noexcept;

template <class... Args>
void print_out(fmt::format_string<Args...> format, Args&&... args) {
  write_out(fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void print_error(fmt::format_string<Args...> format, Args&&... args) {
  write_error(fmt::format(format, std::forward<Args>(args)...));
}

/// Flushes stdout.
void flush_out() noexcept;
/// Records the errno of a failed write to stdout that did not go through these functions.
void note_lost_output(int error) noexcept;
/// Flushes, and returns the errno of the first failed write to stdout; 0: none failed. EPIPE does not count: the reader
/// has seen what it wanted.
[[nodiscard]] int lost_output() noexcept;

}  // namespace stint::cli
