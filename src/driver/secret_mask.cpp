#include "driver/secret_mask.hpp"

#include "domain/address.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace stint::driver {
namespace {

bool names_a_secret(std::string_view name) {
  constexpr std::array<std::string_view, 7> kEnds = {"_KEY", "APIKEY", "TOKEN", "_PASS", "PASSWD", "_PAT", "_AUTH"};
  constexpr std::array<std::string_view, 4> kParts = {"SECRET", "PASSWORD", "PASSPHRASE", "CREDENTIAL"};
  const auto ends = [&](std::string_view end) { return name.ends_with(end) || name == end.substr(end[0] == '_'); };
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  return std::ranges::any_of(kEnds, ends) || std::ranges::any_of(kParts, has);
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned char byte = 0;
    const bool code = text[i] == '%' && i + 2 < text.size() &&
                      std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16).ptr == text.data() + i + 3;
    out += code ? static_cast<char>(byte) : text[i];
    if (code) i += 2;
  }
  return out;
}

/// How many bytes at the end are an incomplete UTF-8 character.
std::size_t begun_character(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0U) == 0x80U) continue;
    const std::size_t length = byte >= 0xF8U ? 1 : byte >= 0xF0U ? 4 : byte >= 0xE0U ? 3 : byte >= 0xC0U ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

}  // namespace

SecretMask SecretMask::of_environment(const std::map<std::string, std::string, std::less<>>& environment) {
  SecretMask mask;
  for (const auto& [name, value] : environment) {
    std::string upper = name;
    std::ranges::transform(upper, upper.begin(), [](char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; });
    if (names_a_secret(upper)) mask.add(value);
    mask.add_password_of(value);
  }
  return mask;
}

void SecretMask::add(std::string_view secret) {
  while (!secret.empty()) {
    const std::size_t end = std::min(secret.find_first_of("\r\n"), secret.size());
    add_line(secret.substr(0, end));
    secret.remove_prefix(std::min(end + 1, secret.size()));
  }
}

void SecretMask::add_password_of(std::string_view address) {
  for (const domain::TextSpan& span : domain::passwords_in(address)) {
    const std::string_view password = address.substr(span.from, span.size);
    add(password);
    add(percent_decoded(password));
  }
}

void SecretMask::add_line(std::string_view secret) {
  const bool frame = secret.starts_with("-----");  // "-----BEGIN PRIVATE KEY-----" is not secret
  if (frame || secret.size() < kLengthMin || std::ranges::find(secrets_, secret) != secrets_.end()) return;
  secrets_.emplace_back(secret);
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

std::string MaskedPieces::add(std::string_view piece) {
  held_ += piece;
  one_.apply(held_);
  other_.apply(held_);
  const std::size_t line = held_.rfind('\n') + 1;  // 0 if there is no line end
  const std::size_t secret = std::max<std::size_t>(1, std::max(one_.length_max(), other_.length_max())) - 1;
  const std::size_t waits = std::max(std::min(secret, held_.size() - line), begun_character(held_));
  std::string text = held_.substr(0, held_.size() - waits);
  held_.erase(0, text.size());
  return text;
}

std::string MaskedPieces::finish() { return std::exchange(held_, {}); }

}  // namespace stint::driver
