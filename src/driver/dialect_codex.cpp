// OpenAI's Codex: `codex exec --json`, checked with 0.166 and 0.169.
//
// Observed behaviour of its stream (tests/streams/codex):
// 1. When the provider fails it retries up to five times silently, then starts over five times, each with an event
//    "Reconnecting... 1/5 (why)". Its built-in provider has no setting for that. So the first such event ends the
//    attempt; after a broken stream the second one does.
//    It calls its own provider over a WebSocket first and falls back to HTTPS after five failures. Those events are
//    ignored, unless the refusal would hold for HTTPS as well.
// 2. Without a connection it waits for ever: "Reconnecting... waiting for network (why)".
// 3. It reports usage when a turn is complete, and never for a failed turn.
// 4. It has a token budget of its own, which ends the turn with "budget reached",
//    or, in 0.166, "shared rollout token budget exhausted".
#include "domain/driver_descriptor.hpp"
#include "driver/dialect_support.hpp"
#include "driver/registry.hpp"
#include "driver/tool_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

namespace stint::driver {
namespace {

constexpr std::string_view kCodex = "codex";
constexpr std::string_view kReconnecting = "Reconnecting...";

/// Whether its own budget has ended the turn, in the wording of any version.
bool is_budget_used_up(std::string_view error) {
  return has(error, "budget") && (has(error, "reached") || has(error, "exhausted") || has(error, "exceeded"));
}

/// The text in the parentheses of "Reconnecting... 1/5 (why)".
std::string_view reason_in(std::string_view message) {
  const std::size_t open = message.find('(');
  if (open == std::string_view::npos) return message;
  message.remove_prefix(open + 1);
  return message.ends_with(')') ? message.substr(0, message.size() - 1) : message;
}

/// Whether only the WebSocket failed, so that Codex will still try HTTPS.
bool is_before_https(std::string_view reason) {
  if (!has(reason, "ws://") && !has(reason, "wss://") && !has(reason, "websocket")) return false;
  const int status = has(reason, "status") ? status_in(reason).value_or(0) : 0;
  return status != 401 && status != 403 && status != 429;
}

/// The provider that the arguments choose, if the user defined it: only such providers have settings for retries.
std::string own_provider(const std::vector<std::string>& arguments) {
  constexpr std::string_view kKey = "model_provider=";
  for (const std::string& argument : arguments) {
    if (argument.find("request_max_retries") != std::string::npos) return {};  // the user has chosen
  }
  for (const std::string& argument : arguments) {
    const std::size_t at = argument.find(kKey);
    const bool config = at == 0 || (at != std::string::npos && argument.substr(0, at) == "--config=");
    if (!config) continue;
    std::string name = argument.substr(at + kKey.size());
    std::erase_if(name, [](char c) { return c == '"' || c == '\'' || c == ' '; });
    const bool plain = !name.empty() && name.find_first_not_of(
                                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789-_") == std::string::npos;
    const bool built_in =
        name == "openai" || name == "oss" || name == "ollama" || name == "lmstudio" || name == "amazon-bedrock";
    return plain && !built_in ? name : std::string();
  }
  return {};
}

/// An argument of the descriptor, with the name of the provider.
std::string with_provider(std::string_view argument, std::string_view provider) {
  constexpr std::string_view kPlace = "{provider}";
  std::string out(argument);
  if (const std::size_t at = out.find(kPlace); at != std::string::npos) out.replace(at, kPlace.size(), provider);
  return out;
}

/// The budget that Codex itself enforces, in weighted tokens. With a price, the weights follow the cost.
struct OwnBudget {
  std::int64_t limit = 0;
  double output_weight = 1;
};
std::optional<OwnBudget> budget_of(const Invocation& invocation) {
  std::optional<OwnBudget> budget;
  if (invocation.tokens_max) budget = OwnBudget{.limit = *invocation.tokens_max};
  if (invocation.cost_micros_max && invocation.price.known()) {
    const Price& price = invocation.price;
    const double input = static_cast<double>(price.input > 0 ? price.input : price.output);
    OwnBudget cost;
    cost.limit = static_cast<std::int64_t>(static_cast<double>(*invocation.cost_micros_max) * 1e6 / input);
    cost.output_weight = std::max(1.0, static_cast<double>(price.output) / input);
    if (budget) cost.limit = std::min(cost.limit, budget->limit);  // a weight of one or more: the stricter of both
    budget = cost;
  }
  if (budget) budget->limit = std::max<std::int64_t>(1, budget->limit);
  return budget;
}

class CodexDialect final : public Dialect {
 public:
  Launch launch(const Invocation& invocation) override {
    Launch launch;
    launch.argv = {invocation.program.empty() ? std::string(kCodex) : invocation.program,
                   "exec",
                   "--json",
                   "--skip-git-repo-check",
                   "--color",
                   "never"};
    launch.argv.insert(launch.argv.end(), invocation.driver_args.begin(), invocation.driver_args.end());
    if (!invocation.model.empty()) launch.argv.push_back("--model=" + invocation.model);
    permissions_ = invocation.permissions;
    for (std::string& argument : codex_arguments({invocation.permissions, invocation.tools, invocation.tools_denied})) {
      launch.argv.push_back(std::move(argument));
    }
    add_limits(launch, invocation, limit_);
    if (!invocation.conversation.empty()) {
      launch.argv.emplace_back("resume");
      // An id that begins with a dash would be parsed as an option.
      if (!invocation.conversation.starts_with('-')) launch.argv.push_back(invocation.conversation);
    }
    launch.argv.emplace_back("-");
    launch.stdin_text =
        invocation.system_prompt.empty() ? invocation.prompt : invocation.system_prompt + "\n\n" + invocation.prompt;
    conversation_ = invocation.conversation;
    before_ = invocation.usage_before;
    prompt_tokens_ = estimated_tokens(launch.stdin_text);
    return launch;
  }

  void read(std::string_view line, std::vector<Progress>& out) override {
    const std::optional<json::object> event = parse_object(line);
    if (!event) return emit(out, ProgressKind::note, line.substr(0, Progress::kTextMax));
    const std::string type = text_at(*event, "type");
    if (type != "error") waiting_.clear();
    if (type == "turn.started") begun_ = true;
    if (type == "thread.started") {
      conversation_ = shortened(text_at(*event, "thread_id"), kShownMax);
      emit(out, ProgressKind::conversation, conversation_);
    } else if (type == "turn.completed") {
      completed_ = true;
      read_usage(*event, out);
    } else if (type == "turn.failed") {
      failed_ = true;
      const json::object* const error = object_at(*event, "error");
      if (error != nullptr) error_ = shortened(text_at(*error, "message"), Outcome::kMessageMax);
    } else if (type == "error") {
      read_error_event(text_at(*event, "message"), out);
    } else if (const json::object* const item = object_at(*event, "item")) {
      read_item(type, *item, out);
    } else {
      emit(out, ProgressKind::heartbeat, type);
    }
  }

  bool result_seen() const override { return completed_ || failed_; }
  bool gives_up() const override { return gave_up_; }
  std::string waits_for() const override { return one_line(waiting_, kWaitShown); }
  PoliteEnd polite_end() override {
    PoliteEnd end;
    end.signal = SIGINT;  // the only signal that it handles; it exits with status 1 and without a final event
    return end;
  }

  Outcome finish(const ProcessEnd& end) override {
    Outcome outcome;
    if (completed_ && !failed_) {
      outcome.kind = OutcomeKind::succeeded;
    } else if (limit_ > 0 && is_budget_used_up(error_)) {
      outcome.kind = OutcomeKind::over_budget;
      outcome.message = "codex reports that the token or cost budget is used up";
      usage_.fresh_in = std::max(usage_.fresh_in, limit_);
      usage_.estimated = true;
    } else if (gave_up_) {
      judge_error(outcome);
    } else if (end.killed_by_us || end.oom || end.signal || error_.empty()) {
      outcome = ended_without_result(kCodex, end);
      if (outcome.kind == OutcomeKind::crashed) reconsider(outcome, end.stderr_tail);
    } else {
      judge_error(outcome);
    }
    count_unseen(outcome);
    outcome.exit_status = end.exit_status;
    outcome.signal = end.signal;
    outcome.text = std::move(text_);
    outcome.usage = usage_;
    outcome.conversation = conversation_;
    note_refused_patch(end.stderr_tail);
    outcome.denials = std::move(denials_);
    return outcome;
  }

 private:
  static void add_limits(Launch& launch, const Invocation& invocation, std::int64_t& limit) {
    const auto add = [&](std::string setting) {
      launch.argv.emplace_back("-c");
      launch.argv.push_back(std::move(setting));
    };
    if (const std::string name = own_provider(invocation.driver_args); !name.empty()) {
      for (const std::string_view argument : domain::find_driver(kCodex)->retry_off_arguments) {
        launch.argv.push_back(with_provider(argument, name));
      }
    }
    if (const auto budget = budget_of(invocation)) {
      limit = budget->limit;
      add(
          fmt::format("features.rollout_budget={{enabled=true, limit_tokens={}, reminder_at_remaining_tokens=[1], "
                      "sampling_token_weight={:.3f}, prefill_token_weight=1.0}}",
                      budget->limit, budget->output_weight));
      add("suppress_unstable_features_warning=true");
    }
  }
  void read_error_event(const std::string& message, std::vector<Progress>& out) {
    emit(out, ProgressKind::note, shortened(message, Outcome::kMessageMax));
    if (!message.starts_with(kReconnecting)) {
      error_ = shortened(message, Outcome::kMessageMax);
      return;
    }
    error_ = shortened(reason_in(message), Outcome::kMessageMax);
    waiting_ = error_;
    const bool broke = has(error_, "stream disconnected") && !has(error_, "error sending request");
    if (is_before_https(error_)) return;
    if (broke) ++breaks_;
    gave_up_ = gave_up_ || !broke || breaks_ > kBreaksMax;
  }
  /// Records what its sandbox refused. Codex reports that only to the model; visible here are commands whose output
  /// shows it, and patches.
  void deny(std::string_view tool, std::string_view call) {
    if (denials_.size() >= Outcome::kDenialsMax) return;
    const bool reads = permissions_ == Permissions::read;
    denials_.push_back(
        {std::string(tool), one_line(call, kShownMax), reads ? "permissions: edit" : "permissions: full"});
  }
  void note_refused_command(const json::object& item) {
    if (permissions_ == Permissions::full) return;
    if (has(text_at(item, "aggregated_output"), "read-only file system")) deny("shell", text_at(item, "command"));
  }
  void note_refused_patch(std::string_view errors) {
    if (has(errors, "patch rejected: writing is blocked")) deny("apply_patch", "");
  }
  /// Its errors are sentences without codes, so their wording decides.
  void judge_error(Outcome& outcome) const {
    outcome.message = error_;
    outcome.http_status = has(error_, "status") ? status_in(error_) : std::nullopt;
    if (has(error_, "high demand")) outcome.http_status = 500;     // its wording for that status
    if (has(error_, "quota exceeded")) outcome.http_status = 429;  // its wording for `insufficient_quota`
    outcome.kind = OutcomeKind::agent_error;
    reconsider(outcome, error_);
  }
  /// Estimates the usage of a turn that did not complete: at least the prompt, once for each stream.
  void count_unseen(const Outcome& outcome) {
    const bool refused = outcome.http_status || outcome.unreachable || has(outcome.message, "error sending request");
    if (!begun_ || completed_ || refused || usage_.tokens() > 0) return;
    usage_.fresh_in = prompt_tokens_ * (breaks_ + (breaks_ > kBreaksMax ? 0 : 1));
    usage_.out = text_.empty() ? 0 : estimated_tokens(text_);
    usage_.estimated = true;
  }
  static void reconsider(Outcome& outcome, std::string_view words) {
    for (const std::string_view part :
         {"status", "stream disconnected", "high demand", "quota exceeded", "usage limit",
          "missing environment variable", "not logged in", "codex login", "error sending request", "timeout waiting",
          "rate limit", "connection failed"}) {
      if (has(words, part)) return classify_api_error(outcome, words);
    }
  }
  void read_usage(const json::object& event, std::vector<Progress>& out) {
    const json::object* const usage = object_at(event, "usage");
    if (usage == nullptr) return;
    // Codex includes cached tokens in the input.
    Usage now;
    now.cache_read = count_at(*usage, "cached_input_tokens");
    now.cache_write = count_at(*usage, "cache_write_input_tokens");
    now.fresh_in = std::max<std::int64_t>(0, count_at(*usage, "input_tokens") - now.cache_read - now.cache_write);
    now.out = count_at(*usage, "output_tokens");
    now.reasoning = count_at(*usage, "reasoning_output_tokens");
    // Codex counts from the beginning of the conversation.
    const auto since = [](std::int64_t total, std::int64_t before) {
      return std::max<std::int64_t>(0, total - before);
    };
    usage_.fresh_in = since(now.fresh_in, before_.fresh_in);
    usage_.cache_read = since(now.cache_read, before_.cache_read);
    usage_.cache_write = since(now.cache_write, before_.cache_write);
    usage_.out = since(now.out, before_.out);
    usage_.reasoning = std::min(usage_.out, since(now.reasoning, before_.reasoning));
    emit(out, ProgressKind::usage, "");
    out.back().usage = usage_;
  }
  void read_item(std::string_view event, const json::object& item, std::vector<Progress>& out) {
    const std::string type = text_at(item, "type");
    const bool done = event == "item.completed";
    if (type == "agent_message") {
      if (!done) return emit(out, ProgressKind::heartbeat, type);
      text_ = shortened(text_at(item, "text"), Outcome::kTextMax);
      return emit(out, ProgressKind::text, text_);
    }
    if (type == "reasoning") return emit(out, ProgressKind::thinking, text_at(item, "text"));
    if (type == "error") return emit(out, ProgressKind::note, text_at(item, "message"));
    std::string what = type;
    if (type == "command_execution") what = text_at(item, "command");
    if (type == "mcp_tool_call") what = text_at(item, "server") + "." + text_at(item, "tool");
    if (event == "item.updated") return emit(out, ProgressKind::heartbeat, one_line(what, kShownMax));
    if (done) {
      if (const auto status = number_at(item, "exit_code")) what += fmt::format(" → {}", *status);
      note_refused_command(item);
    }
    emit(out, done ? ProgressKind::tool_end : ProgressKind::tool_start, one_line(what, kShownMax));
    out.back().call = shortened(text_at(item, "id"), kShownMax);
    if (!done) out.back().tool = one_line(type == "mcp_tool_call" ? what : type, kShownMax);
  }

  std::string conversation_, text_, error_;
  static constexpr int kBreaksMax = 1;  // broken streams that Codex may retry by itself

  std::string waiting_;  // why it waits before a retry of its own
  Usage usage_, before_;
  std::int64_t prompt_tokens_ = 0;
  std::int64_t limit_ = 0;  // of its own budget
  int breaks_ = 0;
  bool begun_ = false, completed_ = false, failed_ = false;
  bool gave_up_ = false;  // it would retry more often than it may
  Permissions permissions_ = Permissions::edit;
  std::vector<Denial> denials_;
};

}  // namespace

std::unique_ptr<Dialect> make_codex() { return std::make_unique<CodexDialect>(); }

}  // namespace stint::driver
