/// The providers that need no settings but a key. Others need an endpoint, and are taken for servers that speak OpenAI
/// Chat Completions.
#pragma once

#include "model/dialect.hpp"

#include <span>
#include <string_view>

namespace stint::model {

struct ProviderRow {
  std::string_view name;
  Dialect dialect = Dialect::chat;
  std::string_view endpoint;
  std::string_view key_env;
  std::span<const std::string_view> model_prefixes;  ///< of names of models that are given without a provider
  bool cache_reads_count = true;                     ///< tokens from the cache count to its rate limits
};

[[nodiscard]] std::span<const ProviderRow> provider_table() noexcept;
/// Null: not in the table.
[[nodiscard]] const ProviderRow* find_provider(std::string_view name) noexcept;

}  // namespace stint::model
