/// Where a host limit lives: its name, its directory, the files in it. Files are shared with every other process that
/// uses the limit, and with flock(1): their names are a contract.
#pragma once

#include "stint/error.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stint::limit {

struct HostLimit {
  std::string name;  ///< `agent:review`, `gpu`
  std::string directory;
  std::uint32_t capacity = 1;  ///< `<stem>.capacity`, written by a resize, overrides it
  bool shared = false;         ///< between users: files that others may write
  bool asked = false;          ///< `capacity` comes from a command line: it must be what the other holders count to

  /// The name as used in file names.
  [[nodiscard]] std::string stem() const;
  [[nodiscard]] std::string slot_path(std::uint32_t index) const;
  [[nodiscard]] std::string line_path() const;
  [[nodiscard]] std::string capacity_path() const;
  [[nodiscard]] unsigned file_mode() const noexcept { return shared ? 0666 : 0600; }
};

/// A name could become that of another file, a capacity that of very many.
[[nodiscard]] Result<> check_name(std::string_view name);
[[nodiscard]] Result<> check_capacity(std::string_view name, std::int64_t capacity);

/// What the capacity file says, if there is one that says a number.
[[nodiscard]] std::optional<std::uint32_t> written_capacity(const HostLimit& limit);
/// N now: from the capacity file, else as configured.
[[nodiscard]] std::uint32_t capacity_now(const HostLimit& limit);
/// Writes the capacity file and wakes everybody in the line.
[[nodiscard]] Result<> resize(const HostLimit& limit, std::uint32_t capacity);
/// Takes the capacity file away, so that the configuration counts again, and wakes everybody in the line. False: there
/// was none.
[[nodiscard]] Result<bool> reset_capacity(const HostLimit& limit);
/// Makes the limit's directory. The error names what to do.
[[nodiscard]] Result<> make_directory(const HostLimit& limit);
/// Whether permits could be taken: the directory, or the folder in which it would be made, and the files that exist can
/// be written. Makes nothing.
[[nodiscard]] Result<> check_usable(const HostLimit& limit);

/// The number of a slot in a file name of this limit, -1 if it is none.
[[nodiscard]] int slot_index(std::string_view file, std::string_view stem) noexcept;

}  // namespace stint::limit
