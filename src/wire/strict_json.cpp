#include "wire/strict_json.hpp"

#include "agent/text.hpp"
#include "wire/values.hpp"

#include <boost/json/basic_parser_impl.hpp>

#include <algorithm>
#include <vector>

namespace stint::wire {
namespace {

constexpr std::string_view kArgs = "args";

using boost::system::error_code;

/// Builds the value, and stops at anything ambiguous. The parser prescribes the names of these functions.
class StrictHandler {
 public:
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);

  explicit StrictHandler(NumbersAsText numbers) : numbers_(numbers) { stack_.reset(); }

  json::value release() { return stack_.release(); }
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_array_begin(error_code&) {
    ++depth_;
    return true;
  }
  bool on_array_end(std::size_t count, error_code&) {
    --depth_;
    stack_.push_array(count);
    return true;
  }
  bool on_object_begin(error_code&) {
    ++depth_;
    begins_.push_back(keys_.size());
    return true;
  }
  bool on_object_end(std::size_t count, error_code& error) {
    const auto begin = keys_.begin() + static_cast<std::ptrdiff_t>(begins_.back());
    std::sort(begin, keys_.end());
    if (const auto twice = std::adjacent_find(begin, keys_.end()); twice != keys_.end()) {
      return stop(error, "'" + agent::excerpt(*twice) + "' was sent twice: send it once");
    }
    keys_.erase(begin, keys_.end());
    begins_.pop_back();
    --depth_;
    stack_.push_object(count);
    return true;
  }
  bool on_key_part(json::string_view part, std::size_t, error_code&) { return keep(part); }
  bool on_key(json::string_view rest, std::size_t, error_code& error) {
    keep(rest);
    if (has_nul()) return stop(error, "the name of a member contains a NUL character");
    if (depth_ == 1) top_key_ = text_;
    last_key_ = text_;
    stack_.push_key(text_);
    keys_.push_back(std::exchange(text_, {}));
    return true;
  }
  bool on_string_part(json::string_view part, std::size_t, error_code&) { return keep(part); }
  bool on_string(json::string_view rest, std::size_t, error_code& error) {
    keep(rest);
    if (has_nul()) return stop(error, "'" + agent::excerpt(last_key_) + "' contains a NUL character");
    stack_.push_string(std::exchange(text_, {}));
    return true;
  }
  bool on_number_part(json::string_view part, error_code&) { return keep(part); }
  bool on_int64(std::int64_t value, json::string_view rest, error_code&) {
    return push_number(rest, [&] { stack_.push_int64(value); });
  }
  bool on_uint64(std::uint64_t value, json::string_view rest, error_code&) {
    return push_number(rest, [&] { stack_.push_uint64(value); });
  }
  bool on_double(double value, json::string_view rest, error_code&) {
    return push_number(rest, [&] { stack_.push_double(value); });
  }
  bool on_bool(bool value, error_code&) {
    stack_.push_bool(value);
    return true;
  }
  bool on_null(error_code&) {
    stack_.push_null();
    return true;
  }
  bool on_comment_part(json::string_view, error_code&) { return true; }
  bool on_comment(json::string_view, error_code&) { return true; }

 private:
  bool keep(json::string_view part) {
    text_.append(part.data(), part.size());
    return true;
  }
  [[nodiscard]] bool has_nul() const noexcept { return text_.find('\0') != std::string::npos; }
  bool stop(error_code& error, std::string problem) {
    problem_ = std::move(problem);
    error = make_error_code(json::error::syntax);
    return false;
  }
  template <class Push>
  bool push_number(json::string_view rest, Push push) {
    keep(rest);
    const std::string written = std::exchange(text_, {});
    const bool in_args = depth_ > 1 && top_key_ == kArgs;
    const bool as_text = numbers_ == NumbersAsText::everywhere || (numbers_ == NumbersAsText::in_args && in_args);
    if (as_text) {
      stack_.push_string(written);
    } else {
      push();
    }
    return true;
  }

  NumbersAsText numbers_;
  json::value_stack stack_;
  std::string text_;                 // of the current token
  std::string top_key_, last_key_;   // of the request's own member, and of any
  std::vector<std::string> keys_;    // of the open objects
  std::vector<std::size_t> begins_;  // where in `keys_` each of them begins
  std::size_t depth_ = 0;
  std::string problem_;
};

}  // namespace

Result<json::object> parse_strictly(std::string_view text, NumbersAsText numbers) {
  json::parse_options options;
  options.max_depth = kDepthMax;
  json::basic_parser<StrictHandler> parser(options, numbers);
  error_code error;
  const std::size_t read = parser.write_some(false, text.data(), text.size(), error);
  if (!error && read < text.size()) error = make_error_code(json::error::extra_data);
  if (!parser.handler().problem().empty()) return fail(Errc::invalid, parser.handler().problem());
  if (error) {
    return fail(Errc::invalid, "invalid JSON: " + error.message() + ", at byte " + std::to_string(read));
  }
  json::value value = parser.handler().release();
  if (!value.is_object()) return fail(Errc::invalid, "the body must be a JSON object");
  return std::move(value.get_object());
}

}  // namespace stint::wire
