/// Prices of tokens, by model, from the settings: for usage that is reported without a cost.
#pragma once

#include "domain/usage.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace stint {

/// Of a model: millionths of the currency's unit per million tokens.
struct Price {
  std::int64_t input = 0, cache_read = 0, cache_write = 0, output = 0;

  [[nodiscard]] constexpr bool known() const noexcept { return input > 0 || output > 0; }
  /// Millionths, rounded up: what is used is never free.
  [[nodiscard]] constexpr std::int64_t of(const Usage& usage) const noexcept {
    constexpr double kPerMillion = 1e6;
    const double sum =
        static_cast<double>(usage.fresh_in) * static_cast<double>(input) +
        static_cast<double>(usage.cache_read) * static_cast<double>(cache_read > 0 ? cache_read : input) +
        static_cast<double>(usage.cache_write) * static_cast<double>(cache_write > 0 ? cache_write : input) +
        static_cast<double>(usage.out) * static_cast<double>(output);
    const double micros = sum / kPerMillion;
    const auto whole = static_cast<std::int64_t>(micros);
    return whole + (static_cast<double>(whole) < micros ? 1 : 0);
  }
  friend constexpr bool operator==(const Price&, const Price&) = default;
};

/// By the name of a model, or of a driver for those of its models that the list does not name.
using PriceList = std::map<std::string, Price, std::less<>>;

/// The price of the model, else of the driver; unknown if the list has neither.
[[nodiscard]] inline Price price_of(const PriceList& prices, std::string_view model, std::string_view driver) {
  const auto named = prices.find(model);
  if (named != prices.end()) return named->second;
  const auto any = prices.find(driver);
  return any == prices.end() ? Price() : any->second;
}

}  // namespace stint
