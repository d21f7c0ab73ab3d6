#include "fleet/submission_text.hpp"

#include "agent/text.hpp"
#include "domain/bounds.hpp"

namespace stint::fleet {
namespace {

Result<> check(const std::string& what, std::string_view text) {
  const auto at = agent::utf8_error(text);
  if (!at) return {};
  return fail(Errc::invalid, what + " is not valid UTF-8 from byte " + std::to_string(*at + 1) +
                                 " on, and would reach the agent changed. Write it to a file and pass the file's name");
}

/// Checks a text by which a run is found.
Result<> check_bounded(const std::string& what, std::string_view text, std::size_t bytes_max) {
  if (text.size() > bytes_max) {
    return fail(Errc::invalid,
                what + " has " + std::to_string(text.size()) + " bytes; the bound is " + std::to_string(bytes_max));
  }
  if (text.contains('\0')) return fail(Errc::invalid, what + " contains a NUL character");
  return check(what, text);
}

}  // namespace

Result<> check_text(const Submission& submission) {
  STINT_CHECK(check("the agent's name", submission.agent));
  for (std::size_t i = 0; i < submission.words.size(); ++i) {
    STINT_CHECK(check("argument " + std::to_string(i + 1), submission.words[i]));
  }
  for (const auto& [name, values] : submission.args) {
    STINT_CHECK(check("an argument's name", name));
    for (const std::string& value : values) STINT_CHECK(check("argument '" + name + "'", value));
  }
  STINT_CHECK(check("the prompt", submission.prompt));
  STINT_CHECK(check_bounded("'session'", submission.session, domain::kSessionBytesMax));
  STINT_CHECK(check_bounded("'Idempotency-Key'", submission.key, domain::kKeyBytesMax));
  STINT_CHECK(check_bounded("'model'", submission.model, domain::kModelBytesMax));
  return check("the program's path", submission.program);
}

}  // namespace stint::fleet
