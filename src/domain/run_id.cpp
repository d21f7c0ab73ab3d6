#include "domain/run_id.hpp"

namespace stint::domain {

namespace {

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz234567";

}  // namespace

std::string new_run_id(const System& system) { return run_id_of(system.random()); }

std::string run_id_of(std::uint64_t bits) {
  static_assert(kLetters.size() == 32 && kRunIdLength * 5 <= 64, "one number is enough");
  std::string id;
  for (std::size_t i = 0; i < kRunIdLength; ++i, bits >>= 5U) id += kLetters[bits & 31U];
  return id;
}

bool is_run_id(std::string_view text) noexcept {
  return text.size() == kRunIdLength && text.find_first_not_of(kLetters) == std::string_view::npos;
}

}  // namespace stint::domain
