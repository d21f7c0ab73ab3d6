/// What one attempt does, resolved from the agent file, the settings and the checkout when the attempt begins:
/// templates are rendered and trust is decided. Drivers use it as it is and read no files of the project.
#pragma once

#include "domain/agent.hpp"
#include "domain/price.hpp"
#include "domain/usage.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stint::domain {

/// The prompt, model, tools and budget of an attempt: the same for every driver.
struct Invocation {
  std::string prompt;
  std::string system_prompt;             ///< added to the driver's own
  std::string model;                     ///< empty: the driver's default
  std::string program;                   ///< overrides the CLI's usual name
  std::vector<std::string> driver_args;  ///< verbatim, before the driver's own
  std::vector<std::string> command;      ///< of the driver `command`: an argv, rendered
  Permissions permissions = Permissions::edit;
  std::optional<std::vector<std::string>> tools;  ///< allowed tools; absent: all that the permissions allow
  std::vector<std::string> tools_denied;
  /// False: the CLI does not read settings, hooks, MCP servers and instructions of the folder that it works in.
  bool reads_checkout = false;
  std::optional<int> turns_max;
  std::optional<std::int64_t> tokens_max;  ///< what is left of the budget
  std::optional<std::int64_t> cost_micros_max;
  Price price;  ///< of the model, from the settings: for a driver that gets tokens only, no cost

  std::string conversation;      ///< to continue; empty: a new one
  Usage usage_before;            ///< of that conversation: Codex counts it again
  std::string new_conversation;  ///< the id of the conversation to begin; empty: the agent chooses
};

/// Where the model calls of an attempt go, for a driver that makes them in this process.
struct ModelEndpoint {
  std::string dialect;   ///< the name of the provider's protocol
  std::string provider;  ///< `anthropic`
  std::string account;   ///< the limit that a refusal pauses: `account:anthropic`
  std::string model;     ///< as the provider names it
  std::string url;       ///< base URL
  std::string key;       ///< also one of the attempt's secrets; empty: none is sent
  bool compatible_server = false;
  bool cache_reads_count = true;  ///< tokens read from the provider's cache count to its limits
};

struct AttemptSpec {
  std::string driver;  ///< by its registered name
  Invocation invocation;
  std::vector<std::string> secrets;  ///< of this run alone: masked in its output
  std::string note;                  ///< recorded before the work begins; empty: none

  // For drivers that make their calls in this process.
  ModelEndpoint endpoint;
  std::vector<Tool> tools;                ///< that the driver calls for the model
  std::string output;                     ///< JSON schema of the answer; empty: any text
  std::vector<LimitRequest> call_limits;  ///< of this process, taken for each model call, in this order

  // For drivers that start processes.
  std::string directory;                 ///< working directory; empty: that of this process
  std::vector<std::string> environment;  ///< changes to that of this process: `NAME=value`, or `NAME` to unset
  std::optional<Duration> idle_timeout;  ///< after so long without a sign of life it is stalled
  std::uint64_t memory_bytes_max = 0;    ///< of all its processes together; 0: not bounded
};

}  // namespace stint::domain
