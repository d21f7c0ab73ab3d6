/// Commands with which a person settles runs: `retry`, `resolve`, `answer`, and the `inbox` that lists them.
#pragma once

#include "cli/command.hpp"
#include "cli/filter_options.hpp"
#include "domain/system.hpp"
#include "stint/error.hpp"
#include "stint/task.hpp"

#include <string>
#include <vector>

namespace stint::cli {

struct FleetAccess;

/// Lets a parked run go on, and ends the pause of the limit on which it is parked. Prints the result; returns the exit
/// status.
Task<Result<int>> answer_run(FleetAccess& access, const std::string& id, bool json);

class RetryCommand {
 public:
  explicit RetryCommand(CLI::App& app);
  [[nodiscard]] bool chosen() const;
  int run(const domain::System& system);

 private:
  Command command_;
  std::string id_;
  FilterOptions filter_;
  bool all_ = false, yes_ = false, json_ = false;
};

class ResolveCommand {
 public:
  explicit ResolveCommand(CLI::App& app);
  [[nodiscard]] bool chosen() const;
  int run(const domain::System& system);

 private:
  Command command_;
  std::string id_;
  bool done_ = false, rerun_ = false, discard_ = false;
  bool json_ = false;
};

class AnswerCommand {
 public:
  explicit AnswerCommand(CLI::App& app);
  [[nodiscard]] bool chosen() const;
  int run(const domain::System& system);

 private:
  Command command_;
  std::string id_;
  bool json_ = false;
};

class InboxCommand {
 public:
  explicit InboxCommand(CLI::App& app);
  [[nodiscard]] bool chosen() const;
  int run(const domain::System& system);

 private:
  Command command_;
  bool json_ = false;
};

}  // namespace stint::cli
