/// What commands print, in one place. A command must not end because its words can't be written (a full disk, a
/// terminal that was closed): what it did is done, and its exit status has to say so. fmt::print throws there; these do
/// not.
///
/// Words on stdout that are lost are remembered, and main() turns a success into a failure. Words on stderr that are
/// lost are dropped: there is no other place to say so. Any thread.
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

/// Writes out what is still in the buffer of stdout.
void flush_out() noexcept;
/// For what is written to stdout by other ways: the errno of a write that failed.
void note_lost_output(int error) noexcept;
/// Flushes, and gives the errno of the first write to stdout that failed; 0: all has arrived. A reader that went away
/// has seen what it wanted: that is no failure.
[[nodiscard]] int lost_output() noexcept;

}  // namespace stint::cli
