// Anthropic's Claude Code: `claude -p` with JSON lines both ways, checked with 2.1.197.
//
// Observed behaviour of its stream (tests/streams/claude):
// 1. An API error is a result of subtype "success" with is_error set. Its status may be null; then its text decides.
// 2. The result's own usage is zero after an interrupt or a budget stop, though tokens were used: the messages before
//    it have the usage. Each message comes once per content block, always with the whole input.
// 3. stdin stays open until the result: closing it does not end a turn, and an interrupt must still get through.
// 4. Before a retry it announces the delay (api_retry): the Retry-After, or its own pause of about half a second. It
//    may retry once. Where it would wait for long, Stint waits instead, with the whole account.
// 5. The usage of a call that breaks in mid-stream is only in the events of that stream.
// 6. It exits with status 0 after SIGINT, with 1 after an interrupt, and with 143 and no result after SIGTERM.
#include "driver/dialect_support.hpp"
#include "driver/registry.hpp"
#include "driver/tool_rules.hpp"

#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stint::driver {
namespace {

constexpr std::string_view kClaude = "claude";
constexpr std::int64_t kOwnPauseMsMax = 999;      // of a retry without a Retry-After, which is in whole seconds
constexpr std::int64_t kOwnWaitMsMax = 10'000;    // Stint itself waits for longer ones, whatever the status
constexpr std::int64_t kDelayMsMax = 86'400'000;  // as kServerDelayMax
constexpr std::size_t kMessagesMax = 64;          // interleaved messages: one per subagent

/// Seconds since 1970, or milliseconds.
std::optional<WallTime> moment(std::int64_t number) {
  constexpr std::int64_t kSecondsMax = 100'000'000'000;
  if (number <= 0) return std::nullopt;
  if (number < kSecondsMax) return WallTime(std::chrono::seconds(number));
  return WallTime(std::chrono::milliseconds(number));
}

std::string short_call(const json::object& input) {
  for (const std::string_view key : {"command", "file_path", "path", "url", "pattern", "description", "prompt"}) {
    if (const std::string text = text_at(input, key); !text.empty()) return one_line(text, kShownMax);
  }
  return {};
}

/// Whether the text is safe inside a rule: a name, no syntax.
bool plain(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  });
}

Denial read_denial(const json::object& entry, Permissions permissions) {
  static const json::object kNothing;
  Denial denial;
  denial.tool = one_line(text_at(entry, "tool_name"), kShownMax);
  const json::object* const input = object_at(entry, "tool_input");
  denial.call = short_call(input == nullptr ? kNothing : *input);
  const bool edits = is_edit_tool(denial.tool);
  if (edits && permissions == Permissions::read) {
    denial.allow = "permissions: edit";
  } else if (edits) {
    const std::string folder = denial.call.substr(0, denial.call.rfind('/'));
    denial.allow = "driver_args: " + json::serialize(json::array{"--add-dir", folder.empty() ? "/" : folder});
  } else {
    std::string rule = plain(denial.tool) ? denial.tool : "Bash";
    const std::string word = denial.call.substr(0, denial.call.find(' '));
    // A rule of one word does not allow a compound shell command.
    const bool simple = denial.call.find_first_of(";&|<>$`()\n") == std::string::npos;
    if (denial.tool == "Bash" && plain(word) && simple) rule = fmt::format("Bash({}:*)", word);
    denial.allow = "driver_args: " + json::serialize(json::array{"--allowedTools", rule});
  }
  return denial;
}

Usage read_usage(const json::object& usage) {
  Usage out;
  out.fresh_in = count_at(usage, "input_tokens");
  out.cache_read = count_at(usage, "cache_read_input_tokens");
  out.cache_write = count_at(usage, "cache_creation_input_tokens");
  out.out = count_at(usage, "output_tokens");
  return out;
}
/// Of all models together, subagents too.
Usage read_model_usage(const json::object& models) {
  Usage out;
  for (const auto& [name, value] : models) {
    const json::object* const model = value.if_object();
    if (model == nullptr) continue;
    out.fresh_in += count_at(*model, "inputTokens");
    out.cache_read += count_at(*model, "cacheReadInputTokens");
    out.cache_write += count_at(*model, "cacheCreationInputTokens");
    out.out += count_at(*model, "outputTokens");
  }
  return out;
}

class ClaudeDialect final : public Dialect {
 public:
  Launch launch(const Invocation& invocation) override;
  void read(std::string_view line, std::vector<Progress>& out) override;
  bool result_seen() const override { return result_.seen; }
  bool is_conversation_unknown() const override {
    return result_.seen && result_.is_error && has(result_.why, "no conversation found");
  }
  bool gives_up() const override { return !gave_up_.empty(); }
  std::string waits_for() const override { return one_line(waiting_, kWaitShown); }
  PoliteEnd polite_end() override {
    PoliteEnd end;
    end.stdin_bytes = R"({"type":"control_request","request_id":"stint-end","request":{"subtype":"interrupt"}})"
                      "\n";
    end.close_stdin = true;
    return end;
  }
  Outcome finish(const ProcessEnd& end) override;

 private:
  struct Final {
    bool seen = false, is_error = false;
    std::string subtype, text, why, terminal;
    std::optional<int> status;
    Usage usage;
    std::vector<Denial> denials;
  };
  struct Message {
    std::string id;
    Usage usage;
  };
  struct Call {
    std::string id, tool, call;
  };

  void read_system(const json::object& event, std::vector<Progress>& out);
  void read_assistant(const json::object& event, std::vector<Progress>& out);
  void read_user(const json::object& event, std::vector<Progress>& out);
  void read_rate_limit(const json::object& event, std::vector<Progress>& out);
  void read_retry(const json::object& event, std::vector<Progress>& out);
  void read_stream(const json::object& event, std::vector<Progress>& out);
  void read_result(const json::object& event, std::vector<Progress>& out);
  void note_missing(std::string_view id);
  void count(std::string id, const Usage& usage);
  void count_out(std::string_view id, std::int64_t tokens);
  [[nodiscard]] Usage counted() const;
  void classify(Outcome& outcome, const ProcessEnd& end) const;
  void classify_stop(Outcome& outcome, const ProcessEnd& end) const;

  Permissions permissions_ = Permissions::edit;
  std::string conversation_;
  std::string error_;  // of the last assistant message: a word of the API
  Final result_;
  std::vector<Message> messages_;
  std::vector<Call> calls_;      // the latest
  std::vector<Denial> missing_;  // calls of tools that `permissions: read` leaves out
  Usage older_;                  // of messages that are no longer listed
  std::optional<WallTime> resets_at_;
  std::optional<Duration> retry_after_;
  std::string waiting_;    // why it waits before a retry of its own
  std::string streamed_;   // the message that a stream has begun
  int retry_status_ = 0;   // HTTP status that caused the retry; 0: no answer
  std::string gave_up_;    // why it would wait for too long
  bool rejected_ = false;  // by a rate limit of the account
};

Launch ClaudeDialect::launch(const Invocation& invocation) {
  permissions_ = invocation.permissions;
  conversation_ = invocation.conversation;
  Launch launch;
  launch.argv = {invocation.program.empty() ? std::string(kClaude) : invocation.program, "-p"};
  launch.argv.insert(launch.argv.end(), invocation.driver_args.begin(), invocation.driver_args.end());
  const auto add_arg = [&](std::string argument) { launch.argv.push_back(std::move(argument)); };
  // Each value is in the same word as its name: a value that begins with a dash is then not parsed as an option.
  add_arg("--output-format=stream-json");
  add_arg("--input-format=stream-json");
  add_arg("--verbose");
  add_arg("--include-partial-messages");  // the only source for the usage of a call that breaks in mid-stream
  const ToolRules rules{invocation.permissions, invocation.tools, invocation.tools_denied};
  for (std::string& argument : claude_arguments(rules)) add_arg(std::move(argument));
  if (!invocation.reads_checkout) {  // checked with the real CLI: tests/integration/untrusted_test.py
    add_arg("--setting-sources=user");
    if (std::ranges::find(launch.argv, "--strict-mcp-config") == launch.argv.end()) add_arg("--strict-mcp-config");
  }
  if (!invocation.model.empty()) add_arg("--model=" + invocation.model);
  if (!invocation.system_prompt.empty()) add_arg("--append-system-prompt=" + invocation.system_prompt);
  if (!invocation.conversation.empty()) {
    add_arg("--resume=" + invocation.conversation);
  } else if (!invocation.new_conversation.empty()) {
    add_arg("--session-id=" + invocation.new_conversation);
  }
  if (invocation.turns_max) add_arg(fmt::format("--max-turns={}", *invocation.turns_max));
  if (invocation.cost_micros_max) {
    add_arg(fmt::format("--max-budget-usd={}.{:06}", *invocation.cost_micros_max / 1'000'000,
                        *invocation.cost_micros_max % 1'000'000));
  }
  launch.env = {{"CLAUDECODE", std::nullopt},  // otherwise it assumes that it is nested
                {"CLAUDE_CODE_ENTRYPOINT", "stint"},
                {"DISABLE_AUTOUPDATER", "1"}};
  add_retry_off(launch, kClaude);
  if (invocation.permissions == Permissions::read) {
    for (auto& variable : read_only_git()) launch.env.push_back(std::move(variable));
  }
  json::object message{{"role", "user"}, {"content", invocation.prompt}};
  launch.stdin_text = json::serialize(json::object{{"type", "user"}, {"message", std::move(message)}}) + "\n";
  launch.close_stdin = false;
  return launch;
}

void ClaudeDialect::read(std::string_view line, std::vector<Progress>& out) {
  const std::optional<json::object> event = parse_object(line);
  if (!event) return emit(out, ProgressKind::note, line.substr(0, Progress::kTextMax));
  const std::string type = text_at(*event, "type");
  if (type == "system") return read_system(*event, out);
  waiting_.clear();
  if (type == "stream_event") return read_stream(*event, out);
  if (type == "assistant") return read_assistant(*event, out);
  if (type == "user") return read_user(*event, out);
  if (type == "rate_limit_event") return read_rate_limit(*event, out);
  if (type == "result") return read_result(*event, out);
  emit(out, ProgressKind::heartbeat, one_line(type, kShownMax));
}

void ClaudeDialect::read_system(const json::object& event, std::vector<Progress>& out) {
  const std::string subtype = text_at(event, "subtype");
  if (subtype == "init") {
    conversation_ = shortened(text_at(event, "session_id"), kShownMax);
    emit(out, ProgressKind::conversation, conversation_);
    emit(out, ProgressKind::note,
         one_line(fmt::format("claude {}, {}", text_at(event, "claude_code_version"), text_at(event, "model")),
                  kShownMax));
  } else if (subtype == "api_retry") {
    read_retry(event, out);
  } else {
    emit(out, ProgressKind::heartbeat, one_line(subtype, kShownMax));
  }
}

void ClaudeDialect::read_retry(const json::object& event, std::vector<Progress>& out) {
  const std::int64_t delay = std::min(count_at(event, "retry_delay_ms"), kDelayMsMax);
  const std::int64_t status = std::min<std::int64_t>(count_at(event, "error_status"), 999);
  retry_status_ = static_cast<int>(status);
  retry_after_.reset();
  if (delay > kOwnPauseMsMax) retry_after_ = std::chrono::milliseconds(delay);
  waiting_ = status == 0 ? "no answer, or an incomplete one" : fmt::format("HTTP {}", status);
  if (delay > kOwnWaitMsMax || (status == 429 && retry_after_)) gave_up_ = waiting_;
  emit(out, ProgressKind::rate_info, fmt::format("{}: retries in {} ms", waiting_, delay));
}

/// Reads the usage from the parts of an answer. Its text comes later, with the whole message.
void ClaudeDialect::read_stream(const json::object& event, std::vector<Progress>& out) {
  emit(out, ProgressKind::heartbeat, "");
  const json::object* const part = object_at(event, "event");
  if (part == nullptr) return;
  const std::string type = text_at(*part, "type");
  const json::object* usage = nullptr;
  if (type == "message_start") {
    const json::object* const message = object_at(*part, "message");
    if (message == nullptr) return;
    streamed_ = shortened(text_at(*message, "id"), kShownMax);
    usage = object_at(*message, "usage");
    if (usage != nullptr) count(streamed_, read_usage(*usage));
    emit(out, ProgressKind::model_start, "");
    out.back().call = streamed_;
    out.back().tool = one_line(text_at(*message, "model"), kShownMax);
  } else if (type == "message_stop" && !streamed_.empty()) {
    emit(out, ProgressKind::model_end, "");
    out.back().call = streamed_;
    const auto counted = std::ranges::find(messages_, streamed_, &Message::id);
    if (counted != messages_.end()) out.back().usage = counted->usage;
  } else if (type == "message_delta" && !streamed_.empty()) {
    usage = object_at(*part, "usage");
    if (usage != nullptr) count_out(streamed_, count_at(*usage, "output_tokens"));
  }
  if (usage == nullptr) return;
  emit(out, ProgressKind::usage, "");
  out.back().usage = counted();
}

void ClaudeDialect::read_assistant(const json::object& event, std::vector<Progress>& out) {
  const json::object* const message = object_at(event, "message");
  if (message == nullptr) return emit(out, ProgressKind::heartbeat, "");
  error_ = shortened(text_at(event, "error"), kShownMax);
  const bool synthetic = text_at(*message, "model") == "<synthetic>";  // text of the CLI, not of the model
  if (const json::object* const usage = object_at(*message, "usage"); usage != nullptr && !synthetic) {
    count(shortened(text_at(*message, "id"), kShownMax), read_usage(*usage));
    emit(out, ProgressKind::usage, "");
    out.back().usage = counted();
  }
  const json::array* const content = array_at(*message, "content");
  if (content == nullptr) return;
  for (const json::value& part : *content) {
    const json::object* const block = part.if_object();
    if (block == nullptr) continue;
    const std::string type = text_at(*block, "type");
    if (type == "text") {
      emit(out, synthetic ? ProgressKind::note : ProgressKind::text, text_at(*block, "text"));
    } else if (type == "thinking") {
      emit(out, ProgressKind::thinking, text_at(*block, "thinking"));
    } else if (type == "tool_use") {
      const json::object* const input = object_at(*block, "input");
      const std::string call = input == nullptr ? "" : short_call(*input);
      const std::string name = text_at(*block, "name");
      emit(out, ProgressKind::tool_start, one_line(name + " " + call, 2 * kShownMax));
      if (calls_.size() >= kCallsMax) calls_.erase(calls_.begin());
      calls_.push_back({shortened(text_at(*block, "id"), kShownMax), one_line(name, kShownMax), call});
      out.back().call = calls_.back().id;
      out.back().tool = calls_.back().tool;
    }
  }
}

void ClaudeDialect::read_user(const json::object& event, std::vector<Progress>& out) {
  const json::object* const message = object_at(event, "message");
  const json::array* const content = message == nullptr ? nullptr : array_at(*message, "content");
  bool emitted = false;
  if (content != nullptr) {
    for (const json::value& part : *content) {
      const json::object* const block = part.if_object();
      if (block == nullptr || text_at(*block, "type") != "tool_result") continue;
      const std::string said = one_line(text_at(*block, "content"), kShownMax);
      emit(out, ProgressKind::tool_end, (truth_at(*block, "is_error") ? "failed: " : "") + said);
      out.back().call = shortened(text_at(*block, "tool_use_id"), kShownMax);
      if (has(said, "no such tool available")) note_missing(text_at(*block, "tool_use_id"));
      emitted = true;
    }
  }
  if (!emitted) emit(out, ProgressKind::heartbeat, "");
}

/// Records a call of a tool that `permissions: read` leaves out: the CLI does not list it among the denials.
void ClaudeDialect::note_missing(std::string_view id) {
  if (permissions_ != Permissions::read || missing_.size() >= Outcome::kDenialsMax) return;
  const auto call = std::ranges::find(calls_, id, &Call::id);
  if (call != calls_.end()) missing_.push_back({call->tool, call->call, "permissions: edit"});
}

void ClaudeDialect::read_rate_limit(const json::object& event, std::vector<Progress>& out) {
  const json::object* const info = object_at(event, "rate_limit_info");
  if (info == nullptr) return emit(out, ProgressKind::heartbeat, "");
  const auto either = [&](std::string_view camel, std::string_view snake) {
    const auto number = number_at(*info, camel);
    return number ? number : number_at(*info, snake);
  };
  const std::string status = text_at(*info, "status");
  rejected_ = status == "rejected";
  resets_at_ = moment(either("resetsAt", "resets_at").value_or(0));
  std::string kind = text_at(*info, "rateLimitType");
  if (kind.empty()) kind = text_at(*info, "rate_limit_type");
  emit(out, ProgressKind::rate_info, one_line(kind + " " + status, kShownMax));
}

void ClaudeDialect::read_result(const json::object& event, std::vector<Progress>& out) {
  Final now;
  now.seen = true;
  now.is_error = truth_at(event, "is_error");
  now.subtype = shortened(text_at(event, "subtype"), kShownMax);
  now.text = shortened(text_at(event, "result"), Outcome::kTextMax);
  now.terminal = shortened(text_at(event, "terminal_reason"), kShownMax);
  if (const auto status = number_at(event, "api_error_status"); status && *status >= 100 && *status < 600) {
    now.status = static_cast<int>(*status);
  }
  if (const json::array* const errors = array_at(event, "errors"); errors != nullptr && !errors->empty()) {
    if (const json::string* const first = errors->front().if_string()) {
      now.why = one_line({first->data(), first->size()}, Outcome::kMessageMax);
    }
  }
  const json::object* const usage = object_at(event, "usage");
  const json::object* const models = object_at(event, "modelUsage");
  if (usage != nullptr) now.usage = read_usage(*usage);
  if (models != nullptr) {
    if (const Usage all = read_model_usage(*models); all.tokens() > now.usage.tokens()) now.usage = all;
  }
  now.usage.cost_micros = micros_of(real_at(event, "total_cost_usd"));
  if (const json::array* const refused = array_at(event, "permission_denials")) {
    for (const json::value& entry : *refused) {
      if (now.denials.size() >= Outcome::kDenialsMax) break;
      if (const json::object* const fields = entry.if_object())
        now.denials.push_back(read_denial(*fields, permissions_));
    }
  }
  for (const Denial& each : missing_) {
    if (now.denials.size() < Outcome::kDenialsMax) now.denials.push_back(each);
  }
  if (const std::string id = text_at(event, "session_id"); !id.empty()) conversation_ = shortened(id, kShownMax);
  // A second result may follow: of a further turn, or an error, which does not replace a success.
  if (result_.seen && !result_.is_error && now.is_error) {
    result_.usage = now.usage.tokens() > result_.usage.tokens() ? now.usage : result_.usage;
  } else {
    result_ = std::move(now);
  }
  emit(out, ProgressKind::usage, "");
  out.back().usage = result_.usage;
}

void ClaudeDialect::count(std::string id, const Usage& usage) {
  for (Message& message : messages_) {
    if (message.id != id) continue;
    const std::int64_t out = std::max(message.usage.out, usage.out);  // later lines may have less
    message.usage = usage;
    message.usage.out = out;
    return;
  }
  if (messages_.size() >= kMessagesMax) {
    older_ += messages_.front().usage;
    messages_.erase(messages_.begin());
  }
  messages_.push_back({std::move(id), usage});
}

void ClaudeDialect::count_out(std::string_view id, std::int64_t tokens) {
  for (Message& message : messages_) {
    if (message.id == id) message.usage.out = std::max(message.usage.out, tokens);
  }
}

Usage ClaudeDialect::counted() const {
  Usage sum = older_;
  for (const Message& message : messages_) sum += message.usage;
  sum.estimated = true;
  return sum;
}

Outcome ClaudeDialect::finish(const ProcessEnd& end) {
  Outcome outcome;
  if (!gave_up_.empty() && (!result_.seen || result_.is_error)) {
    outcome.http_status = retry_status_ == 0 ? std::nullopt : std::optional(retry_status_);
    outcome.message = fmt::format("the provider answered {} and asked to wait", gave_up_);
    classify_api_error(outcome, outcome.message);
    outcome.retry_after = retry_after_;
  } else if (result_.seen) {
    outcome.text = result_.text;
    outcome.denials = result_.denials;
    outcome.http_status = result_.status;
    classify(outcome, end);
  } else {
    outcome = ended_without_result(kClaude, end);
    if (outcome.kind == OutcomeKind::crashed && has(end.stderr_tail, "cannot be used with root")) {
      outcome.kind = OutcomeKind::permission_denied;
      outcome.message =
          "claude refuses permissions: full as root; run as another user, or set IS_SANDBOX=1 if this is a container";
    } else if (outcome.kind == OutcomeKind::crashed && has(end.stderr_tail, "/login")) {
      outcome.kind = OutcomeKind::not_logged_in;
    }
  }
  const Usage parts = counted();
  const std::int64_t cost = result_.usage.cost_micros;
  outcome.usage = parts.tokens() > result_.usage.tokens() ? parts : result_.usage;
  outcome.usage.cost_micros = cost;
  outcome.exit_status = end.exit_status;
  outcome.signal = end.signal;
  outcome.conversation = conversation_;
  if (outcome.kind == OutcomeKind::rate_limited) {
    outcome.resets_at = resets_at_;
    if (retry_after_) outcome.retry_after = retry_after_;  // more exact than the delay in its text
  }
  return outcome;
}

void ClaudeDialect::classify(Outcome& outcome, const ProcessEnd& end) const {
  if (!result_.is_error) {
    outcome.kind = OutcomeKind::succeeded;
    if (!result_.denials.empty()) outcome.message = fmt::format("{} calls were refused", result_.denials.size());
    return;
  }
  outcome.message = shortened(result_.text.empty() ? result_.why : result_.text, Outcome::kMessageMax);
  if (result_.subtype != "success") return classify_stop(outcome, end);
  if (error_ == "billing_error") {
    outcome.kind = OutcomeKind::api_error;
  } else if (result_.status == 403 && !has(result_.text, "oauth") && !has(result_.text, "/login")) {
    outcome.kind = OutcomeKind::api_error;  // the key is valid but lacks access: a new login changes nothing
  } else if (error_ == "authentication_failed") {
    outcome.kind = OutcomeKind::not_logged_in;
  } else if (rejected_) {
    outcome.kind = OutcomeKind::rate_limited;
  } else if (result_.status || !error_.empty() || has(result_.text, "api error") || has(result_.text, "/login")) {
    classify_api_error(outcome, result_.text);
  } else {
    outcome.kind = OutcomeKind::agent_error;
  }
  outcome.text.clear();  // not an answer
}

/// It ended, by itself or stopped by Stint, before the work was done.
void ClaudeDialect::classify_stop(Outcome& outcome, const ProcessEnd& end) const {
  if (result_.subtype == "error_max_budget_usd") {
    outcome.kind = OutcomeKind::over_budget;
  } else if (end.killed_by_us || result_.terminal.starts_with("aborted")) {
    outcome.kind = OutcomeKind::cancelled;
    outcome.message = "claude was interrupted";
  } else {
    outcome.kind = OutcomeKind::agent_error;
  }
}

}  // namespace

std::string choose_claude_conversation(std::string_view mark) {
  // Claude Code wants a UUID. A mark is unique, and as random as a run's id: two hashes of it are enough.
  const auto hash = [mark](std::uint64_t state) {
    constexpr std::uint64_t kPrime = 0x100000001b3;
    for (const char c : mark) state = (state ^ static_cast<unsigned char>(c)) * kPrime;
    state ^= state >> 32U;
    return state * 0x9e3779b97f4a7c15;
  };
  const std::uint64_t high = hash(0xcbf29ce484222325), low = hash(0x84222325cbf29ce4);
  return fmt::format("{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}", high >> 32U, (high >> 16U) & 0xffffU, high & 0xfffU,
                     0x8000U | ((low >> 48U) & 0x3fffU), low & 0xffffffffffffU);
}

std::unique_ptr<Dialect> make_claude() { return std::make_unique<ClaudeDialect>(); }

}  // namespace stint::driver
