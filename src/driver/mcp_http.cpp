// MCP over streamable HTTP: every message is a POST of its own, answered with JSON, with a stream of events or with
// nothing. The only file with the names of its headers.
#include "driver/dialect_support.hpp"
#include "driver/event_data.hpp"
#include "driver/mcp_connection.hpp"
#include "stint/combinators.hpp"
#include "stint/http_status.hpp"
#include "stint/scope.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stint::driver {
namespace {

using namespace std::chrono_literals;

constexpr Duration kSetupMax = 30s;      // for a message that is not a call
constexpr Duration kEndSessionMax = 2s;  // for the DELETE
constexpr std::size_t kHeaderShown = 200;
constexpr std::size_t kSessionIdBytesMax = 1024;

bool is_type(const net::ReplyHead& head, std::string_view type) {
  return head.header("Content-Type").value_or("").starts_with(type);
}

/// Visible ASCII, as the specification wants it: it is sent back in a header.
bool is_session_id(std::string_view id) {
  return !id.empty() && id.size() <= kSessionIdBytesMax &&
         std::ranges::all_of(id, [](char c) { return c >= 0x21 && c <= 0x7E; });
}

}  // namespace

Task<> McpHttp::run() { co_await finally_do(serve(), end_session(), kEndSessionMax + 1s); }

Task<> McpHttp::serve() {
  post(session_.open());
  auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(watch());
    while (!is_over()) {
      const std::uint64_t seen = changed_.count();
      if (outbox_.empty()) {
        co_await changed_.wait(seen);
        continue;
      }
      std::string text = std::move(outbox_.front());
      outbox_.pop_front();
      const Result<> sent = co_await with_timeout(kSetupMax, exchange(0, std::move(text), {}));
      if (!sent && session_.phase() != McpSession::Phase::ready) fail_session(sent.error());
    }
    scope.cancel();
  };
  (void)co_await with_scope(std::ref(body));  // its only failure is that it was cancelled, above
}

/// Ends what the server keeps for this session.
Task<> McpHttp::end_session() {
  closing_ = true;
  changed_.notify();
  if (server_session_.empty()) co_return;
  net::Ask ask{.method = "DELETE", .url = options_.url, .headers = headers()};
  (void)co_await with_timeout(kEndSessionMax, client_.ask(std::move(ask)));  // a server need not offer it
}

net::Headers McpHttp::headers() const {
  net::Headers out = options_.headers;
  out.emplace_back("Accept", "application/json, text/event-stream");
  if (!session_.revision().empty()) out.emplace_back("MCP-Protocol-Version", session_.revision());
  if (!server_session_.empty()) out.emplace_back("Mcp-Session-Id", server_session_);
  return out;
}

void McpHttp::post(std::string text) {
  if (outbox_.size() >= kOutboxMax) return fail_session(Error(Errc::full, "MCP server: too many messages to answer"));
  outbox_.push_back(std::move(text));
  changed_.notify();
}

Task<Result<>> McpHttp::transfer(std::int64_t id, std::string text, std::string call_id) {
  STINT_CO_CHECK(co_await exchange(id, std::move(text), std::move(call_id)));
  if (has_answer(id) || session_.error()) co_return {};
  co_return fail(Error(Errc::unavailable, Retry::unknown, "MCP server: its reply has no answer to the call"));
}

Task<Result<>> McpHttp::exchange(std::int64_t id, std::string text, std::string call_id) {
  net::Ask ask{.method = "POST", .url = options_.url, .headers = headers(), .body = std::move(text)};
  ask.headers.emplace_back("Content-Type", "application/json");
  if (!call_id.empty()) ask.headers.emplace_back("Idempotency-Key", std::move(call_id));
  STINT_CO_TRY(net::ReplyStream stream, co_await client_.open(std::move(ask)));
  const net::ReplyHead& head = stream.head();
  if (head.status == 404 && !server_session_.empty()) {
    fail_session(Error(Errc::unavailable, Retry::safe, "MCP server: it has ended the session"));
    co_return fail(*session_.error());
  }
  if (head.status < 200 || head.status > 299) {
    Error error = http_error(head.status, {}, "MCP server");
    // A status below 500 says that the message was not taken.
    const Retry retry = head.status < 500 ? Retry::safe : error.retry();
    co_return fail(Error(error.code(), retry, std::string(error.what())));
  }
  if (const auto given = head.header("Mcp-Session-Id"); given && server_session_.empty() && is_session_id(*given)) {
    server_session_ = *given;
  }
  if (is_type(head, "text/event-stream")) co_return co_await take_events(stream, id);
  if (is_type(head, "application/json")) co_return co_await take_whole(stream);
  if (id == 0) co_return {};  // accepted: nothing to say
  co_return fail(Error(Errc::failed, Retry::unknown,
                       fmt::format("MCP server: a reply of the type '{}'",
                                   one_line(head.header("Content-Type").value_or(""), kHeaderShown))));
}

Task<Result<>> McpHttp::take_events(net::ReplyStream& stream, std::int64_t id) {
  EventData data(McpSession::kMessageBytesMax);
  std::vector<std::string> events;
  const auto phase = session_.phase();
  while (true) {
    STINT_CO_TRY(const std::string bytes, co_await stream.next());
    if (bytes.empty()) co_return {};
    if (!data.feed(bytes, events)) {
      fail_session(Error(Errc::failed, Retry::unknown, "MCP server: a message that is too long"));
      co_return fail(*session_.error());
    }
    for (const std::string& event : events) take(event);
    events.clear();
    // A server may keep the stream open after the answer.
    const bool is_answered = id != 0 ? has_answer(id) : session_.phase() != phase || !outbox_.empty();
    if (is_answered || session_.error()) co_return {};
  }
}

Task<Result<>> McpHttp::take_whole(net::ReplyStream& stream) {
  std::string body;
  while (true) {
    STINT_CO_TRY(const std::string bytes, co_await stream.next());
    if (bytes.empty()) break;
    body += bytes;
    if (body.size() > McpSession::kMessageBytesMax) {
      fail_session(Error(Errc::failed, Retry::unknown, "MCP server: a message that is too long"));
      co_return fail(*session_.error());
    }
  }
  take(body);
  co_return {};
}

}  // namespace stint::driver
