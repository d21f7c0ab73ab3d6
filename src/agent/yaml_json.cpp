#include "agent/yaml_json.hpp"

#include <fmt/format.h>

#include <iterator>
#include <string_view>

namespace stint::agent {
namespace {

std::size_t skip_digits(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
  return at;
}

/// As JSON writes it: `0x10`, `.5`, `1.` and `+1` are not numbers.
bool is_json_number(std::string_view text) {
  std::size_t at = text.starts_with('-') ? 1 : 0;
  const std::size_t whole = skip_digits(text, at);
  if (whole == at || (text[at] == '0' && whole > at + 1)) return false;
  at = whole;
  if (at < text.size() && text[at] == '.') {
    const std::size_t end = skip_digits(text, at + 1);
    if (end == at + 1) return false;
    at = end;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    const std::size_t end = skip_digits(text, at);
    if (end == at) return false;
    at = end;
  }
  return at == text.size();
}

void write_string(std::string_view text, std::string& out) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

/// As deep as parse_yaml allows.
void write_json(const YamlNode& node, std::string& out) {
  const bool is_map = node.kind == YamlNode::Kind::map;
  switch (node.kind) {
    case YamlNode::Kind::null: out += "null"; return;
    case YamlNode::Kind::scalar: {
      const bool plain = !node.quoted && (node.text == "true" || node.text == "false" || node.text == "null" ||
                                          is_json_number(node.text));
      if (plain) {
        out += node.text;
      } else {
        write_string(node.text, out);
      }
      return;
    }
    case YamlNode::Kind::list:
    case YamlNode::Kind::map: break;
  }
  out += is_map ? '{' : '[';
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    if (i > 0) out += ',';
    if (is_map) {
      write_string(node.items[i].key, out);
      out += ':';
    }
    write_json(node.items[i], out);
  }
  out += is_map ? '}' : ']';
}

}  // namespace

std::string json_text(const YamlNode& node) {
  std::string out;
  write_json(node, out);
  return out;
}

}  // namespace stint::agent
