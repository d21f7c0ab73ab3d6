// What wins, in this order:
//  1. What the error's body names: a spend limit, a daily quota, a context that is too long, …
//  2. x-should-retry.
//  3. The status. A 429 is a throttle only with a window of the server, and a quota without one: the same words stand
//     for both, and a quota that is retried blocks the account for longer.
#include "model/failure.hpp"

#include "model/dialects.hpp"
#include "model/json.hpp"
#include "model/rate_headers.hpp"
#include "stint/http_status.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace stint::model {
namespace {

constexpr std::size_t kKeyLengthMin = 16;  // shorter words are not keys

bool is_key_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.' || c == '*';
}

bool looks_like_key(std::string_view word, std::string_view before) {
  if (before.ends_with("Bearer ") || before.ends_with("bearer ")) return true;
  constexpr std::array<std::string_view, 5> kPrefixes{"sk-", "AIza", "xai-", "gsk_", "ya29."};
  return word.size() >= kKeyLengthMin &&
         std::ranges::any_of(kPrefixes, [word](std::string_view prefix) { return word.starts_with(prefix); });
}

/// In one line, bounded, with keys masked: providers repeat a wrong key in their message.
std::string shown(std::string_view text, std::size_t most) {
  const std::string line = one_line(text, kErrorBodyMax);
  std::string out;
  std::string_view rest = line;
  while (!rest.empty() && out.size() <= most) {
    std::size_t size = 0;
    while (size < rest.size() && is_key_character(rest[size])) ++size;
    const std::string_view word = rest.substr(0, size);
    out += size > 0 && looks_like_key(word, out) ? std::string_view("***") : word;
    rest.remove_prefix(size);
    if (rest.empty()) break;
    out += rest.front();
    rest.remove_prefix(1);
  }
  return one_line(out, most);
}

std::optional<Duration> header_delay(const Headers& headers, WallTime now) {
  const auto wait = [](const ServerDelay& delay) {
    return delay.kind == ServerDelay::Kind::wait ? std::optional(delay.wait) : std::nullopt;
  };
  for (const std::string_view name : {"retry-after-ms", "x-ms-retry-after-ms"}) {
    const auto value = header(headers, name);
    if (const auto delay = value ? wait(parse_retry_after_ms(*value)) : std::nullopt) return delay;
  }
  const auto value = header(headers, "retry-after");
  return value ? wait(parse_retry_after(*value, now)) : std::nullopt;
}

/// "Please try again in 6m0s.": some throttles name their window nowhere else.
std::optional<Duration> text_delay(std::string_view text) {
  for (const std::string_view words : {"try again in ", "retry in ", "Retry in "}) {
    const std::size_t at = text.find(words);
    if (at == std::string_view::npos) continue;
    std::string_view value = text.substr(at + words.size());
    value = value.substr(0, value.find_first_of(" ,;)\n"));
    while (value.ends_with('.')) value.remove_suffix(1);
    if (const auto delay = parse_duration(value)) return delay;
  }
  return std::nullopt;
}

/// A limit with nothing left says when it begins anew.
std::optional<Duration> limit_delay(const RateLimits& limits) {
  std::optional<Duration> longest;
  for (const RateCounter* const each :
       {&limits.requests, &limits.tokens, &limits.input_tokens, &limits.output_tokens}) {
    if (each->remaining == 0 && each->reset && (!longest || *longest < *each->reset)) longest = each->reset;
  }
  return longest;
}

std::optional<bool> should_retry(const Headers& headers) {
  const auto value = header(headers, "x-should-retry");
  if (value == "true") return true;
  if (value == "false") return false;
  return std::nullopt;
}

Duration until_time_of_day(std::chrono::hours time, WallTime now) {
  const auto day = std::chrono::floor<std::chrono::days>(now);
  WallTime then = day + time;
  if (then <= now) then += std::chrono::days(1);
  return then - now;
}

FailureKind kind_of_status(int status, const std::optional<Duration>& delay) {
  switch (status) {
    case 401: return FailureKind::auth;
    case 402: return FailureKind::spend_limit;
    case 403: return FailureKind::denied;
    case 404: return FailureKind::not_found;
    case 413: return FailureKind::context_too_long;
    case 408:
    case 409: return FailureKind::retry;
    case 429: return delay && *delay <= kThrottleMax ? FailureKind::retry : FailureKind::quota;
    case 503:
    case 529: return FailureKind::overload;
    default: break;
  }
  if (status >= 400 && status <= 499) return FailureKind::invalid;
  if (status >= 500 && status <= 599) return FailureKind::retry;
  return status == 0 ? FailureKind::ambiguous : FailureKind::invalid;  // a redirect: the URL is not the provider's
}

bool may_be_repeated(FailureKind kind) {
  return kind == FailureKind::retry || kind == FailureKind::overload || kind == FailureKind::ambiguous;
}

/// `status` is that of HTTP, or the one that an error inside a stream stands for.
Failure classify(const ErrorNote& note, int status, std::optional<Duration> delay, std::optional<bool> asked) {
  Failure failure;
  failure.delay = delay;
  failure.code = shown(note.code, Failure::kCodeMax);
  failure.message = shown(note.message, Failure::kMessageMax);
  failure.kind = note.kind.value_or(kind_of_status(status, delay));
  if (may_be_repeated(failure.kind)) {
    failure.repeat = status == 0 ? Retry::unknown : classify_http_status(status).retry;
    if (failure.repeat == Retry::never) failure.repeat = Retry::safe;  // the body names a throttle under another status
  }
  if (!note.kind && asked == true) {
    if (!may_be_repeated(failure.kind)) failure.kind = FailureKind::retry;
    failure.repeat = Retry::safe;
  }
  if (asked == false && may_be_repeated(failure.kind)) {
    failure.repeat = Retry::never;
    failure.kind = failure.kind == FailureKind::overload ? FailureKind::overload : FailureKind::failed;
  }
  if (!note.repeatable) failure.repeat = Retry::never;
  return failure;
}

Errc code_of(FailureKind kind) {
  switch (kind) {
    case FailureKind::retry:
    case FailureKind::overload:
    case FailureKind::ambiguous: return Errc::unavailable;
    case FailureKind::quota:
    case FailureKind::spend_limit: return Errc::exhausted;
    case FailureKind::auth:
    case FailureKind::denied: return Errc::denied;
    case FailureKind::invalid:
    case FailureKind::context_too_long:
    case FailureKind::not_found: return Errc::invalid;
    case FailureKind::failed: break;
  }
  return Errc::failed;
}

}  // namespace

std::string_view to_string(FailureKind kind) noexcept {
  switch (kind) {
    case FailureKind::retry: return "retry";
    case FailureKind::overload: return "overload";
    case FailureKind::quota: return "quota";
    case FailureKind::spend_limit: return "spend_limit";
    case FailureKind::auth: return "auth";
    case FailureKind::denied: return "denied";
    case FailureKind::invalid: return "invalid";
    case FailureKind::context_too_long: return "context_too_long";
    case FailureKind::not_found: return "not_found";
    case FailureKind::ambiguous: return "ambiguous";
    case FailureKind::failed: return "failed";
  }
  return "unknown";
}

Failure classify_response(Dialect dialect, int status, const Headers& headers, std::string_view body, WallTime now) {
  body = body.substr(0, kErrorBodyMax);
  ErrorNote note;
  if (const std::optional<json::value> value = parse_json(body)) {
    note = parts_of(dialect).read_error(*value);
  } else {
    note.message = body;  // a page of a proxy, or a line of text
  }
  std::optional<Duration> delay = header_delay(headers, now);
  if (!delay) delay = note.delay;
  if (!delay && note.resets) delay = until_time_of_day(*note.resets, now);
  if (!delay && !note.kind && classify_http_status(status).needs_window) {
    delay = text_delay(note.message);
    if (!delay) delay = limit_delay(read_rate_limits(dialect, headers, now));
  }
  Failure failure = classify(note, status, delay, should_retry(headers));
  failure.status = status;
  return failure;
}

Failure classify_note(const ErrorNote& note, WallTime now) {
  std::optional<Duration> delay = note.delay;
  if (!delay && note.resets) delay = until_time_of_day(*note.resets, now);
  if (!delay && !note.kind && classify_http_status(note.status).needs_window) delay = text_delay(note.message);
  return classify(note, note.status, delay, std::nullopt);
}

Failure broken_answer(std::string message) {
  Failure failure;
  failure.repeat = Retry::unknown;
  failure.message = std::move(message);
  return failure;
}

Error Failure::error() const {
  std::string what = status != 0 ? "HTTP " + std::to_string(status) : std::string("the model's answer");
  what.append(": ").append(to_string(kind));
  if (!code.empty()) what.append(": ").append(code);
  if (!message.empty()) what.append(": ").append(message);
  Error error(code_of(kind), repeat, std::move(what));
  if (delay) error = std::move(error).after(*delay);
  return error;
}

}  // namespace stint::model
