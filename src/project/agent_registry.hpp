/// The agents of a project as an engine needs them: each with its entry for the store, and defaults filled in.
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

/// The runs of an agent that use another account than its own, because their submission chose a driver or model. In
/// the store they are an agent of their own, so that a pause of their account applies to them. People see one agent.
struct AccountVariant {
  domain::AgentEntry entry;
  std::string account;
};

struct AgentSpec {
  domain::Agent agent;
  domain::AgentEntry entry;
  std::string account;                                              ///< the limit that a rate limit pauses; empty: none
  std::map<std::string, std::string, std::less<>> driver_accounts;  ///< of each driver that a run may choose
  std::map<std::string, std::string, std::less<>> model_accounts;   ///< of models with a configured account
  std::map<std::string, AccountVariant, std::less<>> variants;      ///< by their names in the store
  PriceList prices;                                                 ///< of models, from the settings
  domain::BudgetSpec budget;                                        ///< with the settings' defaults
  BackoffRange backoff;                                             ///< between attempts
  domain::OnCrash on_crash = domain::OnCrash::doubt;
  std::optional<Error> refused;                               ///< why it must not run
  std::map<std::string, Error, std::less<>> refused_drivers;  ///< drivers that must not run it here, and why
  bool gone = false;  ///< its file was deleted: runs that were accepted before still run
};
using AgentRegistry = std::map<std::string, AgentSpec, std::less<>>;

/// The agent's name in a name in the store, without the variant.
[[nodiscard]] std::string_view agent_of(std::string_view name_in_store) noexcept;
/// The name in the store of an agent's runs that use that account. The separator can't occur in an agent's name.
[[nodiscard]] std::string variant_name(std::string_view agent, std::string_view account);
/// The name in the store for a run with that driver and model; empty: those of the agent.
[[nodiscard]] std::string name_in_store(const AgentSpec& spec, std::string_view driver, std::string_view model);
/// The store entry of an agent or of one of its variants; null: neither is in the registry.
[[nodiscard]] const domain::AgentEntry* find_entry(const AgentRegistry& registry, std::string_view name_in_store);
[[nodiscard]] const AgentSpec* find_spec(const AgentRegistry& registry, std::string_view name_in_store);

}  // namespace stint::project
