#include "net/target.hpp"

#include "net/text.hpp"

namespace stint::net {
namespace {

/// Appends the decoded text, which is never longer than the encoded one.
bool append_decoded(std::string& out, std::string_view text, bool plus) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const int high = i + 1 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return false;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    } else if (c == '+' && plus) {
      c = ' ';
    }
    if (c == '\0') return false;
    out += c;
  }
  return true;
}

class Decoder {
 public:
  /// For parts of `whole`.
  Decoder(std::string& storage, std::string_view whole)
      : storage_(storage),
        plain_(whole.find('%') == std::string_view::npos && whole.find('+') == std::string_view::npos) {
    storage_.clear();
    if (!plain_) storage_.reserve(whole.size());  // views into it must stay valid while it grows
  }
  bool decode(std::string_view text, bool plus, std::string_view& out) {
    const bool as_it_is =
        plain_ || (text.find('%') == std::string_view::npos && (!plus || text.find('+') == std::string_view::npos));
    if (as_it_is) {
      out = text;
      return true;
    }
    const std::size_t begin = storage_.size();
    if (!append_decoded(storage_, text, plus)) return false;
    out = std::string_view(storage_).substr(begin);
    return true;
  }

 private:
  std::string& storage_;
  const bool plain_;  // nothing has to be decoded
};

bool parse_path(std::string_view path, Decoder& decoder, Target& out) {
  std::string_view rest = path.substr(1);
  while (!rest.empty()) {
    const std::size_t slash = rest.find('/');
    std::string_view segment;
    if (!decoder.decode(rest.substr(0, slash), false, segment)) return false;
    if (segment == "." || segment == "..") return false;
    if (out.segments.size() == Target::kPartsMax) return false;
    out.segments.push_back(segment);
    if (slash == std::string_view::npos) return true;
    rest.remove_prefix(slash + 1);
    if (rest.empty()) out.segments.emplace_back();  // `/runs/` is not `/runs`
  }
  return true;
}

bool parse_query(std::string_view query, Decoder& decoder, Target& out) {
  while (!query.empty()) {
    const std::size_t end = query.find('&');
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(end == std::string_view::npos ? query.size() : end + 1);
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    Field field;
    if (!decoder.decode(pair.substr(0, equals), true, field.name)) return false;
    const std::string_view value = equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1);
    if (!decoder.decode(value, true, field.value)) return false;
    if (out.query.size() == Target::kPartsMax) return false;
    out.query.push_back(field);
  }
  return true;
}

}  // namespace

bool parse_target(std::string_view text, std::string& decoded, Target& out) {
  out.authority = out.path = {};
  out.segments.clear();
  out.query.clear();
  if (text == "*") {
    out.path = text;
    return true;
  }
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (text.starts_with('/') || !starts_with_nocase(text, scheme)) continue;
    text.remove_prefix(scheme.size());
    out.authority = text.substr(0, text.find_first_of("/?#"));
    if (out.authority.empty()) return false;
    text.remove_prefix(out.authority.size());
    if (text.empty() || text.front() == '?') {
      out.path = "/";
    } else if (text.front() != '/') {
      return false;
    }
    break;
  }
  if (out.path.empty() && !text.starts_with('/')) return false;
  if (text.find('#') != std::string_view::npos) return false;  // a fragment is never sent
  const std::size_t question = text.find('?');
  if (out.path.empty()) out.path = text.substr(0, question);
  Decoder decoder(decoded, text);
  if (!parse_path(out.path, decoder, out)) return false;
  return question == std::string_view::npos || parse_query(text.substr(question + 1), decoder, out);
}

std::optional<std::string> percent_decoded(std::string_view text, bool plus) {
  std::string out;
  if (!append_decoded(out, text, plus)) return std::nullopt;
  return out;
}

}  // namespace stint::net
