/// From the name of a model, as an agent file or a request gives it, to where its calls go: dialect, endpoint, source
/// of the key, account and price. Names and endpoints come from the settings; keys come from the environment or from a
/// file that only this user can read, and never from agent files.
#pragma once

#include "agent/settings.hpp"
#include "domain/price.hpp"
#include "model/dialect.hpp"
#include "model/secret.hpp"
#include "model/upstream.hpp"

#include <string>
#include <string_view>

namespace stint::model {

/// Where a key is read. Both empty: no key is sent.
struct CredentialSource {
  std::string key_env{};
  std::string key_file{};
  bool is_required = true;  ///< false: a server of the user's own, which may need none

  friend bool operator==(const CredentialSource&, const CredentialSource&) = default;
};

struct ProviderChoice {
  Dialect dialect = Dialect::chat;
  std::string provider;
  std::string model;     ///< as the provider names it
  std::string endpoint;  ///< base URL
  std::string account;   ///< name of the limit: `account:anthropic`
  CredentialSource credential;
  Price price;                     ///< unknown: nothing is settled as cost
  bool compatible_server = false;  ///< it speaks the dialect of another provider
  bool cache_reads_count = true;   ///< UpstreamOptions

  [[nodiscard]] UpstreamKey upstream_key() const;
};

/// `name` is a model of the settings (`anthropic/claude-sonnet`), a word of exactly one of them (`sonnet`), a provider
/// and any of its models (`openai/gpt-5`), or a model whose name shows its provider. Errc::invalid names what is
/// missing or ambiguous; Errc::denied: the key would go unencrypted to another host.
[[nodiscard]] Result<ProviderChoice> choose_provider(const agent::Settings& settings, std::string_view name);

/// Reads the key. Errc::denied names the variable or the file that lacks it or is not private, never its content.
[[nodiscard]] Result<Secret> blocking_read_credential(const CredentialSource& source,
                                                      const agent::EnvironmentVariables& environment);

}  // namespace stint::model
