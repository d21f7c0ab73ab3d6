#include "fleet/request_digest.hpp"

#include "domain/run_id.hpp"

#include <boost/uuid/name_generator_sha1.hpp>
#include <boost/uuid/uuid.hpp>
#include <boost/uuid/uuid_io.hpp>

namespace stint::fleet {
namespace {

/// Writes each text with its length before it, so that no two submissions give the same bytes.
void add(std::string& bytes, std::string_view text) {
  bytes += std::to_string(text.size());
  bytes += ':';
  bytes += text;
}

template <class Texts>
void add_all(std::string& bytes, const Texts& texts) {
  bytes += std::to_string(texts.size());
  bytes += '[';
  for (const std::string& text : texts) add(bytes, text);
}

}  // namespace

std::string derived_id(std::string_view of, std::string_view name) {
  std::string bytes = "id ";
  add(bytes, of);
  add(bytes, name);
  const boost::uuids::uuid digest = boost::uuids::name_generator_sha1{boost::uuids::uuid{}}(bytes);
  std::uint64_t bits = 0;
  for (std::size_t i = 8; i < digest.size(); ++i)
    bits = bits << 8U | digest.data[i];  // the last 8 bytes: 62 bits of the digest
  return domain::run_id_of(bits);
}

std::string request_digest(const Submission& submission) {
  std::string bytes = "1 ";  // version of this format
  for (const std::string* const text :
       {&submission.agent, &submission.prompt, &submission.session, &submission.driver, &submission.model}) {
    add(bytes, text == &submission.agent && submission.agent_by_default ? std::string_view() : *text);
  }
  add_all(bytes, submission.words);
  bytes += std::to_string(submission.args.size());
  bytes += '{';
  for (const auto& [name, values] : submission.args) {  // in order of names
    add(bytes, name);
    add_all(bytes, values);
  }
  boost::uuids::name_generator_sha1 digest{boost::uuids::uuid{}};
  return boost::uuids::to_string(digest(bytes));
}

}  // namespace stint::fleet
