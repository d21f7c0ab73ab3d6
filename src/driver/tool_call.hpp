/// Calls tools for a model: checks the arguments, waits for a permit, runs a command, an HTTP request or a call of an
/// MCP server within its time limit, and repeats it only as its class allows. Knows nothing of models. One runner for
/// each attempt; own thread only; outlives its calls.
#pragma once

#include "domain/agent.hpp"
#include "driver/json_schema.hpp"
#include "driver/mcp_connection.hpp"
#include "net/http_client.hpp"
#include "stint/semaphore.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::driver {

/// How many calls of one run may be under way, by default: the capacity of the semaphore that the driver makes.
inline constexpr std::uint32_t kToolsAtOnce = 8;

struct ToolResult {
  enum class State : std::uint8_t {
    done,         ///< the tool answered, perhaps with an error of its own
    failed,       ///< it gave no answer; it may be called again
    not_started,  ///< nothing was run
    unknown,      ///< of class `once`: it may have acted, and must not be called again
  };
  std::string text;  ///< for the model: output_bytes_max, and what is said about it
  bool is_error = false;
  State state = State::done;
  std::optional<json::value> structured{};  ///< of an MCP tool
};
[[nodiscard]] std::string_view to_string(ToolResult::State state) noexcept;

/// A tool as the model sees it.
struct ToolOffer {
  std::string name;  ///< of an MCP server: `server__tool`
  std::string description;
  json::object input;
  domain::ToolClass tool_class = domain::ToolClass::once;
};

/// The tools of one attempt, as a driver uses them.
class ToolBox {
 public:
  ToolBox() = default;
  virtual ~ToolBox() = default;
  ToolBox(const ToolBox&) = delete;
  ToolBox& operator=(const ToolBox&) = delete;

  /// Carries the sessions of MCP servers; returns when nothing of them is left, after close() or a stop. Called once,
  /// beside the calls.
  virtual Task<> run() = 0;
  /// Waits until every server has listed its tools. Fails if one does not, or if a schema of an agent's file is wrong.
  virtual Task<Result<>> open() = 0;
  [[nodiscard]] virtual const std::vector<ToolOffer>& offers() const noexcept = 0;
  /// For people: keywords of schemas that are not checked, tools that are left out.
  [[nodiscard]] virtual const std::vector<std::string>& notes() const noexcept = 0;
  /// `call_id` is the same whenever this call is repeated, also by a later attempt.
  virtual Task<ToolResult> call(std::string name, std::string call_id, std::string arguments) = 0;
  virtual void close() = 0;
};

class ToolRunner final : public ToolBox {
 public:
  static constexpr int kTriesMax = 3;  ///< of a call that may be repeated
  static constexpr std::size_t kOffersMax = 500;

  struct Parts {
    Wardens& wardens;
    net::HttpClient& http;
    Semaphore& limit;  ///< one unit for each call
  };
  struct Options {
    std::vector<domain::Tool> tools;
    std::string run;                         ///< the mark of the attempt
    std::string directory{};                 ///< of processes; empty: ours
    std::vector<std::string> environment{};  ///< of processes, changes to ours: without Stint's own secrets
    std::size_t output_bytes_max = 64 << 10;
    Duration timeout = std::chrono::seconds(60);  ///< of one call with its repetitions, unless the tool has its own
    Duration grace = std::chrono::seconds(2);     ///< between the first signal and SIGKILL
    Duration backoff = std::chrono::milliseconds(200);  ///< before the first repetition; doubles
    /// Awaited around each call of class `once`: see domain::WorkContext. The second is not called if the result is
    /// unknown, nor after a stop.
    std::function<Task<Result<>>()> effects_unknown{}, effects_known{};
    /// Called when a call begins: its arguments are valid, and it has its permit and, if its class is `once`, its mark.
    std::function<void(const std::string& call_id)> on_start{};
    /// Called when a stop had to end processes, of a call or of a server.
    std::function<void(std::uint32_t)> on_ended{};
  };
  ToolRunner(Parts parts, Options options);
  ~ToolRunner() override;

  Task<> run() override;
  Task<Result<>> open() override;
  [[nodiscard]] const std::vector<ToolOffer>& offers() const noexcept override { return offers_; }
  [[nodiscard]] const std::vector<std::string>& notes() const noexcept override { return notes_; }
  Task<ToolResult> call(std::string name, std::string call_id, std::string arguments) override;
  void close() override;

 private:
  struct Server {
    const domain::Tool* tool;
    std::unique_ptr<McpConnection> connection;
  };
  struct Entry {  // in the order of offers_
    const domain::Tool* tool;
    McpConnection* server;  // null: a command or a request
    std::string name;       // as the server knows it
    JsonSchema input;
  };
  struct Call {
    std::size_t index;
    std::string id;
    json::object arguments;
  };

  Result<> add_tool(const domain::Tool& tool);
  Result<> add_server(const Server& server);
  void add(ToolOffer offer, Entry entry);
  [[nodiscard]] Result<Call> check(std::string_view name, std::string call_id, std::string_view arguments) const;
  Task<ToolResult> run_once(const Call& call);
  Task<ToolResult> run_repeatable(const Call& call);
  Task<ToolResult> repeat(const Call& call);
  /// An error is what prevented an answer. Its Retry says whether the tool may have acted.
  Task<Result<ToolResult>> perform(const Call& call);
  Task<Result<ToolResult>> perform_command(const Call& call);
  Task<Result<ToolResult>> perform_request(const Call& call);
  Task<Result<ToolResult>> perform_mcp(const Call& call);
  [[nodiscard]] Result<net::Ask> request_of(const Call& call) const;
  [[nodiscard]] Duration timeout_of(const Call& call) const;

  const Parts parts_;
  const Options options_;
  std::vector<Server> servers_;
  std::vector<ToolOffer> offers_;
  std::vector<Entry> entries_;
  std::vector<std::string> notes_;
};

}  // namespace stint::driver
