#include "driver/secret_mask.hpp"

#include <algorithm>
#include <array>

namespace stint::driver {
namespace {

bool names_a_secret(std::string_view name) {
  constexpr std::array<std::string_view, 3> kEnds = {"_KEY", "_TOKEN", "_PASS"};
  constexpr std::array<std::string_view, 3> kParts = {"SECRET", "PASSWORD", "CREDENTIAL"};
  const auto ends = [&](std::string_view end) { return name.ends_with(end); };
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  return std::ranges::any_of(kEnds, ends) || std::ranges::any_of(kParts, has);
}

}  // namespace

SecretMask SecretMask::of_environment(const std::map<std::string, std::string, std::less<>>& environment) {
  SecretMask mask;
  for (const auto& [name, value] : environment) {
    if (names_a_secret(name)) mask.add(value);
  }
  return mask;
}

void SecretMask::add(std::string secret) {
  if (secret.size() < kLengthMin || std::ranges::find(secrets_, secret) != secrets_.end()) return;
  secrets_.push_back(std::move(secret));
  std::ranges::sort(secrets_, std::greater(), &std::string::size);
}

bool SecretMask::apply(std::string& text) const {
  constexpr std::string_view kMark = "***";
  bool changed = false;
  for (const std::string& secret : secrets_) {
    for (std::size_t at = text.find(secret); at != std::string::npos; at = text.find(secret, at + kMark.size())) {
      text.replace(at, secret.size(), kMark);
      changed = true;
    }
  }
  return changed;
}

}  // namespace stint::driver
