/// All commands that use the fleet, in the order in which help lists them.
#pragma once

#include "cli/cancel.hpp"
#include "cli/cost.hpp"
#include "cli/logs.hpp"
#include "cli/ls.hpp"
#include "cli/open.hpp"
#include "cli/pause.hpp"
#include "cli/scale.hpp"
#include "cli/settle.hpp"
#include "cli/show.hpp"
#include "cli/status.hpp"
#include "cli/submit.hpp"
#include "cli/top.hpp"

#include <optional>

namespace stint::cli {

class FleetCommands {
 public:
  explicit FleetCommands(CLI::App& app);
  /// Runs the chosen command and returns its exit status; none: no fleet command was chosen.
  std::optional<int> run(const domain::System& system);

 private:
  SubmitCommand submit_;
  ListCommand list_;
  ShowCommand show_;
  LogsCommand logs_;
  WhyCommand why_;
  CancelCommand cancel_;
  RetryCommand retry_;
  ResolveCommand resolve_;
  InboxCommand inbox_;
  AnswerCommand answer_;
  PauseCommand pause_;
  ResumeCommand resume_;
  StatusCommand status_;
  TopCommand top_;
  CostCommand cost_;
  OpenCommand open_;
  ScaleCommand scale_;
  DrainCommand drain_;
};

}  // namespace stint::cli
