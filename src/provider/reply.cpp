#include "provider/reply.hpp"

#include "stint/retry_after.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace stint::provider {
namespace {

namespace json = boost::json;

constexpr std::string_view kMark = "@provider:";
constexpr std::size_t kPieceMax = 12;       // bytes of one token, at most
constexpr std::size_t kInputPieceMax = 16;  // of a tool's input
constexpr std::size_t kBytesPerToken = 4;   // the usual rule of thumb
constexpr std::string_view kKnown =
    "text, thinking, tool, input, tokens, rate, delay, first_token, fault, status, message, retry_after, after, times, "
    "cache_read, cache_write, deaf, header";

struct FaultName {
  std::string_view name;
  Fault fault;
};
constexpr std::array kFaults{
    FaultName{"none", Fault::none},
    FaultName{"status", Fault::status},
    FaultName{"spend_limit", Fault::spend_limit},
    FaultName{"hang", Fault::hang},
    FaultName{"hang_stream", Fault::hang_stream},
    FaultName{"half_stream", Fault::half_stream},
    FaultName{"cut", Fault::cut},
    FaultName{"reset", Fault::reset},
    FaultName{"reset_stream", Fault::reset_stream},
    FaultName{"malformed", Fault::malformed},
    FaultName{"error_event", Fault::error_event},
};

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::unexpected<Error> refuse(std::string_view key, std::string_view value, std::string_view wanted) {
  constexpr std::size_t kShownMax = 60;
  return fail(Errc::invalid, fmt::format("{}={}: {}", key, value.substr(0, kShownMax), wanted));
}

Result<> set_count(std::uint32_t& out, std::string_view key, std::string_view value, std::uint32_t most) {
  const auto read = number<std::uint32_t>(value);
  if (!read || *read > most) return refuse(key, value, fmt::format("give a whole number from 0 to {}", most));
  out = *read;
  return {};
}

Result<> set_duration(Duration& out, std::string_view key, std::string_view value) {
  std::optional<Duration> read = parse_duration(value);
  if (!read) {
    if (const auto seconds = number<double>(value); seconds && *seconds >= 0 && *seconds <= 1e6) {
      read = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*seconds));
    }
  }
  if (!read || *read > Reply::kDelayMax) return refuse(key, value, "give a time up to 1h, like 2s or 250ms");
  out = *read;
  return {};
}

Result<> set_rate(Reply& reply, std::string_view value) {
  std::string_view digits = value;
  if (digits.ends_with("/s")) digits.remove_suffix(2);
  const auto read = number<double>(digits);
  if (!read || !(*read >= 0) || *read > Reply::kRateMax) {
    return refuse("rate", value, "give tokens a second, like 40/s; 0 is all at once");
  }
  reply.rate = *read;
  return {};
}

Result<> set_fault(Reply& reply, std::string_view value) {
  for (const FaultName& known : kFaults) {
    if (known.name != value) continue;
    reply.fault = known.fault;
    if (reply.fault == Fault::status && reply.status == 0) reply.status = 500;
    return {};
  }
  const auto status = number<int>(value);
  if (!status || *status < 400 || *status > 599) {
    std::string names;
    for (const FaultName& known : kFaults) names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
    return refuse("fault", value, fmt::format("give a status from 400 to 599, or one of: {}", names));
  }
  reply.fault = Fault::status;
  reply.status = *status;
  return {};
}

Result<> set_input(Reply& reply, std::string_view value) {
  if (reply.tools.empty()) return refuse("input", value, "name the tool before its input");
  boost::system::error_code error;
  const json::value parsed = json::parse(json::string_view(value.data(), value.size()), error);
  if (error || !parsed.is_object() || value.size() > Reply::kInputMax) {
    return refuse("input", value, fmt::format("give a JSON object of at most {} bytes", Reply::kInputMax));
  }
  reply.tools.back().input = value;
  return {};
}

Result<> set_header(Reply& reply, std::string_view value) {
  const std::size_t colon = value.find(':');
  const bool clean = std::ranges::all_of(value, [](char c) { return c >= ' ' && c < 127; });
  if (colon == 0 || colon == std::string_view::npos || !clean) return refuse("header", value, "write name:value");
  if (reply.headers.size() >= Reply::kHeadersMax) {
    return refuse("header", value, fmt::format("at most {} headers", Reply::kHeadersMax));
  }
  std::string_view rest = value.substr(colon + 1);
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  reply.headers.emplace_back(value.substr(0, colon), rest);
  return {};
}

Result<> set_text(std::string& out, std::string_view key, std::string_view value) {
  if (value.size() > Reply::kTextMax) return refuse(key, value, fmt::format("longer than {} bytes", Reply::kTextMax));
  out = value;
  return {};
}

/// One line, since it becomes a header.
Result<> set_retry_after(Reply& reply, std::string_view value) {
  constexpr std::size_t kLongest = 64;
  const bool clean = std::ranges::all_of(value, [](char c) { return c >= ' ' && c < 127; });
  if (!clean || value.size() > kLongest) return refuse("retry_after", value, "give seconds or an HTTP date");
  reply.retry_after = value;
  return {};
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/// Takes a value off the front: a quoted string, a JSON object, or everything up to the next space.
Result<std::string> take_value(std::string_view& rest, std::string_view key) {
  std::string out;
  if (rest.starts_with('"')) {
    rest.remove_prefix(1);
    while (!rest.empty() && rest.front() != '"') {
      if (rest.front() == '\\' && rest.size() > 1) {
        rest.remove_prefix(1);
        out += rest.front() == 'n' ? '\n' : rest.front();
      } else {
        out += rest.front();
      }
      rest.remove_prefix(1);
    }
    if (rest.empty()) return fail(Errc::invalid, fmt::format("{}: the quote is not closed", key));
    rest.remove_prefix(1);
    return out;
  }
  int depth = 0;
  bool quoted = false;
  const bool object = rest.starts_with('{');
  while (!rest.empty()) {
    const char c = rest.front();
    if (object && quoted && c == '\\' && rest.size() > 1) {
      out += c;
      rest.remove_prefix(1);
      out += rest.front();
      rest.remove_prefix(1);
      continue;
    }
    if (object && c == '"') quoted = !quoted;
    if (object && !quoted) depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (!object && is_space(c)) break;
    out += c;
    rest.remove_prefix(1);
    if (object && depth == 0) break;
  }
  if (object && depth != 0) return fail(Errc::invalid, fmt::format("{}: the brace is not closed", key));
  return out;
}

std::uint64_t hash(std::string_view text) {  // FNV-1a: the same everywhere, which std::hash does not promise
  std::uint64_t value = 0xcbf29ce484222325ULL;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return value;
}

constexpr std::array<std::string_view, 6> kOpenings{
    "I have read it twice, slowly.",
    "Good question; I took a short walk around it.",
    "Done, and I swept the floor on the way out.",
    "I looked at it from both ends.",
    "Thank you for asking in whole sentences.",
    "I turned it over, and there was a smaller one underneath.",
};
constexpr std::array<std::string_view, 6> kMiddles{
    "The part that looked hard was easy, and the easy part had a cat asleep in it.",
    "Nothing was harmed, nothing was billed, and every permit came home.",
    "Three of my four reasons agree, and the fourth is at lunch.",
    "It works like a small garage: one drives out, the next drives in.",
    "I would have answered sooner, but the line was long and I did not push.",
    "It is now as simple as it can be, and slightly warmer.",
};
constexpr std::array<std::string_view, 4> kEndings{
    "That is all I know; the rest is yours.",
    "If it breaks, both halves belong to you.",
    "I shall wait here, quietly, at no cost.",
    "Have a calm day.",
};

std::vector<std::string> fitted(std::vector<std::string> pieces, std::uint32_t tokens) {
  const std::size_t length = pieces.size();
  if (length > Reply::kTokensMax) pieces.resize(Reply::kTokensMax);
  if (tokens == 0 || length == 0) return pieces;
  if (length < tokens && pieces.back().find_first_of(" \n") == std::string::npos) pieces.back() += ' ';
  pieces.reserve(tokens);
  while (pieces.size() < tokens) pieces.push_back(pieces[pieces.size() - length]);
  pieces.resize(tokens);
  return pieces;
}

/// A continuation byte of a UTF-8 character.
bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

std::vector<std::string> split_input(std::string_view text) {
  std::vector<std::string> pieces;
  while (!text.empty()) {
    std::size_t size = std::min(kInputPieceMax, text.size());
    while (size < text.size() && continues(text[size])) ++size;
    pieces.emplace_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return pieces;
}

}  // namespace

std::string_view to_string(Fault fault) noexcept {
  for (const FaultName& known : kFaults) {
    if (known.fault == fault) return known.name;
  }
  return "unknown";
}

Result<> set(Reply& reply, std::string_view key, std::string_view value) {
  constexpr std::uint32_t kCountMax = 1'000'000'000;
  if (key == "text") return set_text(reply.text.emplace(), key, value);
  if (key == "thinking") return set_text(reply.thinking, key, value);
  if (key == "message") return set_text(reply.message, key, value);
  if (key == "retry_after") return set_retry_after(reply, value);
  if (key == "tokens") return set_count(reply.tokens, key, value, Reply::kTokensMax);
  if (key == "after") return set_count(reply.after, key, value, Reply::kTokensMax);
  if (key == "times") return set_count(reply.times, key, value, kCountMax);
  if (key == "cache_read") return set_count(reply.cache_read, key, value, kCountMax);
  if (key == "cache_write") return set_count(reply.cache_write, key, value, kCountMax);
  if (key == "rate") return set_rate(reply, value);
  if (key == "delay") return set_duration(reply.delay, key, value);
  if (key == "first_token") return set_duration(reply.first_token, key, value);
  if (key == "fault" || key == "status") return set_fault(reply, value);
  if (key == "input") return set_input(reply, value);
  if (key == "header") return set_header(reply, value);
  if (key == "tool") {
    if (value.empty() || reply.tools.size() >= Reply::kToolsMax) {
      return refuse(key, value, fmt::format("give a tool's name, at most {} times", Reply::kToolsMax));
    }
    reply.tools.push_back({.name = std::string(value), .input = "{}"});
    return {};
  }
  if (key == "deaf") {
    if (value != "true" && value != "false") return refuse(key, value, "give true or false");
    reply.deaf = value == "true";
    return {};
  }
  return refuse(key, value, fmt::format("unknown key; allowed: {}", kKnown));
}

Result<> apply_directive(Reply& reply, std::string_view line) {
  while (true) {
    while (!line.empty() && is_space(line.front())) line.remove_prefix(1);
    if (line.empty()) return {};
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) {
      return fail(Errc::invalid, fmt::format("{}: write key=value", line.substr(0, line.find(' '))));
    }
    const std::string_view key = line.substr(0, equals);
    line.remove_prefix(equals + 1);
    STINT_TRY(const std::string value, take_value(line, key));
    STINT_CHECK(set(reply, key, value));
  }
}

std::vector<std::string_view> directives(std::string_view prompt) {
  std::vector<std::string_view> found;
  while (!prompt.empty()) {
    const std::size_t end = std::min(prompt.find('\n'), prompt.size());
    std::string_view line = prompt.substr(0, end);
    prompt.remove_prefix(std::min(end + 1, prompt.size()));
    while (!line.empty() && is_space(line.front())) line.remove_prefix(1);
    if (line.starts_with(kMark)) found.push_back(line.substr(kMark.size()));
  }
  return found;
}

std::string built_in_reply(std::string_view prompt) {
  const std::uint64_t seed = hash(prompt);
  return fmt::format("{} {} {}", kOpenings[seed % kOpenings.size()], kMiddles[(seed >> 16) % kMiddles.size()],
                     kEndings[(seed >> 32) % kEndings.size()]);
}

std::vector<std::string> split_tokens(std::string_view text) {
  std::vector<std::string> pieces;
  while (!text.empty()) {
    std::size_t size = 0;
    while (size < text.size() && size < kPieceMax && text[size] != ' ' && text[size] != '\n') ++size;
    while (size < text.size() && (text[size] == ' ' || text[size] == '\n') && size < 2 * kPieceMax) ++size;
    while (size < text.size() && continues(text[size])) ++size;  // keeps characters whole
    pieces.emplace_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return pieces;
}

std::uint32_t estimate_tokens(std::size_t bytes) noexcept {
  return static_cast<std::uint32_t>(std::min<std::size_t>(bytes / kBytesPerToken + 1, UINT32_MAX));
}

std::string Block::whole() const {
  std::string out;
  for (const std::string& piece : pieces) out += piece;
  return out;
}

std::vector<Block> make_blocks(const Reply& reply, std::string_view prompt, std::uint64_t serial) {
  std::vector<Block> blocks;
  const auto add = [&](Block::Kind kind, std::vector<std::string> pieces) -> Block& {
    Block& block = blocks.emplace_back();
    block.kind = kind;
    block.pieces = std::move(pieces);
    return block;
  };
  if (!reply.thinking.empty()) add(Block::Kind::thinking, fitted(split_tokens(reply.thinking), 0));
  if (reply.text || reply.tools.empty()) {
    const std::string text = reply.text ? *reply.text : built_in_reply(prompt);
    add(Block::Kind::text, fitted(split_tokens(text), reply.tokens));
  }
  for (const ToolCall& call : reply.tools) {
    Block& block = add(Block::Kind::tool, split_input(call.input));
    block.name = call.name;
    block.id = fmt::format("call_{:08}_{}", serial, blocks.size());
  }
  return blocks;
}

}  // namespace stint::provider
