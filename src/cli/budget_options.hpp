/// The options that give a run its budget: --time, --attempts, --tokens, --cost. Shared by `run` and `submit`.
#pragma once

#include "cli/command.hpp"
#include "domain/agent.hpp"
#include "stint/error.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace stint::cli {

struct BudgetOptions {
  std::string time, tokens, cost;
  std::optional<std::int64_t> attempts;

  void declare(Command& command);
  /// `invalid` names the option whose value can't be read.
  [[nodiscard]] Result<domain::BudgetSpec> read() const;
};

}  // namespace stint::cli
