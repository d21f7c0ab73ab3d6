#include "driver/mcp_connection.hpp"

#include "driver/dialect_support.hpp"
#include "stint/combinators.hpp"
#include "stint/scope.hpp"

#include <fmt/format.h>

#include <csignal>

namespace stint::driver {

/// A call until it is answered. If its frame is destroyed before, the server is told.
class McpConnection::Underway {
 public:
  Underway(McpConnection& connection, std::int64_t id) : connection_(connection), id_(id) {}
  ~Underway() {
    if (connection_.answers_.erase(id_) > 0 || answered_ || connection_.is_over()) return;
    connection_.post(connection_.session_.cancel(id_, "the answer is no longer needed"));
  }
  Underway(const Underway&) = delete;
  Underway& operator=(const Underway&) = delete;

  std::optional<McpAnswer> answer() {
    const auto found = connection_.answers_.find(id_);
    if (found == connection_.answers_.end()) return std::nullopt;
    answered_ = true;
    McpAnswer out = std::move(found->second);
    connection_.answers_.erase(found);
    return out;
  }

 private:
  McpConnection& connection_;
  const std::int64_t id_;
  bool answered_ = false;
};

Task<Result<McpAnswer>> McpConnection::call(std::string tool, json::object arguments, std::string call_id) {
  auto made = session_.call(tool, arguments);
  if (!made) co_return fail(Error(made.error().code(), Retry::safe, std::string(made.error().what())));
  Underway underway(*this, made->id);
  STINT_CO_CHECK(co_await transfer(made->id, std::move(made->text), std::move(call_id)));
  while (true) {
    const std::uint64_t seen = changed_.count();
    if (auto answer = underway.answer()) co_return *std::move(answer);
    if (session_.error()) {
      co_return fail(Error(Errc::unavailable, Retry::unknown, std::string(session_.error()->what())));
    }
    if (closing_) co_return fail(Error(Errc::closed, Retry::unknown, "the MCP session was closed"));
    co_await changed_.wait(seen);
  }
}

void McpConnection::take(std::string_view text) {
  McpSession::Received received = session_.take(text);
  for (std::string& reply : received.replies) post(std::move(reply));
  for (McpAnswer& answer : received.answers) answers_.insert_or_assign(answer.call, std::move(answer));
  if (session_.tools_changed() && session_.phase() == McpSession::Phase::ready) post(session_.list_again());
  changed_.notify();
}

void McpConnection::fail_session(Error error) {
  session_.fail_with(std::move(error));
  changed_.notify();
}

void McpConnection::close() {
  closing_ = true;
  changed_.notify();
}

Task<> McpConnection::wait_opened() {
  while (session_.phase() != McpSession::Phase::ready && !is_over()) co_await changed_.wait(changed_.count());
}

Task<Result<>> McpConnection::opened() {
  co_await wait_opened();
  if (session_.error()) co_return fail(*session_.error());
  if (session_.phase() != McpSession::Phase::ready) co_return fail(Errc::closed, "the MCP session was closed");
  co_return {};
}

Task<> McpConnection::watch() {
  const Result<> opened = co_await with_timeout(open_max_, wait_opened());
  if (!opened) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(open_max_).count();
    fail_session(Error(Errc::timed_out, Retry::safe, fmt::format("MCP server: no list of tools within {} ms", ms)));
  }
  while (!is_over()) co_await changed_.wait(changed_.count());
}

McpStdio::McpStdio(Wardens& wardens, ToolProcessOptions options)
    : grace_(options.grace),
      process_(wardens, std::move(options), [this](std::string_view bytes) { take_piece(bytes); }) {}

Task<> McpStdio::run() {
  post(session_.open());
  auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(end_when_over());
    const auto ended = co_await process_.run();
    std::string why;
    if (!ended) {
      why = ended.error().what();
    } else if ((*ended)->exit_status) {
      why = fmt::format("ended with exit status {}", *(*ended)->exit_status);
    } else {
      why = (*ended)->signal ? fmt::format("ended by signal {}", *(*ended)->signal) : "ended";
    }
    const std::string tail = ended ? one_line((*ended)->error_tail, McpSession::kNoteBytesMax) : "";
    const Retry retry = ended ? Retry::unknown : Retry::safe;
    fail_session(
        Error(Errc::unavailable, retry, fmt::format("MCP server: {}{}{}", why, tail.empty() ? "" : ": ", tail)));
    scope.cancel();
  };
  (void)co_await with_scope(std::ref(body));  // its only failure is that it was cancelled, above
}

/// stdin is closed, then come the signals.
Task<> McpStdio::end_when_over() {
  co_await watch();
  process_.close_input();
  co_await sleep_for(grace_);
  process_.end(SIGTERM);
}

Task<Result<>> McpStdio::transfer(std::int64_t, std::string text, std::string) {
  post(std::move(text));
  co_return {};
}

void McpStdio::post(std::string text) {
  text += '\n';
  if (!process_.write(text)) fail_session(Error(Errc::unavailable, Retry::unknown, "MCP server: it does not read"));
}

void McpStdio::take_piece(std::string_view bytes) {
  while (!bytes.empty() && !session_.error()) {
    const std::size_t end = bytes.find('\n');
    line_ += bytes.substr(0, end);
    if (line_.size() > McpSession::kMessageBytesMax) {
      return fail_session(Error(Errc::failed, Retry::unknown, "MCP server: a message that is too long"));
    }
    if (end == std::string_view::npos) return;
    bytes.remove_prefix(end + 1);
    take(std::exchange(line_, {}));
  }
}

}  // namespace stint::driver
