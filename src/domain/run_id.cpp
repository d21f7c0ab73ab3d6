#include "domain/run_id.hpp"

namespace stint::domain {

namespace {

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz234567";

}  // namespace

std::string new_run_id(const Ambient& ambient) {
  std::string id;
  for (std::size_t i = 0; i < kRunIdLength; ++i) id += kLetters[ambient.random() % kLetters.size()];
  return id;
}

bool is_run_id(std::string_view text) noexcept {
  return text.size() == kRunIdLength && text.find_first_not_of(kLetters) == std::string_view::npos;
}

}  // namespace stint::domain
