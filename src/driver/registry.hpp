/// The code of each driver, one line for each: how its CLI is spoken to, which tool rules it can enforce, which
/// conversation an attempt begins. `domain/driver_descriptor.hpp` has what is known of it as data, under the same name;
/// the compiler checks that both tables name the same drivers.
///
/// A new CLI: its entry in the descriptors, its file here (`dialect_NAME.cpp`), its line in `registry.cpp`. The line of
/// a driver that works in this process has no dialect; `DriverRouter::add` registers its implementation.
#pragma once

#include "domain/driver_descriptor.hpp"
#include "driver/dialect.hpp"
#include "driver/tool_rules.hpp"

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace stint::driver {

struct DriverEntry {
  std::string_view name;
  std::unique_ptr<Dialect> (*make_dialect)() = nullptr;  ///< null: it starts no process
  /// Fails with `Errc::invalid` if it can't enforce these rules. Null: it knows no tools.
  Result<> (*check_rules)(const ToolRules& rules) = nullptr;
  /// An id for the new conversation of an attempt, the same for the same mark; null: the CLI chooses its own.
  std::string (*choose_conversation)(std::string_view mark) = nullptr;
};

[[nodiscard]] std::span<const DriverEntry> driver_entries() noexcept;
/// Null: no driver has that name.
[[nodiscard]] const DriverEntry* find_entry(std::string_view name) noexcept;

/// Fails with `Errc::invalid` if no process driver has that name.
[[nodiscard]] Result<std::unique_ptr<Dialect>> make_dialect(std::string_view driver);
/// Fails with `Errc::invalid` if the driver can't enforce these rules.
[[nodiscard]] Result<> check_rules(const domain::DriverDescriptor& driver, const ToolRules& rules);

// Of the files dialect_*.cpp.
std::unique_ptr<Dialect> make_claude();
std::string choose_claude_conversation(std::string_view mark);
std::unique_ptr<Dialect> make_codex();
std::unique_ptr<Dialect> make_gemini();
std::unique_ptr<Dialect> make_command();

}  // namespace stint::driver
