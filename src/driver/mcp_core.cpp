// The only file with the names of MCP's JSON fields.
//
// Invariants: 1. an answer is reported only for a call that is under way, once; 2. a server's text leads to at most one
// reply for each message in it; 3. listing ends: pages, tools and repeated cursors are bounded.
#include "driver/mcp_core.hpp"

#include "driver/dialect_support.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace stint::driver {
namespace {

/// The newest is offered; a server answers with the one that it wants.
constexpr std::array<std::string_view, 4> kRevisions{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};
constexpr int kMethodNotFound = -32601, kInvalidRequest = -32600, kInvalidParams = -32602;
constexpr std::size_t kCursorBytesMax = 4 << 10;
constexpr std::size_t kShown = 200;  // bytes of a foreign text in a message

std::string message_text(json::object message) {
  message["jsonrpc"] = "2.0";
  return json::serialize(message);
}

std::string notification(std::string_view method, json::object params = {}) {
  json::object message{{"method", method}};
  if (!params.empty()) message["params"] = std::move(params);
  return message_text(std::move(message));
}

bool is_tool_name(std::string_view name) {
  return !name.empty() && name.size() <= McpSession::kNameBytesMax && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./:").contains(c);
  });
}

bool hint(const json::object* hints, std::string_view name, bool fallback) {
  const json::value* const value = hints == nullptr ? nullptr : hints->if_contains(name);
  return value != nullptr && value->is_bool() ? value->get_bool() : fallback;
}

std::size_t decoded_bytes(const json::object& item, std::string_view key) {
  const json::value* const data = item.if_contains(key);
  return data != nullptr && data->is_string() ? data->get_string().size() / 4 * 3 : 0;
}

std::string shown_at(const json::object& object, std::string_view key) {
  return one_line(text_at(object, key), kShown);
}

/// One item of a result's content as text.
std::string content_text(const json::object& item) {
  const std::string type = text_at(item, "type");
  if (type == "text") return text_at(item, "text");
  if (type == "image" || type == "audio") {
    return fmt::format("[{} {}, {} bytes]", type, shown_at(item, "mimeType"), decoded_bytes(item, "data"));
  }
  if (type == "resource_link") return fmt::format("[resource {} {}]", shown_at(item, "name"), shown_at(item, "uri"));
  const json::object* const resource = type == "resource" ? object_at(item, "resource") : nullptr;
  if (resource == nullptr) return fmt::format("[content of the unknown type '{}']", one_line(type, kShown));
  if (resource->contains("text")) {
    return fmt::format("[resource {}]\n{}", shown_at(*resource, "uri"), text_at(*resource, "text"));
  }
  return fmt::format("[resource {} {}, {} bytes]", shown_at(*resource, "uri"), shown_at(*resource, "mimeType"),
                     decoded_bytes(*resource, "blob"));
}

McpAnswer answer_of(std::int64_t call, const json::object& result) {
  McpAnswer answer;
  answer.call = call;
  answer.is_error = truth_at(result, "isError");
  if (const json::array* const content = array_at(result, "content")) {
    for (const json::value& item : *content) {
      if (!item.is_object() || answer.text.size() > McpSession::kTextBytesMax) continue;
      if (!answer.text.empty()) answer.text += '\n';
      answer.text += content_text(item.get_object());
    }
  }
  if (const json::value* const structured = result.if_contains("structuredContent")) {
    answer.structured = *structured;
    if (answer.text.empty()) answer.text = json::serialize(*structured);
  }
  answer.text = shortened(answer.text, McpSession::kTextBytesMax);
  return answer;
}

std::string error_text(const json::object& error) {
  return fmt::format("{} ({})", one_line(text_at(error, "message"), McpSession::kNoteBytesMax),
                     number_at(error, "code").value_or(0));
}

}  // namespace

domain::ToolClass mcp_class(const McpTool& tool, bool is_trusted) noexcept {
  if (!is_trusted) return domain::ToolClass::once;
  if (tool.read_only) return domain::ToolClass::read;
  return tool.idempotent ? domain::ToolClass::idempotent : domain::ToolClass::once;
}

std::string McpSession::request(std::string_view method, json::object params, std::int64_t& id) {
  id = next_id_++;
  return message_text({{"id", id}, {"method", method}, {"params", std::move(params)}});
}

std::string McpSession::open() {
  return request("initialize",
                 {{"protocolVersion", kRevisions.front()},
                  {"capabilities", json::object()},
                  {"clientInfo", {{"name", "stint"}, {"version", "1"}}}},
                 setup_id_);
}

std::string McpSession::list_request() {
  json::object params;
  if (!cursor_.empty()) params["cursor"] = cursor_;
  return request("tools/list", std::move(params), setup_id_);
}

std::string McpSession::list_again() {
  tools_changed_ = false;
  listed_.clear();
  cursor_.clear();
  pages_ = 0;
  return list_request();
}

Result<McpSession::Call> McpSession::call(std::string_view tool, const json::object& arguments) {
  if (error_) return fail(*error_);
  if (phase_ != Phase::ready) return fail(Errc::unavailable, "the MCP session is not open yet");
  if (calls_.size() >= kCallsMax)
    return fail(Errc::full, fmt::format("more than {} calls of an MCP server", kCallsMax));
  Call out;
  json::object params{{"name", tool}, {"arguments", arguments}, {"_meta", {{"progressToken", next_id_}}}};
  out.text = request("tools/call", std::move(params), out.id);
  calls_.insert(out.id);
  return out;
}

std::string McpSession::cancel(std::int64_t call, std::string_view why) {
  calls_.erase(call);
  return notification("notifications/cancelled", {{"requestId", call}, {"reason", one_line(why, kShown)}});
}

void McpSession::fail_with(Error error) {
  if (error_) return;
  error_ = std::move(error);
  phase_ = Phase::failed;
}
void McpSession::fail_session(std::string_view why) {
  fail_with(Error(Errc::failed, fmt::format("MCP server: {}", why)));
}

void McpSession::note(std::string_view text) {
  if (notes_.size() < kNotesMax) notes_.push_back(one_line(text, kNoteBytesMax));
}
void McpSession::ignore(std::string_view why) {
  ++ignored_;
  note(why);
}

McpSession::Received McpSession::take(std::string_view text) {
  Received out;
  if (phase_ == Phase::failed) return out;
  if (text.size() > kMessageBytesMax) {
    fail_session(fmt::format("a message of {} bytes; at most {}", text.size(), kMessageBytesMax));
    return out;
  }
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return out;
  json::parse_options options;
  options.max_depth = kMessageDepthMax;
  boost::system::error_code error;
  const json::value message = json::parse(text, error, {}, options);
  if (error) {
    ignore("not JSON: " + one_line(text, kShown));
  } else if (const json::array* const batch = message.if_array()) {
    if (batch->size() > kBatchMax) {
      ignore(fmt::format("a batch of {} messages", batch->size()));
    } else {
      for (const json::value& one : *batch) take_one(one, out);
    }
  } else {
    take_one(message, out);
  }
  return out;
}

void McpSession::take_one(const json::value& value, Received& out) {
  const json::object* const message = value.if_object();
  if (message == nullptr || phase_ == Phase::failed) return ignore("a message that is no object");
  const json::value* const method = message->if_contains("method");
  if (method == nullptr) return take_response(*message, out);
  if (!method->is_string()) return ignore("a message without a method");
  if (message->contains("id")) {
    take_request(*message, std::string_view(method->get_string()), out);
  } else {
    take_notification(*message, std::string_view(method->get_string()), out);
  }
}

/// The client offers no capabilities, so that a ping is all that a server may ask.
void McpSession::take_request(const json::object& message, std::string_view method, Received& out) {
  const json::value& id = message.at("id");
  const bool usable = id.is_int64() || id.is_uint64() || (id.is_string() && id.get_string().size() <= kShown);
  if (!usable) return ignore("a request with an id that is neither a number nor a short text");
  json::object reply{{"id", id}};
  if (method == "ping") {
    reply["result"] = json::object();
  } else {
    note(fmt::format("refused the server's request {}", one_line(method, kShown)));
    reply["error"] = {{"code", kMethodNotFound}, {"message", "this client does not support it"}};
  }
  out.replies.push_back(message_text(std::move(reply)));
}

void McpSession::take_notification(const json::object& message, std::string_view method, Received& out) {
  const json::object* const params = object_at(message, "params");
  if (method == "notifications/tools/list_changed") {
    tools_changed_ = true;
  } else if (method == "notifications/progress") {
    const auto call = params == nullptr ? std::nullopt : number_at(*params, "progressToken");
    if (call && calls_.contains(*call)) out.progress.push_back(*call);
  } else if (method == "notifications/message") {
    const json::value* const data = params == nullptr ? nullptr : params->if_contains("data");
    if (data == nullptr) return;
    note("log: " + (data->is_string() ? std::string(data->get_string()) : json::serialize(*data)));
  }
}

void McpSession::take_response(const json::object& message, Received& out) {
  const json::value* const given = message.if_contains("id");
  const std::int64_t* const id = given == nullptr ? nullptr : given->if_int64();
  const json::object* const result = object_at(message, "result");
  const json::object* const error = object_at(message, "error");
  if (id == nullptr || (result == nullptr) == (error == nullptr))
    return ignore("a message that is neither request nor answer");
  if (*id == setup_id_ && setup_id_ != 0) {
    setup_id_ = 0;
    if (error != nullptr) {
      // Listing again failed: the tools that are known stay.
      if (phase_ == Phase::ready) return note("tools can't be listed: " + error_text(*error));
      return fail_session((phase_ == Phase::opening ? "refused the session: " : "tools can't be listed: ") +
                          error_text(*error));
    }
    return phase_ == Phase::opening ? take_opened(*result, out) : take_page(*result, out);
  }
  if (calls_.erase(*id) == 0) return ignore(fmt::format("an answer to {}, which is not under way", *id));
  if (result != nullptr) {
    out.answers.push_back(answer_of(*id, *result));
    return;
  }
  const std::int64_t code = number_at(*error, "code").value_or(0);
  McpAnswer answer;
  answer.call = *id;
  answer.text = "the MCP server answered with an error: " + error_text(*error);
  answer.is_error = true;
  answer.is_refusal = code == kMethodNotFound || code == kInvalidRequest || code == kInvalidParams;
  out.answers.push_back(std::move(answer));
}

void McpSession::take_opened(const json::object& result, Received& out) {
  const std::string revision = text_at(result, "protocolVersion");
  if (std::ranges::find(kRevisions, revision) == kRevisions.end()) {
    return fail_session(fmt::format("wants revision '{}' of the protocol; known: {} to {}", one_line(revision, kShown),
                                    kRevisions.back(), kRevisions.front()));
  }
  revision_ = revision;
  if (const json::object* const server = object_at(result, "serverInfo")) server_name_ = shown_at(*server, "name");
  out.replies.push_back(notification("notifications/initialized"));
  const json::object* const capabilities = object_at(result, "capabilities");
  if (capabilities == nullptr || !capabilities->contains("tools")) {
    phase_ = Phase::ready;
    return;
  }
  phase_ = Phase::listing;
  out.replies.push_back(list_request());
}

void McpSession::take_page(const json::object& result, Received& out) {
  const json::array* const tools = array_at(result, "tools");
  if (tools == nullptr) return fail_session("a list of tools without tools");
  for (const json::value& entry : *tools) add_tool(entry);
  const std::string cursor = text_at(result, "nextCursor");
  if (!cursor.empty()) {
    if (cursor == cursor_) return fail_session("lists the same page of tools again");
    if (cursor.size() > kCursorBytesMax || ++pages_ >= kPagesMax) {
      return fail_session(fmt::format("more than {} pages of tools", kPagesMax));
    }
    cursor_ = cursor;
    out.replies.push_back(list_request());
    return;
  }
  tools_ = std::move(listed_);
  listed_.clear();
  phase_ = Phase::ready;
}

void McpSession::add_tool(const json::value& entry) {
  const json::object* const object = entry.if_object();
  const json::object* const input = object == nullptr ? nullptr : object_at(*object, "inputSchema");
  if (input == nullptr) return ignore("a tool without a schema of its arguments");
  McpTool tool;
  tool.name = text_at(*object, "name");
  const std::string shown = one_line(tool.name, kShown);
  if (!is_tool_name(tool.name)) return ignore(fmt::format("a tool with the name '{}'", shown));
  if (std::ranges::find(listed_, tool.name, &McpTool::name) != listed_.end()) {
    return ignore(fmt::format("a second tool with the name '{}'", shown));
  }
  if (listed_.size() >= kToolsMax) return ignore(fmt::format("more than {} tools: left out '{}'", kToolsMax, shown));
  if (json::serialize(*input).size() > kSchemaBytesMax) {
    return ignore(fmt::format("the tool '{}' has a schema of more than {} bytes", shown, kSchemaBytesMax));
  }
  tool.description = shortened(text_at(*object, "description"), kDescriptionBytesMax);
  tool.input = *input;
  if (const json::object* const output = object_at(*object, "outputSchema")) {
    if (json::serialize(*output).size() <= kSchemaBytesMax) tool.output = *output;
  }
  const json::object* const hints = object_at(*object, "annotations");
  tool.read_only = hint(hints, "readOnlyHint", false);
  tool.idempotent = hint(hints, "idempotentHint", false);
  tool.destructive = hint(hints, "destructiveHint", true);
  // Only these two are meaningful beside each other if the tool is not read-only; a server that claims both is wrong.
  if (tool.read_only && hints->contains("destructiveHint") && tool.destructive)
    tool.read_only = tool.idempotent = false;
  listed_.push_back(std::move(tool));
}

}  // namespace stint::driver
