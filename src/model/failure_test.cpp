#include "model/failure.hpp"

#include "model/rate_headers.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace stint::model {
namespace {

using namespace std::chrono_literals;

// 2026-03-01 20:00:00 UTC
constexpr WallTime kEvening = WallTime(std::chrono::seconds(1772395200));

Failure failed(Dialect dialect, int status, std::string_view body, const Headers& headers = {}) {
  return classify_response(dialect, status, headers, body, kEvening);
}
std::string anthropic_body(std::string_view type, std::string_view message = "", std::string_view reason = "") {
  std::string error = std::string(R"({"type":")").append(type).append(R"(","message":")").append(message).append("\"");
  if (!reason.empty()) error.append(R"(,"details":{"error_code":")").append(reason).append("\"}");
  return R"({"type":"error","error":)" + error + R"(},"request_id":"req_1"})";
}
std::string openai_body(std::string_view type, std::string_view code, std::string_view message) {
  return std::string(R"({"error":{"message":")")
      .append(message)
      .append(R"(","type":")")
      .append(type)
      .append(R"(","param":null,"code":")")
      .append(code)
      .append("\"}}");
}
std::string gemini_body(int code, std::string_view message, std::string_view details) {
  return R"({"error":{"code":)" + std::to_string(code) +
         std::string(R"(,"status":"S","message":")")
             .append(message)
             .append(R"(","details":[)")
             .append(details)
             .append("]}}");
}

TEST(ModelFailure, by_the_status_alone) {
  const std::vector<std::tuple<int, FailureKind, Retry>> expected{
      {400, FailureKind::invalid, Retry::never},     {401, FailureKind::auth, Retry::never},
      {402, FailureKind::spend_limit, Retry::never}, {403, FailureKind::denied, Retry::never},
      {404, FailureKind::not_found, Retry::never},   {408, FailureKind::retry, Retry::safe},
      {409, FailureKind::retry, Retry::safe},        {413, FailureKind::context_too_long, Retry::never},
      {422, FailureKind::invalid, Retry::never},     {429, FailureKind::quota, Retry::never},
      {500, FailureKind::retry, Retry::unknown},     {502, FailureKind::retry, Retry::unknown},
      {503, FailureKind::overload, Retry::safe},     {504, FailureKind::retry, Retry::unknown},
      {529, FailureKind::overload, Retry::safe},     {302, FailureKind::invalid, Retry::never}};
  for (const Dialect dialect : kDialects) {
    for (const auto& [status, kind, repeat] : expected) {
      const Failure failure = failed(dialect, status, "<html>no JSON</html>");
      EXPECT_EQ(failure.kind, kind) << status;
      EXPECT_EQ(failure.repeat, repeat) << status;
      EXPECT_EQ(failure.status, status);
    }
  }
}

TEST(ModelFailure, a_throttle_has_a_window) {
  const auto limited = [](const Headers& headers) {
    return failed(Dialect::anthropic, 429, anthropic_body("rate_limit_error", "slow down"), headers);
  };
  const Failure failure = limited({{"Retry-After", "20"}});
  EXPECT_EQ(failure.kind, FailureKind::retry);
  EXPECT_EQ(failure.repeat, Retry::safe);
  EXPECT_EQ(failure.delay, 20s);
  EXPECT_EQ(failure.error().retry_after(), 20s);
  EXPECT_EQ(failure.error().code(), Errc::unavailable);
  EXPECT_EQ(limited({{"retry-after-ms", "1500"}, {"retry-after", "20"}}).delay, 1500ms) << "the more exact one";
  EXPECT_EQ(limited({{"x-ms-retry-after-ms", "250"}}).delay, 250ms);
  EXPECT_EQ(limited({{"retry-after", "0.25"}}).delay, 250ms);
  EXPECT_EQ(limited({{"retry-after", "Sun, 01 Mar 2026 20:01:00 GMT"}}).delay, 60s);
  EXPECT_EQ(limited({{"retry-after", "Sun, 01 Mar 2026 19:00:00 GMT"}}).delay, 0s) << "past: at once";
  for (const char* const garbage : {"-5", "soon", "", "nan", "1e"}) {
    EXPECT_EQ(limited({{"retry-after", garbage}}).kind, FailureKind::quota) << garbage;
  }
  EXPECT_EQ(limited({{"retry-after-ms", "-1"}, {"retry-after", "7"}}).delay, 7s);
}

TEST(ModelFailure, a_long_window_is_a_quota) {
  const Failure failure =
      failed(Dialect::anthropic, 429, anthropic_body("rate_limit_error"), {{"retry-after", "3600"}});
  EXPECT_EQ(failure.kind, FailureKind::quota);
  EXPECT_EQ(failure.delay, 1h);
  EXPECT_EQ(failure.error().retry(), Retry::never);
  EXPECT_EQ(failure.error().code(), Errc::exhausted);
}

TEST(ModelFailure, a_window_elsewhere_than_in_its_header) {
  EXPECT_EQ(failed(Dialect::chat, 429, openai_body("tokens", "rate_limit_exceeded", "Please try again in 6m0s.")).delay,
            6min);
  EXPECT_EQ(failed(Dialect::chat, 429, openai_body("tokens", "rate_limit_exceeded", "try again in 20ms, or less")).kind,
            FailureKind::retry);
  const Headers used_up{{"x-ratelimit-limit-requests", "60"},  {"x-ratelimit-remaining-requests", "0"},
                        {"x-ratelimit-reset-requests", "1s"},  {"x-ratelimit-limit-tokens", "1000"},
                        {"x-ratelimit-remaining-tokens", "5"}, {"x-ratelimit-reset-tokens", "9s"}};
  EXPECT_EQ(failed(Dialect::chat, 429, "{}", used_up).delay, 1s);
}

TEST(ModelFailure, the_server_may_overrule_the_status) {
  EXPECT_EQ(failed(Dialect::anthropic, 500, "{}", {{"x-should-retry", "false"}}).kind, FailureKind::failed);
  EXPECT_EQ(failed(Dialect::anthropic, 529, "{}", {{"x-should-retry", "false"}}).repeat, Retry::never);
  EXPECT_EQ(failed(Dialect::chat, 429, "{}", {{"x-should-retry", "true"}}).repeat, Retry::safe);
  EXPECT_EQ(failed(Dialect::chat, 400, "{}", {{"X-Should-Retry", "true"}}).kind, FailureKind::retry);
  EXPECT_EQ(failed(Dialect::chat, 400, "{}", {{"X-Should-Retry", "perhaps"}}).kind, FailureKind::invalid);
  const Failure spent =
      failed(Dialect::anthropic, 429, anthropic_body("rate_limit_error", "", "enforced_spend_limit_reached"),
             {{"x-should-retry", "true"}});
  EXPECT_EQ(spent.kind, FailureKind::spend_limit) << "a retry can't help";
  EXPECT_EQ(spent.repeat, Retry::never);
}

TEST(ModelFailure, anthropic_accounts) {
  const auto kind = [](int status, const std::string& body) { return failed(Dialect::anthropic, status, body).kind; };
  EXPECT_EQ(kind(402, anthropic_body("billing_error")), FailureKind::spend_limit);
  EXPECT_EQ(kind(400, anthropic_body("invalid_request_error", "Your credit balance is too low to access the API.")),
            FailureKind::spend_limit);
  EXPECT_EQ(kind(400, anthropic_body("invalid_request_error", "You have reached your specified API usage limits.")),
            FailureKind::spend_limit);
  EXPECT_EQ(kind(400, anthropic_body("invalid_request_error", "prompt is too long: 205000 tokens > 200000 maximum")),
            FailureKind::context_too_long);
  EXPECT_EQ(kind(400, anthropic_body("invalid_request_error", "messages.1: unexpected tool_use_id")),
            FailureKind::invalid);
  EXPECT_EQ(kind(413, anthropic_body("request_too_large")), FailureKind::context_too_long);
  EXPECT_EQ(kind(429, anthropic_body("rate_limit_error")), FailureKind::quota);
  EXPECT_EQ(kind(500, anthropic_body("overloaded_error")), FailureKind::overload) << "behind a gateway";
}

TEST(ModelFailure, openai_and_compatible_servers) {
  const auto kind = [](int status, const std::string& body, const Headers& headers = {}) {
    return failed(Dialect::chat, status, body, headers).kind;
  };
  EXPECT_EQ(kind(429, openai_body("insufficient_quota", "insufficient_quota", "x"), {{"retry-after", "1"}}),
            FailureKind::spend_limit);
  EXPECT_EQ(kind(400, openai_body("invalid_request_error", "context_length_exceeded", "x")),
            FailureKind::context_too_long);
  EXPECT_EQ(
      kind(400, R"({"object":"error","message":"This model's maximum context length is 4096 tokens.","code":400})"),
      FailureKind::context_too_long);
  EXPECT_EQ(kind(400, R"({"error":{"code":400,"message":"too big","type":"exceed_context_size_error"}})"),
            FailureKind::context_too_long);
  EXPECT_EQ(kind(503, R"({"error":{"code":503,"message":"Loading model","type":"unavailable_error"}})"),
            FailureKind::overload);
  EXPECT_EQ(kind(404, R"({"error":"model 'm' not found"})"), FailureKind::not_found);
  EXPECT_EQ(failed(Dialect::chat, 404, R"({"error":"model 'm' not found"})").message, "model 'm' not found");
  EXPECT_EQ(kind(401, openai_body("invalid_request_error", "invalid_api_key", "x")), FailureKind::auth);
}

TEST(ModelFailure, gemini_quotas) {
  const std::string retry = R"({"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"38.5s"})";
  const auto violation = [](std::string_view quota) {
    return std::string(R"({"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":")")
        .append(quota)
        .append("\"}]}");
  };
  const auto reason = [](std::string_view name) {
    return std::string(R"({"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":")").append(name).append("\"}");
  };
  const Failure minute = failed(Dialect::gemini, 429, gemini_body(429, "", violation("XPerMinuteY") + "," + retry));
  EXPECT_EQ(minute.kind, FailureKind::retry);
  EXPECT_EQ(minute.delay, 38500ms);
  const Failure day =
      failed(Dialect::gemini, 429, gemini_body(429, "", violation("RequestsPerDayPerProject") + "," + retry));
  EXPECT_EQ(day.kind, FailureKind::quota);
  EXPECT_EQ(day.delay, 12h) << "until 8:00 UTC, not the window of the minute";
  EXPECT_EQ(day.repeat, Retry::never);
  EXPECT_EQ(failed(Dialect::gemini, 429, gemini_body(429, "Please retry in 12.5s.", "")).delay, 12500ms);
  EXPECT_EQ(failed(Dialect::gemini, 429, gemini_body(429, "quota exceeded, limit: 0", retry)).kind,
            FailureKind::spend_limit);
  EXPECT_EQ(
      failed(Dialect::gemini, 429, gemini_body(429, "", R"({"@type":"x/google.rpc.RetryInfo","retryDelay":"301s"})"))
          .kind,
      FailureKind::quota);
  const Failure capacity = failed(Dialect::gemini, 429, gemini_body(429, "", reason("MODEL_CAPACITY_EXHAUSTED")));
  EXPECT_EQ(capacity.kind, FailureKind::overload);
  EXPECT_EQ(capacity.repeat, Retry::never);
  EXPECT_EQ(failed(Dialect::gemini, 400, gemini_body(400, "", reason("API_KEY_INVALID"))).kind, FailureKind::auth);
  EXPECT_EQ(
      failed(Dialect::gemini, 400, "[" + gemini_body(400, "The input token count (9) exceeds the maximum", "") + "]")
          .kind,
      FailureKind::context_too_long);
}

TEST(ModelFailure, messages_are_bounded_and_hold_no_key) {
  const Failure failure = failed(
      Dialect::chat, 401,
      openai_body("invalid_request_error", "invalid_api_key",
                  "Incorrect API key provided: sk-proj-abcdefghijklmnop. Sent: Bearer tokentokentoken\\n\\u0007end"));
  const std::string shown = failure.error().describe();
  EXPECT_EQ(shown.find("abcdefgh"), std::string::npos) << shown;
  EXPECT_EQ(shown.find("tokentoken"), std::string::npos) << shown;
  EXPECT_NE(shown.find("Incorrect API key provided: ***"), std::string::npos) << shown;
  EXPECT_EQ(shown.find_first_of("\n\a"), std::string::npos);
  const Failure page = failed(Dialect::chat, 502, "<html>" + std::string(1 << 20, 'x'));
  EXPECT_LE(page.message.size(), Failure::kMessageMax);
  EXPECT_TRUE(page.message.ends_with("…"));
}

TEST(ModelFailureProperty, any_body_and_any_header) {
  EXPECT_TRUE(rc::check([](const std::string& body, const std::string& value, std::uint16_t status) {
    for (const Dialect dialect : kDialects) {
      for (const char* const name : {"retry-after", "retry-after-ms", "x-should-retry", "x-ratelimit-reset-tokens"}) {
        const Failure failure = failed(dialect, status % 700, body, {{name, value}});
        RC_ASSERT(failure.message.size() <= Failure::kMessageMax);
        RC_ASSERT(!failure.delay || *failure.delay >= 0s);
        RC_ASSERT(failure.error().retry() == failure.repeat);
      }
    }
  }));
}

TEST(RateHeaders, anthropic_has_four_with_moments) {
  const RateLimits limits = read_rate_limits(Dialect::anthropic,
                                             {{"anthropic-ratelimit-requests-limit", "50"},
                                              {"Anthropic-RateLimit-Requests-Remaining", "49"},
                                              {"anthropic-ratelimit-requests-reset", "2026-03-01T20:00:01Z"},
                                              {"anthropic-ratelimit-tokens-limit", "70000"},
                                              {"anthropic-ratelimit-input-tokens-limit", "60000"},
                                              {"anthropic-ratelimit-input-tokens-remaining", "0"},
                                              {"anthropic-ratelimit-input-tokens-reset", "2026-03-01T19:00:00+00:00"},
                                              {"anthropic-ratelimit-output-tokens-limit", "10000"},
                                              {"anthropic-ratelimit-output-tokens-reset", "tomorrow"}},
                                             kEvening);
  EXPECT_EQ(limits.requests, (RateCounter{.limit = 50, .remaining = 49, .reset = 1s}));
  EXPECT_EQ(limits.tokens.limit, 70000);
  EXPECT_EQ(limits.input_tokens, (RateCounter{.limit = 60000, .remaining = 0, .reset = 0s}));
  EXPECT_EQ(limits.output_tokens.limit, 10000);
  EXPECT_EQ(limits.output_tokens.reset, std::nullopt);
}

TEST(RateHeaders, openai_has_two_with_durations) {
  for (const Dialect dialect : {Dialect::chat, Dialect::responses}) {
    const RateLimits limits = read_rate_limits(dialect,
                                               {{"x-ratelimit-limit-requests", "10000"},
                                                {"x-ratelimit-remaining-requests", "9999"},
                                                {"x-ratelimit-reset-requests", "12ms"},
                                                {"x-ratelimit-limit-tokens", "200000"},
                                                {"x-ratelimit-remaining-tokens", "150000"},
                                                {"x-ratelimit-reset-tokens", "6m0s"}},
                                               kEvening);
    EXPECT_EQ(limits.requests, (RateCounter{.limit = 10000, .remaining = 9999, .reset = 12ms}));
    EXPECT_EQ(limits.tokens, (RateCounter{.limit = 200000, .remaining = 150000, .reset = 6min}));
    EXPECT_FALSE(limits.input_tokens.known());
  }
}

TEST(RateHeaders, placeholders_and_garbage_are_unknown) {
  const Headers headers{{"x-ratelimit-limit-requests", "-1"},        {"x-ratelimit-remaining-requests", "-1"},
                        {"x-ratelimit-limit-tokens", "0"},           {"x-ratelimit-remaining-tokens", "0"},
                        {"x-ratelimit-reset-tokens", "6m0s"},        {"anthropic-ratelimit-tokens-limit", "many"},
                        {"anthropic-ratelimit-requests-limit", "5x"}};
  EXPECT_EQ(read_rate_limits(Dialect::chat, headers, kEvening), RateLimits());
  EXPECT_EQ(read_rate_limits(Dialect::anthropic, headers, kEvening), RateLimits());
  EXPECT_EQ(read_rate_limits(Dialect::gemini, headers, kEvening), RateLimits());
}

}  // namespace
}  // namespace stint::model
