/// Options that select runs, the same for `ls`, `cancel` and `retry`.
#pragma once

#include "cli/command.hpp"
#include "domain/system.hpp"
#include "store/store.hpp"

#include <string>
#include <vector>

namespace stint::cli {

struct FilterOptions {
  std::vector<std::string> states, holds;
  std::string agent, session, parent, search, since, until;

  /// Adds the options to a command; `verb` begins their help: "List only".
  void add_to(Command& command, const std::string& verb);
  /// Whether any was given.
  [[nodiscard]] bool given() const;
  /// `invalid` names the option. Times are absolute, or a duration before now.
  [[nodiscard]] Result<store::Filter> read(WallTime now) const;
};

}  // namespace stint::cli
