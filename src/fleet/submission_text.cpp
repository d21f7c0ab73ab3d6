#include "fleet/submission_text.hpp"

#include "agent/text.hpp"
#include "domain/bounds.hpp"

#include <fmt/format.h>

namespace stint::fleet {
namespace {

Error not_utf8(std::string_view what, std::size_t at) {
  return {Errc::invalid, fmt::format("{} is not valid UTF-8 from byte {} on, and would reach the agent changed. Write "
                                     "it to a file and pass the file's name",
                                     what, at + 1)};
}

Result<> check(std::string_view what, std::string_view text) {
  if (const auto at = agent::utf8_error(text)) return fail(not_utf8(what, *at));
  return {};
}

/// Checks a text by which a run is found.
Result<> check_bounded(std::string_view what, std::string_view text, std::size_t bytes_max) {
  if (text.size() > bytes_max) {
    return fail(Errc::invalid, fmt::format("{} has {} bytes; the bound is {}", what, text.size(), bytes_max));
  }
  if (text.contains('\0')) return fail(Errc::invalid, fmt::format("{} contains a NUL character", what));
  return check(what, text);
}

}  // namespace

Result<> check_text(const Submission& submission) {
  STINT_CHECK(check("the agent's name", submission.agent));
  for (std::size_t i = 0; i < submission.words.size(); ++i) {
    const auto at = agent::utf8_error(submission.words[i]);
    if (at) return fail(not_utf8(fmt::format("argument {}", i + 1), *at));
  }
  for (const auto& [name, values] : submission.args) {
    STINT_CHECK(check("an argument's name", name));
    for (const std::string& value : values) {
      if (const auto at = agent::utf8_error(value)) return fail(not_utf8(fmt::format("argument '{}'", name), *at));
    }
  }
  STINT_CHECK(check("the prompt", submission.prompt));
  STINT_CHECK(check_bounded("'session'", submission.session, domain::kSessionBytesMax));
  STINT_CHECK(check_bounded("'Idempotency-Key'", submission.key, domain::kKeyBytesMax));
  STINT_CHECK(check_bounded("'model'", submission.model, domain::kModelBytesMax));
  return check("the program's path", submission.program);
}

}  // namespace stint::fleet
