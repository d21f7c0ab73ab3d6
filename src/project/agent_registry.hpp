/// The agents of a project as an engine needs them: each with what the store has to know, its defaults filled in.
#pragma once

#include "domain/agent.hpp"
#include "domain/agent_entry.hpp"
#include "domain/price.hpp"
#include "stint/error.hpp"
#include "stint/retry_core.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace stint::project {

/// The runs of an agent that use another account than its own, since their driver or model was chosen for them: in the
/// store they are an agent of their own, so that pauses of the right account hold them up. People see one agent.
struct AccountVariant {
  domain::AgentEntry entry;
  std::string account;
};

struct AgentSpec {
  domain::Agent agent;
  domain::AgentEntry entry;
  std::string account;                                              ///< the limit that a rate limit pauses; empty: none
  std::map<std::string, std::string, std::less<>> driver_accounts;  ///< of each driver that a run may choose
  std::map<std::string, std::string, std::less<>> model_accounts;   ///< of models that are configured with one
  std::map<std::string, AccountVariant, std::less<>> variants;      ///< by their names in the store
  PriceList prices;                                                 ///< of models, as the settings have them
  domain::BudgetSpec budget;                                        ///< with the settings' defaults
  BackoffRange backoff;                                             ///< between attempts
  domain::OnCrash on_crash = domain::OnCrash::doubt;
  std::optional<Error> refused;                               ///< why it must not run
  std::map<std::string, Error, std::less<>> refused_drivers;  ///< that must not do its work here, and why
  bool gone = false;  ///< its file was deleted: what was accepted before still runs
};
using AgentRegistry = std::map<std::string, AgentSpec, std::less<>>;

/// The agent of a name in the store, without its variant.
[[nodiscard]] std::string_view agent_of(std::string_view name_in_store) noexcept;
/// The name in the store of an agent's runs that use that account. No agent's name contains the character between.
[[nodiscard]] std::string variant_name(std::string_view agent, std::string_view account);
/// Where the store puts a run of the agent, by the driver and the model that were chosen for it; empty: the agent's.
[[nodiscard]] std::string name_in_store(const AgentSpec& spec, std::string_view driver, std::string_view model);
/// What the store knows of an agent, or of one of its variants; nothing: neither is in the registry.
[[nodiscard]] const domain::AgentEntry* find_entry(const AgentRegistry& registry, std::string_view name_in_store);
[[nodiscard]] const AgentSpec* find_spec(const AgentRegistry& registry, std::string_view name_in_store);

}  // namespace stint::project
