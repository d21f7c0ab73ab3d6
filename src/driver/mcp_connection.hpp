/// An MCP session over a transport: a process that speaks over stdin and stdout, or streamable HTTP. run() opens the
/// session and carries it, calls are made beside it. Own thread only; outlives its calls.
#pragma once

#include "driver/mcp_core.hpp"
#include "driver/tool_process.hpp"
#include "net/http_client.hpp"
#include "stint/notification.hpp"
#include "stint/task.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace stint::driver {

class McpConnection {
 public:
  static constexpr Duration kOpenMax = std::chrono::seconds(30);  ///< until the tools are listed

  McpConnection() = default;
  virtual ~McpConnection() = default;
  McpConnection(const McpConnection&) = delete;
  McpConnection& operator=(const McpConnection&) = delete;

  /// Called once; returns when nothing of the server is left: processes, sockets, the session. A stop ends them, too.
  virtual Task<> run() = 0;
  /// Waits until the tools are listed.
  Task<Result<>> opened();
  /// Fails with `Retry::safe` if the server did not get the call, with `Retry::unknown` if it may have run it. If the
  /// awaiting chain is stopped, the server is told that the call is cancelled.
  Task<Result<McpAnswer>> call(std::string tool, json::object arguments, std::string call_id);
  /// Begins to end the session: run() returns soon.
  void close();
  [[nodiscard]] const McpSession& session() const noexcept { return session_; }
  /// How long opened() may take; for tests.
  void set_open_max(Duration most) noexcept { open_max_ = most; }

 protected:
  /// Sends the text of a call. May return before the answer has come.
  virtual Task<Result<>> transfer(std::int64_t id, std::string text, std::string call_id) = 0;
  /// Sends a reply or a notification, in order, without waiting.
  virtual void post(std::string text) = 0;

  /// Takes one text of the server, and sends the replies to it.
  void take(std::string_view text);
  void fail_session(Error error);
  /// Fails the session if it is not open in time. Returns when it has failed or is to be closed.
  Task<> watch();
  [[nodiscard]] bool has_answer(std::int64_t id) const { return answers_.contains(id); }
  [[nodiscard]] bool is_over() const noexcept { return closing_ || session_.error().has_value(); }

  McpSession session_;
  Notification changed_;  // an answer, a failure, or something to send
  bool closing_ = false;

 private:
  class Underway;
  Task<> wait_opened();

  std::map<std::int64_t, McpAnswer> answers_;  // of calls under way
  Duration open_max_ = kOpenMax;
};

/// The server's process is in the tree of the attempt's processes, and ends as they do: its stdin is closed, then the
/// signals. What it leaves behind is ended, too.
class McpStdio final : public McpConnection {
 public:
  McpStdio(Wardens& wardens, ToolProcessOptions options);
  Task<> run() override;

 private:
  Task<Result<>> transfer(std::int64_t id, std::string text, std::string call_id) override;
  void post(std::string text) override;
  void take_piece(std::string_view bytes);
  Task<> end_when_over();

  const Duration grace_;
  ToolProcess process_;
  std::string line_;  // an incomplete line
};

struct McpHttpOptions {
  std::string url;
  net::Headers headers;
};

class McpHttp final : public McpConnection {
 public:
  McpHttp(net::HttpClient& client, McpHttpOptions options) : client_(client), options_(std::move(options)) {}
  Task<> run() override;

 private:
  Task<Result<>> transfer(std::int64_t id, std::string text, std::string call_id) override;
  void post(std::string text) override;
  Task<> serve();
  Task<> end_session();
  /// Sends one message and takes what the server answers, until the call has its answer.
  Task<Result<>> exchange(std::int64_t id, std::string text, std::string call_id);
  Task<Result<>> take_events(net::ReplyStream& stream, std::int64_t id);
  Task<Result<>> take_whole(net::ReplyStream& stream);
  [[nodiscard]] net::Headers headers() const;

  static constexpr std::size_t kOutboxMax = 1000;
  net::HttpClient& client_;
  const McpHttpOptions options_;
  std::string server_session_;  // its id; empty: the server keeps none
  std::deque<std::string> outbox_;
};

}  // namespace stint::driver
