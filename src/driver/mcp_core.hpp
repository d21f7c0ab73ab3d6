/// The client's side of one MCP session (Model Context Protocol, revisions 2024-11-05 to 2025-11-25) without its
/// transport: makes the texts to send, and reads the texts received. Opening negotiates a revision, then lists the
/// tools page by page; after that tools can be called. The server is not trusted: everything that it says is bounded,
/// and what is malformed is counted and ignored. Pure; one thread.
#pragma once

#include "domain/agent.hpp"
#include "stint/error.hpp"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace stint::driver {

namespace json = boost::json;

/// A tool as its server describes it.
struct McpTool {
  std::string name;
  std::string description;
  json::object input;                  ///< the schema of its arguments
  std::optional<json::object> output;  ///< of its structured result
  bool read_only = false;              ///< hints of the server, which count for a trusted server only: see mcp_class
  bool idempotent = false;
  bool destructive = true;

  friend bool operator==(const McpTool&, const McpTool&) = default;
};

/// Hints of a server that is not trusted decide nothing: then a tool is `once`.
[[nodiscard]] domain::ToolClass mcp_class(const McpTool& tool, bool is_trusted) noexcept;

/// The answer to a call.
struct McpAnswer {
  std::int64_t call = 0;
  std::string text;  ///< text as it came, other content as a line with its type and size
  std::optional<json::value> structured;
  bool is_error = false;    ///< the tool says that it failed
  bool is_refusal = false;  ///< the server did not run the tool: unknown, or invalid arguments
};

class McpSession {
 public:
  static constexpr std::size_t kMessageBytesMax = 8 << 20;
  static constexpr int kMessageDepthMax = 100;
  static constexpr std::size_t kBatchMax = 100;  ///< messages in one text
  static constexpr std::size_t kPagesMax = 50;
  static constexpr std::size_t kToolsMax = 500;
  static constexpr std::size_t kNameBytesMax = 128;
  static constexpr std::size_t kDescriptionBytesMax = 4 << 10;
  static constexpr std::size_t kSchemaBytesMax = 64 << 10;
  static constexpr std::size_t kCallsMax = 256;          ///< under way at once
  static constexpr std::size_t kTextBytesMax = 4 << 20;  ///< of one answer
  static constexpr std::size_t kNoteBytesMax = 500;
  static constexpr std::size_t kNotesMax = 50;

  enum class Phase : std::uint8_t { opening, listing, ready, failed };

  /// What one text of the server led to.
  struct Received {
    std::vector<std::string> replies;  ///< to send, in this order
    std::vector<McpAnswer> answers;
    std::vector<std::int64_t> progress;  ///< calls that are making progress
  };

  /// The request that opens the session: the first text to send.
  [[nodiscard]] std::string open();
  [[nodiscard]] Received take(std::string_view text);
  /// The transport ended, or what came is not MCP: the session fails, unless it has.
  void fail_with(Error error);

  struct Call {
    std::int64_t id = 0;
    std::string text;  ///< to send
  };
  /// Fails with `Errc::full` if too many calls are under way, with the session's error if it has failed.
  [[nodiscard]] Result<Call> call(std::string_view tool, const json::object& arguments);
  /// Gives a call up, and returns the text that tells the server. A late answer is ignored.
  [[nodiscard]] std::string cancel(std::int64_t call, std::string_view why);
  /// Lists the tools again, after tools_changed().
  [[nodiscard]] std::string list_again();

  [[nodiscard]] Phase phase() const noexcept { return phase_; }
  [[nodiscard]] const std::optional<Error>& error() const noexcept { return error_; }
  [[nodiscard]] const std::vector<McpTool>& tools() const noexcept { return tools_; }
  [[nodiscard]] bool tools_changed() const noexcept { return tools_changed_; }
  /// The negotiated revision; empty while opening.
  [[nodiscard]] const std::string& revision() const noexcept { return revision_; }
  [[nodiscard]] const std::string& server_name() const noexcept { return server_name_; }
  /// Messages that were malformed, or answers that nothing waited for.
  [[nodiscard]] std::size_t ignored() const noexcept { return ignored_; }
  /// For people: what the server logged, and what was wrong with what it said.
  [[nodiscard]] const std::vector<std::string>& notes() const noexcept { return notes_; }

 private:
  void take_one(const json::value& message, Received& out);
  void take_request(const json::object& message, std::string_view method, Received& out);
  void take_notification(const json::object& message, std::string_view method, Received& out);
  void take_response(const json::object& message, Received& out);
  void take_opened(const json::object& result, Received& out);
  void take_page(const json::object& result, Received& out);
  void add_tool(const json::value& entry);
  std::string request(std::string_view method, json::object params, std::int64_t& id);
  std::string list_request();
  void note(std::string_view text);
  void ignore(std::string_view why);
  void fail_session(std::string_view why);

  Phase phase_ = Phase::opening;
  std::optional<Error> error_;
  std::int64_t next_id_ = 1;
  std::int64_t setup_id_ = 0;  // of the request that opens or lists; 0: none is under way
  std::set<std::int64_t> calls_;
  std::vector<McpTool> tools_, listed_;
  std::size_t pages_ = 0;
  std::string cursor_;
  std::string revision_, server_name_;
  bool tools_changed_ = false;
  std::size_t ignored_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace stint::driver
