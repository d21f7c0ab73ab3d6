#include "driver/dialect_support.hpp"

#include "domain/driver_descriptor.hpp"

#include <boost/json/parse.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

namespace stint::driver {
namespace {

constexpr std::size_t kDepthMax = 200;
constexpr std::int64_t kCountMax = std::int64_t{1} << 48;  // as in a budget: a larger number is an error
constexpr std::string_view kMore = "…";

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }
bool digit(char c) { return c >= '0' && c <= '9'; }
char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

/// Where `part` begins in `text`, ignoring case.
std::size_t find(std::string_view text, std::string_view part) {
  const auto found = std::ranges::search(text, part, [](char a, char b) { return lower(a) == lower(b); });
  if (found.empty() && !part.empty()) return std::string_view::npos;
  return static_cast<std::size_t>(found.begin() - text.begin());
}

/// Seconds of a unit, by its first letters; 0 if it is unknown.
double seconds_of(std::string_view unit) {
  if (unit == "ms" || unit.starts_with("milli")) return 0.001;
  if (unit == "s" || unit.starts_with("sec")) return 1;
  if (unit == "m" || unit.starts_with("min")) return 60;
  if (unit == "h" || unit.starts_with("hour")) return 3600;
  if (unit == "d" || unit.starts_with("day")) return 86400;
  return 0;
}

}  // namespace

std::string_view to_string(ProgressKind kind) noexcept {
  switch (kind) {
    case ProgressKind::text: return "text";
    case ProgressKind::thinking: return "thinking";
    case ProgressKind::tool_start: return "tool_start";
    case ProgressKind::tool_end: return "tool_end";
    case ProgressKind::model_start: return "model_start";
    case ProgressKind::model_end: return "model_end";
    case ProgressKind::heartbeat: return "heartbeat";
    case ProgressKind::rate_info: return "rate_info";
    case ProgressKind::usage: return "usage";
    case ProgressKind::note: return "note";
    case ProgressKind::conversation: return "conversation";
  }
  return "unknown";
}

void add_retry_off(Launch& launch, std::string_view driver) {
  for (const auto& [name, value] : domain::find_driver(driver)->retry_off_variables) {
    launch.env.emplace_back(name, value);
  }
}

std::optional<json::object> parse_object(std::string_view line) {
  if (line.size() > Dialect::kLineMax) return std::nullopt;
  const std::size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string_view::npos || line[first] != '{') return std::nullopt;
  json::parse_options options;
  options.max_depth = kDepthMax;
  options.allow_invalid_utf8 = true;
  boost::system::error_code error;
  json::value value = json::parse(json::string_view(line.data(), line.size()), error, {}, options);
  if (error || !value.is_object()) return std::nullopt;
  return std::move(value.get_object());
}

std::string text_at(const json::object& object, std::string_view key) {
  const json::value* const value = object.if_contains(key);
  if (value == nullptr || !value->is_string()) return {};
  return {value->get_string().data(), value->get_string().size()};
}
const json::object* object_at(const json::object& object, std::string_view key) {
  const json::value* const value = object.if_contains(key);
  return value == nullptr ? nullptr : value->if_object();
}
const json::array* array_at(const json::object& object, std::string_view key) {
  const json::value* const value = object.if_contains(key);
  return value == nullptr ? nullptr : value->if_array();
}
std::optional<std::int64_t> number_at(const json::object& object, std::string_view key) {
  const json::value* const value = object.if_contains(key);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  const double real = value->to_number<double>();
  if (!(std::abs(real) < static_cast<double>(kCountMax))) return std::nullopt;
  return static_cast<std::int64_t>(real);
}
double real_at(const json::object& object, std::string_view key) {
  const json::value* const value = object.if_contains(key);
  return value != nullptr && value->is_number() ? value->to_number<double>() : 0;
}
bool truth_at(const json::object& object, std::string_view key) {
  const json::value* const value = object.if_contains(key);
  return value != nullptr && value->is_bool() && value->get_bool();
}
std::int64_t count_at(const json::object& object, std::string_view key) {
  return std::max<std::int64_t>(0, number_at(object, key).value_or(0));
}
std::int64_t micros_of(double dollars) {
  constexpr double kMicros = 1e6;
  if (!(dollars > 0)) return 0;
  return static_cast<std::int64_t>(std::min(dollars * kMicros + 0.5, static_cast<double>(kCountMax)));
}

std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  std::size_t size = most > kMore.size() ? most - kMore.size() : 0;
  while (size > 0 && continues(text[size])) --size;
  return std::string(text.substr(0, size)) + std::string(kMore);
}
std::string ending(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  std::size_t begin = text.size() - most + std::min(most, kMore.size());
  while (begin < text.size() && continues(text[begin])) ++begin;
  return std::string(kMore) + std::string(text.substr(begin));
}
std::string one_line(std::string_view text, std::size_t most) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  std::string out = shortened(text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1), most);
  std::ranges::replace_if(out, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return out;
}
void emit(std::vector<Progress>& out, ProgressKind kind, std::string_view text) {
  Progress& progress = out.emplace_back();
  progress.kind = kind;
  progress.text = shortened(text, Progress::kTextMax);
}

bool has(std::string_view text, std::string_view part) { return find(text, part) != std::string_view::npos; }
std::optional<int> status_in(std::string_view text) {
  for (std::size_t i = 0; i + 3 <= text.size(); ++i) {
    if ((text[i] != '4' && text[i] != '5') || !digit(text[i + 1]) || !digit(text[i + 2])) continue;
    const bool alone = (i == 0 || !(digit(text[i - 1]) || text[i - 1] == '.' || text[i - 1] == '$')) &&
                       (i + 3 == text.size() || !digit(text[i + 3]));
    if (alone) return (text[i] - '0') * 100 + (text[i + 1] - '0') * 10 + (text[i + 2] - '0');
  }
  return std::nullopt;
}

std::optional<Duration> delay_in(std::string_view text) {
  std::size_t at = std::string_view::npos;
  for (const std::string_view words : {"try again in ", "retry in ", "retry after "}) {
    at = find(text, words);
    if (at == std::string_view::npos) continue;
    text.remove_prefix(at + words.size());
    break;
  }
  if (at == std::string_view::npos) return std::nullopt;
  double seconds = 0;
  bool read = false;
  while (!text.empty() && digit(text.front())) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) break;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    while (text.starts_with(' ')) text.remove_prefix(1);
    std::string unit;
    while (!text.empty() && lower(text.front()) >= 'a' && lower(text.front()) <= 'z') {
      unit += lower(text.front());
      text.remove_prefix(1);
    }
    const double scale = seconds_of(unit);
    if (scale == 0) break;
    seconds += number * scale;
    read = true;
    while (text.starts_with(' ') || text.starts_with(',')) text.remove_prefix(1);
    if (text.starts_with("and ")) text.remove_prefix(4);
  }
  if (!read || !(seconds < std::chrono::duration<double>(kServerDelayMax).count())) return std::nullopt;
  return std::chrono::ceil<Duration>(std::chrono::duration<double>(seconds));
}

bool is_unreachable(std::string_view words) {
  if (has(words, "econnreset")) return false;  // a server had answered, whatever else the sentence contains
  for (const std::string_view part :
       {"waiting for network", "connection failed", "connection refused", "connectionrefused", "econnrefused",
        "enotfound", "eai_again", "enetunreach", "ehostunreach", "dns error", "unable to connect", "fetch failed"}) {
    if (has(words, part)) return true;
  }
  return false;
}

std::int64_t estimated_tokens(std::string_view text) {
  constexpr std::size_t kBytesPerToken = 4;
  return static_cast<std::int64_t>(text.size() / kBytesPerToken) + 1;
}

std::string network_wait(std::string_view why) {
  constexpr std::size_t kShown = 200;
  return fmt::format("it waits for the network or its provider ({})", one_line(why, kShown));
}

void classify_api_error(Outcome& outcome, std::string_view words) {
  const int status = outcome.http_status.value_or(0);
  const auto any = [words](std::initializer_list<std::string_view> parts) {
    return std::ranges::any_of(parts, [words](std::string_view part) { return has(words, part); });
  };
  if (any({"spend limit", "credit balance", "billing", "payment"})) {
    outcome.kind = OutcomeKind::api_error;  // not a rate limit, whatever the status: waiting does not help
  } else if (status == 401 || any({"not logged in", "/login", "invalid api key", "please log in", "codex login",
                                   "missing environment variable", "api_key environment variable", "oauth token"})) {
    outcome.kind = OutcomeKind::not_logged_in;
  } else if (status == 429 || any({"rate limit", "usage limit", "session limit", "weekly limit", "daily quota",
                                   "too many requests", "resource_exhausted"})) {
    outcome.kind = OutcomeKind::rate_limited;
    outcome.retry_after = delay_in(words);
  } else {
    outcome.kind = OutcomeKind::api_error;
    outcome.unreachable = status == 0 && is_unreachable(words);
    if (outcome.unreachable) {
      outcome.message = shortened("the provider can't be reached: " + outcome.message, Outcome::kMessageMax);
    }
  }
}

Outcome ended_without_result(std::string_view name, const ProcessEnd& end) {
  constexpr std::size_t kTailShown = 600;
  Outcome outcome;
  outcome.exit_status = end.exit_status;
  outcome.signal = end.signal;
  const std::string tail = ending(one_line(end.stderr_tail, ProcessEnd::kTailMax), kTailShown);
  const std::string said = tail.empty() ? "" : ": " + tail;
  if (end.oom) {
    outcome.kind = OutcomeKind::out_of_memory;
    outcome.message =
        fmt::format("{} ran out of memory and was killed; raise the agent's `memory:`, or run fewer at once", name);
  } else if (end.killed_by_us) {
    outcome.kind = OutcomeKind::cancelled;
    outcome.message = fmt::format("{} was stopped before it had a result", name);
  } else if (end.signal) {
    outcome.kind = OutcomeKind::crashed;
    outcome.message = fmt::format("{} was killed by signal {}{}", name, *end.signal, said);
  } else {
    outcome.kind = OutcomeKind::crashed;
    outcome.message =
        fmt::format("{} ended with exit status {} and without a result{}", name, end.exit_status.value_or(-1), said);
  }
  outcome.message = shortened(outcome.message, Outcome::kMessageMax);
  return outcome;
}

}  // namespace stint::driver
