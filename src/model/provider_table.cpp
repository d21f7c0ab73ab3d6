#include "model/provider_table.hpp"

#include <algorithm>
#include <array>

namespace stint::model {
namespace {

constexpr std::array<std::string_view, 1> kAnthropicModels = {"claude-"};
constexpr std::array<std::string_view, 5> kOpenaiModels = {"gpt-", "o1", "o3", "o4", "chatgpt-"};
constexpr std::array<std::string_view, 1> kGeminiModels = {"gemini-"};
constexpr std::array kProviders = {
    ProviderRow{.name = "anthropic",
                .dialect = Dialect::anthropic,
                .endpoint = "https://api.anthropic.com",
                .key_env = "ANTHROPIC_API_KEY",
                .model_prefixes = kAnthropicModels,
                .cache_reads_count = false},
    ProviderRow{.name = "openai",
                .dialect = Dialect::responses,
                .endpoint = "https://api.openai.com",
                .key_env = "OPENAI_API_KEY",
                .model_prefixes = kOpenaiModels},
    ProviderRow{.name = "gemini",
                .dialect = Dialect::gemini,
                .endpoint = "https://generativelanguage.googleapis.com",
                .key_env = "GEMINI_API_KEY",
                .model_prefixes = kGeminiModels},
};

}  // namespace

std::span<const ProviderRow> provider_table() noexcept { return kProviders; }

const ProviderRow* find_provider(std::string_view name) noexcept {
  const auto* const row = std::ranges::find(kProviders, name, &ProviderRow::name);
  return row == kProviders.end() ? nullptr : row;
}

}  // namespace stint::model
