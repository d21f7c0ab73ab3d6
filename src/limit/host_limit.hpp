/// A host limit: its name, its directory, and the files in it. Every process that uses the limit shares these files,
/// and so does flock(1): their names are a contract.
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
  bool shared = false;         ///< between users: others may write the files
  bool asked = false;          ///< `capacity` comes from a command line and must match that of the other holders

  /// The name as used in file names.
  [[nodiscard]] std::string stem() const;
  [[nodiscard]] std::string slot_path(std::uint32_t index) const;
  [[nodiscard]] std::string line_path() const;
  [[nodiscard]] std::string capacity_path() const;
  [[nodiscard]] unsigned file_mode() const noexcept { return shared ? 0666 : 0600; }
};

/// A bad name could lead to another file, a bad capacity to very many files.
[[nodiscard]] Result<> check_name(std::string_view name);
[[nodiscard]] Result<> check_capacity(std::string_view name, std::int64_t capacity);

/// The number in the capacity file, if there is a valid one.
[[nodiscard]] std::optional<std::uint32_t> written_capacity(const HostLimit& limit);
/// N now: from the capacity file, else as configured.
[[nodiscard]] std::uint32_t capacity_now(const HostLimit& limit);
/// Writes the capacity file and wakes all waiters in the line.
[[nodiscard]] Result<> resize(const HostLimit& limit, std::uint32_t capacity);
/// Removes the capacity file, so that the configuration applies again, and wakes all waiters in the line. False:
/// there was none.
[[nodiscard]] Result<bool> reset_capacity(const HostLimit& limit);
/// Creates the limit's directory. The error names the next step.
[[nodiscard]] Result<> make_directory(const HostLimit& limit);
/// Whether permits could be taken: the directory, or the folder in which it would be created, and the existing files
/// are writable. Creates nothing.
[[nodiscard]] Result<> check_usable(const HostLimit& limit);

/// The number of the slot in a file name of this limit; -1: not a slot file.
[[nodiscard]] int slot_index(std::string_view file, std::string_view stem) noexcept;

}  // namespace stint::limit
