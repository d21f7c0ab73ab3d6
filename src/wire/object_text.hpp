/// A JSON object as text, member by member and without a tree: for what is written for every run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stint::wire {

/// A text in quotes. Bytes that are no UTF-8 become U+FFFD.
void append_text(std::string& out, std::string_view text);

/// A member's name is plain: it has neither quotes nor backslashes nor control characters, and is UTF-8.
class ObjectText {
 public:
  ObjectText();

  ObjectText& text(std::string_view name, std::string_view value);
  /// Left out if it is empty.
  ObjectText& text_if_any(std::string_view name, std::string_view value);
  ObjectText& number(std::string_view name, std::int64_t value);
  /// `value` is JSON.
  ObjectText& json(std::string_view name, std::string_view value);
  /// The object. Nothing can be added any more.
  [[nodiscard]] std::string end();

 private:
  void begin_member(std::string_view name);

  std::string out_;
};

}  // namespace stint::wire
