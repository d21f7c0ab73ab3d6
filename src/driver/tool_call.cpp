// Invariants: 1. nothing runs without a permit and valid arguments; 2. a `once` tool is performed at most once in a
// call, between effects_unknown and effects_known; 3. a result that says not_started is true of every try.
#include "driver/tool_call.hpp"

#include "driver/dialect_support.hpp"
#include "driver/output_window.hpp"
#include "driver/tool_arguments.hpp"
#include "os/terminal.hpp"
#include "stint/combinators.hpp"
#include "stint/http_status.hpp"
#include "stint/scope.hpp"

#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace stint::driver {
namespace {

using domain::ToolClass;
using State = ToolResult::State;

constexpr std::size_t kToolNameMax = 64;   // what providers of models accept
constexpr std::size_t kErrorShown = 2000;  // bytes of stderr for the model
constexpr std::size_t kReplyBytesMax = 8 << 20;
constexpr std::size_t kNotesMax = 100;
constexpr std::string_view kCallVariable = "STINT_CALL_ID=";

ToolResult refused(std::string_view why) {
  return {.text = std::string(why), .is_error = true, .state = State::not_started};
}

std::string offer_name(std::string_view server, std::string_view tool) {
  std::string out = fmt::format("{}__{}", server, tool);
  for (char& c : out) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
    if (!plain) c = '_';
  }
  return out.substr(0, kToolNameMax);
}

bool has_body(std::string_view method) { return method != "GET" && method != "DELETE"; }

bool is_recognised_by_key(ToolClass tool_class) {
  return tool_class == ToolClass::idempotent || tool_class == ToolClass::keyed;
}

net::Headers headers_of(const std::vector<domain::ToolHeader>& given) {
  net::Headers out;
  for (const domain::ToolHeader& header : given) {
    out.emplace_back(header.name, header.variable.empty() ? header.value : os::environment(header.variable.c_str()));
  }
  return out;
}

}  // namespace

std::string_view to_string(State state) noexcept {
  switch (state) {
    case State::done: return "done";
    case State::failed: return "failed";
    case State::not_started: return "not_started";
    case State::unknown: return "unknown";
  }
  return "unknown";
}

ToolRunner::ToolRunner(Parts parts, Options options) : parts_(parts), options_(std::move(options)) {
  for (const domain::Tool& tool : options_.tools) {
    if (!tool.mcp) continue;
    std::unique_ptr<McpConnection> connection;
    if (tool.mcp->command.empty()) {
      connection = std::make_unique<McpHttp>(
          parts_.http, McpHttpOptions{.url = tool.mcp->url, .headers = headers_of(tool.mcp->headers)});
    } else {
      connection = std::make_unique<McpStdio>(parts_.wardens, ToolProcessOptions{.command = tool.mcp->command,
                                                                                 .run = options_.run,
                                                                                 .directory = options_.directory,
                                                                                 .environment = options_.environment,
                                                                                 .grace = options_.grace,
                                                                                 .on_ended = options_.on_ended});
    }
    servers_.push_back({&tool, std::move(connection)});
  }
}

ToolRunner::~ToolRunner() = default;

Task<> ToolRunner::run() {
  auto body = [&](Scope& scope) {
    for (const Server& server : servers_) scope.spawn(server.connection->run());
  };
  (void)co_await with_scope(std::ref(body));  // a session that fails is reported by its calls
}

void ToolRunner::close() {
  for (const Server& server : servers_) server.connection->close();
}

Task<Result<>> ToolRunner::open() {
  for (const domain::Tool& tool : options_.tools) {
    if (!tool.mcp) STINT_CO_CHECK(add_tool(tool));
  }
  for (const Server& server : servers_) {
    const Result<> opened = co_await server.connection->opened();
    if (!opened) {
      co_return fail(Error(opened.error().code(), opened.error().retry(),
                           fmt::format("tool '{}': {}", server.tool->name, opened.error().what())));
    }
    STINT_CO_CHECK(add_server(server));
  }
  co_return {};
}

Result<> ToolRunner::add_tool(const domain::Tool& tool) {
  STINT_TRY(json::object input, parse_arguments(tool.input));
  auto schema = JsonSchema::compile(input);
  if (!schema) return fail(Errc::invalid, fmt::format("tool '{}': input{}", tool.name, schema.error().what()));
  add({.name = tool.name, .description = tool.description, .input = std::move(input), .tool_class = tool.tool_class},
      {.tool = &tool, .server = nullptr, .name = tool.name, .input = *std::move(schema)});
  return {};
}

Result<> ToolRunner::add_server(const Server& server) {
  const auto note = [&](std::string_view what) {
    if (notes_.size() < kNotesMax) notes_.push_back(fmt::format("{}: {}", server.tool->name, what));
  };
  for (const std::string& what : server.connection->session().notes()) note(what);
  for (const McpTool& tool : server.connection->session().tools()) {
    const std::string name = offer_name(server.tool->name, tool.name);
    auto schema = JsonSchema::compile(tool.input);
    const bool is_taken = std::ranges::find(offers_, name, &ToolOffer::name) != offers_.end();
    if (!schema || is_taken || offers_.size() >= kOffersMax) {
      note(fmt::format("left out {}: {}", tool.name,
                       !schema    ? schema.error().what()
                       : is_taken ? "its name is taken"
                                  : "too many tools"));
      continue;
    }
    add({.name = name,
         .description = tool.description,
         .input = tool.input,
         .tool_class = mcp_class(tool, server.tool->mcp->trusted)},
        {.tool = server.tool, .server = server.connection.get(), .name = tool.name, .input = *std::move(schema)});
  }
  return {};
}

void ToolRunner::add(ToolOffer offer, Entry entry) {
  for (const std::string& what : entry.input.unsupported()) {
    if (notes_.size() < kNotesMax)
      notes_.push_back(fmt::format("{}: the model's arguments are not checked by {}", offer.name, what));
  }
  offers_.push_back(std::move(offer));
  entries_.push_back(std::move(entry));
}

Result<ToolRunner::Call> ToolRunner::check(std::string_view name, std::string call_id,
                                           std::string_view arguments) const {
  const auto found = std::ranges::find(offers_, name, &ToolOffer::name);
  if (found == offers_.end()) {
    return fail(Errc::invalid, fmt::format("there is no tool '{}'", one_line(name, kToolNameMax)));
  }
  Call call;
  call.index = static_cast<std::size_t>(found - offers_.begin());
  call.id = std::move(call_id);
  STINT_TRY(call.arguments, parse_arguments(arguments));
  const auto mismatches = entries_[call.index].input.check(call.arguments);
  if (mismatches.empty()) return call;
  return fail(Errc::invalid, "the arguments do not fit the tool's schema; it was not run:\n" + describe(mismatches));
}

Task<ToolResult> ToolRunner::call(std::string name, std::string call_id, std::string arguments) {
  auto call = check(name, std::move(call_id), arguments);
  if (!call) co_return refused(call.error().what());
  const auto permit = co_await parts_.limit.acquire();
  if (!permit) co_return refused(permit.error().what());
  const bool is_once = offers_[call->index].tool_class == ToolClass::once;
  co_return is_once ? co_await run_once(*call) : co_await run_repeatable(*call);
}

Duration ToolRunner::timeout_of(const Call& call) const {
  return entries_[call.index].tool->timeout.value_or(options_.timeout);
}

Task<ToolResult> ToolRunner::run_once(const Call& call) {
  if (options_.effects_unknown) {
    const Result<> marked = co_await options_.effects_unknown();
    if (!marked) co_return refused(fmt::format("not run: {}", marked.error().what()));
  }
  if (options_.on_start) options_.on_start(call.id);
  auto result = co_await with_timeout(timeout_of(call), perform(call));
  if (!result) {
    const Error& error = result.error();
    const bool is_harmless = error.retry() == Retry::safe || error == Errc::invalid || error == Errc::denied;
    if (!is_harmless) {
      co_return ToolResult{
          .text = fmt::format("{}; whether it took effect is unknown, and it is not repeated", error.what()),
          .is_error = true,
          .state = State::unknown};
    }
    result = refused(error.what());
  }
  // A mark that could not be cleared makes a crash from here on look doubtful, and harms nothing else.
  if (options_.effects_known) (void)co_await options_.effects_known();
  co_return *std::move(result);
}

Task<ToolResult> ToolRunner::run_repeatable(const Call& call) {
  if (options_.on_start) options_.on_start(call.id);
  auto result = co_await with_timeout(timeout_of(call), repeat(call));
  if (result) co_return *std::move(result);
  co_return ToolResult{.text = std::string(result.error().what()), .is_error = true, .state = State::failed};
}

Task<ToolResult> ToolRunner::repeat(const Call& call) {
  Duration pause = options_.backoff;
  bool is_started = false;
  for (int tries = 1;; ++tries, pause *= 2) {
    auto result = co_await perform(call);
    if (result) co_return *std::move(result);
    is_started = is_started || result.error().retry() != Retry::safe;
    if (result.error().retry() == Retry::never || tries == kTriesMax) {
      const bool is_refused = result.error() == Errc::invalid || result.error() == Errc::denied;
      co_return ToolResult{.text = fmt::format("{}, after {} tries", result.error().what(), tries),
                           .is_error = true,
                           .state = is_started && !is_refused ? State::failed : State::not_started};
    }
    co_await sleep_for(pause);
  }
}

Task<Result<ToolResult>> ToolRunner::perform(const Call& call) {
  const Entry& entry = entries_[call.index];
  if (entry.server != nullptr) co_return co_await perform_mcp(call);
  if (entry.tool->http) co_return co_await perform_request(call);
  co_return co_await perform_command(call);
}

Task<Result<ToolResult>> ToolRunner::perform_command(const Call& call) {
  ToolProcessOptions options{.command = {},
                             .run = options_.run,
                             .directory = options_.directory,
                             .environment = options_.environment,
                             .grace = options_.grace,
                             .on_ended = options_.on_ended};
  STINT_CO_TRY(options.command, render_argv(entries_[call.index].tool->command, call.arguments));
  options.environment.push_back(std::string(kCallVariable) + call.id);
  OutputWindow output(options_.output_bytes_max);
  ToolProcess process(parts_.wardens, std::move(options), [&](std::string_view bytes) { output.add(bytes); });
  process.write(json::serialize(call.arguments) + "\n");
  process.close_input();
  const auto ended = co_await process.run();
  if (!ended) co_return fail(Error(ended.error().code(), Retry::safe, std::string(ended.error().what())));
  const ToolProcessEnd& end = **ended;
  if (!end.exit_status) {
    co_return fail(Error(
        Errc::failed, Retry::unknown,
        end.signal ? fmt::format("the tool was ended by signal {}", *end.signal) : "the tool's end was not seen"));
  }
  ToolResult result{.text = output.text(), .is_error = *end.exit_status != 0};
  if (result.is_error) {
    const std::string tail = bounded_output(ending(end.error_tail, kErrorShown), kErrorShown);
    result.text += fmt::format("{}[exit status {}]{}{}", result.text.empty() ? "" : "\n", *end.exit_status,
                               tail.empty() ? "" : "\n", tail);
  }
  co_return result;
}

Result<net::Ask> ToolRunner::request_of(const Call& call) const {
  const domain::HttpTool& http = *entries_[call.index].tool->http;
  net::Ask ask{.method = http.method, .url = {}, .reply_bytes_max = kReplyBytesMax};
  STINT_TRY(ask.url, render_url(http.url, call.arguments));
  for (const domain::ToolHeader& header : http.headers) {
    if (!header.variable.empty()) {
      ask.headers.emplace_back(header.name, os::environment(header.variable.c_str()));
    } else {
      STINT_TRY(std::string value, render_header(header.value, call.arguments));
      ask.headers.emplace_back(header.name, std::move(value));
    }
  }
  if (is_recognised_by_key(offers_[call.index].tool_class)) ask.headers.emplace_back("Idempotency-Key", call.id);
  if (!has_body(http.method)) return ask;
  ask.headers.emplace_back("Content-Type", "application/json");
  ask.body = json::serialize(call.arguments);
  return ask;
}

Task<Result<ToolResult>> ToolRunner::perform_request(const Call& call) {
  STINT_CO_TRY(net::Ask ask, request_of(call));
  STINT_CO_TRY(const net::Reply reply, co_await parts_.http.ask(std::move(ask)));
  if (reply.status < 400) co_return ToolResult{.text = bounded_output(reply.body, options_.output_bytes_max)};
  const Error error = http_error(reply.status, {}, "the tool's server");
  if (error.retry() == Retry::unknown) co_return fail(error);
  co_return ToolResult{
      .text = fmt::format("[HTTP status {}]\n{}", reply.status, bounded_output(reply.body, options_.output_bytes_max)),
      .is_error = true};
}

Task<Result<ToolResult>> ToolRunner::perform_mcp(const Call& call) {
  const Entry& entry = entries_[call.index];
  const std::string key = is_recognised_by_key(offers_[call.index].tool_class) ? call.id : std::string();
  STINT_CO_TRY(McpAnswer answer, co_await entry.server->call(entry.name, call.arguments, key));
  co_return ToolResult{.text = bounded_output(answer.text, options_.output_bytes_max),
                       .is_error = answer.is_error,
                       .state = answer.is_refusal ? State::not_started : State::done,
                       .structured = std::move(answer.structured)};
}

}  // namespace stint::driver
