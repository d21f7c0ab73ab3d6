/// The agents of a fleet as the engine needs them: each with what the store has to know, its defaults filled in.
#pragma once

#include "domain/agent.hpp"
#include "domain/price.hpp"
#include "store/store.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace stint::engine {

using domain::kPromptAgent;

struct AgentSpec {
  domain::Agent agent;
  store::AgentEntry entry;
  std::string account;        ///< the limit that a rate limit pauses; empty: none
  PriceList prices;           ///< of models, as the settings have them
  domain::BudgetSpec budget;  ///< with the settings' defaults
  domain::OnCrash on_crash = domain::OnCrash::doubt;
  std::optional<Error> refused;                               ///< why it must not run
  std::map<std::string, Error, std::less<>> refused_drivers;  ///< that must not do its work here, and why
  bool gone = false;  ///< its file was deleted: what was accepted before still runs
};
using Book = std::map<std::string, AgentSpec, std::less<>>;

}  // namespace stint::engine
