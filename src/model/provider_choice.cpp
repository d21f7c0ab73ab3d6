#include "model/provider_choice.hpp"

#include "model/provider_table.hpp"
#include "os/private_file.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace stint::model {
namespace {

using agent::ModelSetting;
using agent::Settings;

/// `provider/model`. Models may have slashes of their own.
struct ModelName {
  std::string provider, model;
};

ModelName split_name(std::string_view name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) return {.provider = {}, .model = std::string(name)};
  return {.provider = std::string(name.substr(0, slash)), .model = std::string(name.substr(slash + 1))};
}

/// `sonnet` is a word of `claude-sonnet-4`.
bool has_word(std::string_view name, std::string_view word) {
  const auto is_end = [&](std::size_t at) { return at >= name.size() || std::string_view("-._:/").contains(name[at]); };
  for (std::size_t at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1)) {
    if ((at == 0 || is_end(at - 1)) && is_end(at + word.size())) return true;
  }
  return false;
}

/// The model of the settings that a name without a provider means; empty: none.
Result<std::string> configured_model(const Settings& settings, std::string_view name) {
  std::vector<std::string> exact;
  std::vector<std::string> similar;
  for (const auto& [key, model] : settings.models) {
    const ModelName each = split_name(key);
    if (each.model == name) exact.push_back(key);
    if (has_word(each.model, name)) similar.push_back(key);
  }
  const std::vector<std::string>& found = exact.empty() ? similar : exact;
  if (found.empty()) return std::string();
  if (found.size() == 1) return found.front();
  std::string names;
  for (const std::string& each : found) names += (names.empty() ? "" : ", ") + each;
  return fail(Errc::invalid, "the model " + std::string(name) + " may be one of " + names + ": name one of them");
}

/// The provider that a model's own name shows.
const ProviderRow* provider_of_model(std::string_view model) {
  for (const ProviderRow& row : provider_table()) {
    const bool is_its =
        std::ranges::any_of(row.model_prefixes, [model](std::string_view prefix) { return model.starts_with(prefix); });
    if (is_its) return &row;
  }
  return nullptr;
}

/// A key must not be readable on the way.
bool is_safe_endpoint(std::string_view endpoint) {
  constexpr std::string_view kPlain = "http://";
  if (endpoint.starts_with("https://")) return true;
  if (!endpoint.starts_with(kPlain)) return false;
  constexpr std::array<std::string_view, 3> kLoopback = {"localhost", "127.0.0.1", "[::1]"};
  const std::string_view rest = endpoint.substr(kPlain.size());
  return std::ranges::any_of(kLoopback, [rest](std::string_view host) {
    if (!rest.starts_with(host)) return false;
    return rest.size() == host.size() || rest[host.size()] == ':' || rest[host.size()] == '/';
  });
}

CredentialSource credential_of(const Settings& settings, const std::string& account, const ProviderRow* row,
                               bool is_own_endpoint) {
  CredentialSource source{.key_env = {}, .key_file = {}, .is_required = !is_own_endpoint};
  const auto found = settings.accounts.find(account);
  if (found != settings.accounts.end()) {
    source = {.key_env = found->second.key_env, .key_file = found->second.key_file, .is_required = true};
  } else if (row != nullptr && !is_own_endpoint) {
    source.key_env = row->key_env;  // the provider's own key goes to the provider alone
  }
  return source;
}

Result<ModelName> resolve_name(const Settings& settings, std::string_view name) {
  if (name.empty()) return fail(Errc::invalid, "no model is named: set `model:` in the agent's file");
  if (settings.models.contains(name)) return split_name(name);
  ModelName split = split_name(name);
  const bool names_provider = !split.provider.empty();
  const ProviderRow* const shown = provider_of_model(name);
  if (names_provider && find_provider(split.provider) != nullptr) return split;
  STINT_TRY(const std::string configured, configured_model(settings, name));
  if (!configured.empty()) return split_name(configured);
  if (shown != nullptr) return ModelName{.provider = std::string(shown->name), .model = std::string(name)};
  return fail(Errc::invalid, "the model " + std::string(name) +
                                 " has no endpoint: add [models.\"PROVIDER/MODEL\"] to the settings, or name it as " +
                                 "PROVIDER/MODEL");
}

}  // namespace

UpstreamKey ProviderChoice::upstream_key() const {
  return {.provider = provider, .account = account, .model_class = model};
}

Result<ProviderChoice> choose_provider(const Settings& settings, std::string_view name) {
  STINT_TRY(const ModelName resolved, resolve_name(settings, name));
  const auto found = settings.models.find(resolved.provider + "/" + resolved.model);
  const ModelSetting setting = found == settings.models.end() ? ModelSetting() : found->second;
  const ProviderRow* const row = find_provider(resolved.provider);
  if (row == nullptr && setting.endpoint.empty()) {
    return fail(Errc::invalid, "the provider " + resolved.provider + " is unknown: set models.\"" + resolved.provider +
                                   "/" + resolved.model + "\".endpoint");
  }
  ProviderChoice choice;
  choice.provider = resolved.provider;
  choice.model = resolved.model;
  choice.endpoint = setting.endpoint.empty() ? std::string(row->endpoint) : setting.endpoint;
  const bool is_own_endpoint = row == nullptr || choice.endpoint != row->endpoint;
  choice.dialect = row == nullptr ? Dialect::chat : row->dialect;
  // Servers that copy this provider mostly know its older protocol alone.
  if (is_own_endpoint && choice.dialect == Dialect::responses) choice.dialect = Dialect::chat;
  choice.compatible_server = is_own_endpoint;
  choice.cache_reads_count = row == nullptr || row->cache_reads_count;
  const std::string account = setting.account.empty() ? resolved.provider : setting.account;
  choice.account = "account:" + account;
  choice.price = setting.price;
  choice.credential = credential_of(settings, account, row, is_own_endpoint);
  const bool sends_key = !choice.credential.key_env.empty() || !choice.credential.key_file.empty();
  if (sends_key && !is_safe_endpoint(choice.endpoint)) {
    return fail(Errc::denied, "the key of the account " + account + " is not sent unencrypted to another host: use " +
                                  "https for models.\"" + resolved.provider + "/" + resolved.model + "\".endpoint");
  }
  return choice;
}

Result<Secret> blocking_read_credential(const CredentialSource& source,
                                        const agent::EnvironmentVariables& environment) {
  std::string text;
  std::string where;
  if (!source.key_env.empty()) {
    where = "the variable " + source.key_env;
    const auto found = environment.find(source.key_env);
    if (found != environment.end()) text = found->second;
  }
  if (text.empty() && !source.key_file.empty()) {
    where = source.key_file;
    STINT_TRY(text, os::blocking_read_private(source.key_file));
  }
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  text = begin == std::string::npos ? std::string() : text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
  if (text.find_first_of("\r\n") != std::string::npos) return fail(Errc::denied, where + " has more than one line");
  if (!text.empty() || where.empty() || !source.is_required) {
    if (text.empty() && where.empty() && source.is_required) return fail(Errc::denied, "the account has no key");
    return Secret(std::move(text));
  }
  return fail(Errc::denied, where + " has no key");
}

}  // namespace stint::model
