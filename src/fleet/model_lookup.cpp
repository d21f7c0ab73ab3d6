#include "fleet/model_lookup.hpp"

#include "model/provider_choice.hpp"
#include "os/variables.hpp"

#include <utility>

namespace stint::fleet {

std::optional<project::FoundModel> find_model(const agent::Settings& settings, const std::string& model) {
  auto choice = model::choose_provider(settings, model);
  if (!choice) return std::nullopt;
  return project::FoundModel{.account = std::move(choice->account), .price = choice->price};
}

Result<project::ResolvedModel> blocking_resolve_model(const agent::Settings& settings, const std::string& model) {
  STINT_TRY(model::ProviderChoice choice, model::choose_provider(settings, model));
  STINT_TRY(const model::Secret key, model::blocking_read_credential(choice.credential, os::environment_variables()));
  return project::ResolvedModel{.endpoint = {.dialect = std::string(model::to_string(choice.dialect)),
                                             .provider = std::move(choice.provider),
                                             .account = std::move(choice.account),
                                             .model = std::move(choice.model),
                                             .url = std::move(choice.endpoint),
                                             .key = key.reveal(),
                                             .compatible_server = choice.compatible_server,
                                             .cache_reads_count = choice.cache_reads_count},
                                .price = choice.price,
                                .key_variable = std::move(choice.credential.key_env)};
}

}  // namespace stint::fleet
