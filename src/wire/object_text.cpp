#include "wire/object_text.hpp"

#include "wire/values.hpp"

namespace stint::wire {
namespace {

constexpr std::size_t kRoom = 256;  // for most

/// It stands in JSON as it is. Without an early end, so that many bytes are looked at together.
bool is_plain(std::string_view text) noexcept {
  bool plain = true;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    plain &= byte >= ' ' && byte < 0x7F && c != '"' && c != '\\';
  }
  return plain;
}

}  // namespace

void append_text(std::string& out, std::string_view text) {
  if (is_plain(text)) {
    ((out += '"') += text) += '"';
  } else {
    out += json::serialize(text_value(text));
  }
}

ObjectText::ObjectText() {
  out_.reserve(kRoom);
  out_ += '{';
}

void ObjectText::begin_member(std::string_view name) {
  out_ += out_.size() > 1 ? ",\"" : "\"";
  (out_ += name) += "\":";
}

ObjectText& ObjectText::text(std::string_view name, std::string_view value) {
  begin_member(name);
  append_text(out_, value);
  return *this;
}

ObjectText& ObjectText::text_if_any(std::string_view name, std::string_view value) {
  return value.empty() ? *this : text(name, value);
}

ObjectText& ObjectText::number(std::string_view name, std::int64_t value) { return json(name, std::to_string(value)); }

ObjectText& ObjectText::json(std::string_view name, std::string_view value) {
  begin_member(name);
  out_ += value;
  return *this;
}

std::string ObjectText::end() {
  out_ += '}';
  return std::move(out_);
}

}  // namespace stint::wire
