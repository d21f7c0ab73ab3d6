#include "project/agent_registry.hpp"

namespace stint::project {
namespace {

constexpr char kLaneMark = '@';

}  // namespace

std::string_view agent_of(std::string_view name_in_store) noexcept {
  return name_in_store.substr(0, name_in_store.find(kLaneMark));
}

std::string variant_name(std::string_view agent, std::string_view account) {
  constexpr std::string_view kKind = "account:";
  if (account.starts_with(kKind)) account.remove_prefix(kKind.size());
  std::string name(agent);
  return name.append(1, kLaneMark).append(account.empty() ? "none" : account);
}

std::string name_in_store(const AgentSpec& spec, std::string_view driver, std::string_view model) {
  const auto of_model = spec.model_accounts.find(model);
  const auto of_driver = spec.driver_accounts.find(driver);
  const std::string& account = of_model != spec.model_accounts.end()     ? of_model->second
                               : of_driver != spec.driver_accounts.end() ? of_driver->second
                                                                         : spec.account;
  if (account == spec.account) return spec.agent.name;
  std::string variant = variant_name(spec.agent.name, account);
  return spec.variants.contains(variant) ? variant : spec.agent.name;
}

const AgentSpec* find_spec(const AgentRegistry& registry, std::string_view name_in_store) {
  const auto found = registry.find(agent_of(name_in_store));
  return found == registry.end() ? nullptr : &found->second;
}

const domain::AgentEntry* find_entry(const AgentRegistry& registry, std::string_view name_in_store) {
  const AgentSpec* const spec = find_spec(registry, name_in_store);
  if (spec == nullptr || spec->entry.name == name_in_store) return spec == nullptr ? nullptr : &spec->entry;
  const auto variant = spec->variants.find(name_in_store);
  return variant == spec->variants.end() ? nullptr : &variant->second.entry;
}

}  // namespace stint::project
