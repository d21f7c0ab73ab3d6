// OpenAI's Codex: `codex exec --json`, checked with 0.166.
#include "driver/dialect_support.hpp"

#include <fmt/format.h>

#include <csignal>

namespace stint::driver {
namespace {

constexpr std::string_view kName = "codex";
constexpr std::size_t kShownMax = 200;

std::string_view sandbox(Permissions permissions) {
  switch (permissions) {
    case Permissions::read: return "read-only";
    case Permissions::edit: return "workspace-write";
    case Permissions::full: return "danger-full-access";
  }
  return "read-only";
}

class CodexDialect final : public Dialect {
 public:
  Launch launch(const Attempt& attempt) override {
    Launch launch;
    launch.argv = {attempt.program.empty() ? std::string(kName) : attempt.program,
                   "exec",
                   "--json",
                   "--skip-git-repo-check",
                   "--color",
                   "never"};
    launch.argv.insert(launch.argv.end(), attempt.driver_args.begin(), attempt.driver_args.end());
    if (!attempt.model.empty()) launch.argv.push_back("--model=" + attempt.model);
    launch.argv.push_back(fmt::format("--sandbox={}", sandbox(attempt.permissions)));
    if (!attempt.conversation.empty()) {
      launch.argv.emplace_back("resume");
      // An id that begins with a dash would be read as an option.
      if (!attempt.conversation.starts_with('-')) launch.argv.push_back(attempt.conversation);
    }
    launch.argv.emplace_back("-");
    launch.stdin_text =
        attempt.system_prompt.empty() ? attempt.prompt : attempt.system_prompt + "\n\n" + attempt.prompt;
    conversation_ = attempt.conversation;
    before_ = attempt.usage_before;
    return launch;
  }

  void read(std::string_view line, std::vector<Progress>& out) override {
    const std::optional<json::object> event = parse_object(line);
    if (!event) return say(out, ProgressKind::note, line.substr(0, Progress::kTextMax));
    const std::string type = text_at(*event, "type");
    if (type == "thread.started") {
      conversation_ = shortened(text_at(*event, "thread_id"), kShownMax);
      say(out, ProgressKind::conversation, conversation_);
    } else if (type == "turn.completed") {
      completed_ = true;
      read_usage(*event, out);
    } else if (type == "turn.failed") {
      failed_ = true;
      const json::object* const error = object_at(*event, "error");
      if (error != nullptr) error_ = shortened(text_at(*error, "message"), Outcome::kMessageMax);
    } else if (type == "error") {
      error_ = shortened(text_at(*event, "message"), Outcome::kMessageMax);
      say(out, ProgressKind::note, error_);
    } else if (const json::object* const item = object_at(*event, "item")) {
      read_item(type, *item, out);
    } else {
      say(out, ProgressKind::heartbeat, type);
    }
  }

  bool result_seen() const override { return completed_ || failed_; }
  PoliteEnd polite_end() override {
    PoliteEnd end;
    end.signal = SIGINT;  // the only signal it answers; it ends with status 1 and without a final event
    return end;
  }

  Outcome finish(const ProcessEnd& end) override {
    Outcome outcome;
    if (completed_ && !failed_) {
      outcome.kind = OutcomeKind::succeeded;
    } else if (end.killed_by_us || end.oom || end.signal || error_.empty()) {
      outcome = ended_without_result(kName, end);
      if (outcome.kind == OutcomeKind::crashed) reconsider(outcome, end.stderr_tail);
    } else {
      outcome.message = error_;
      outcome.http_status = has(error_, "status") ? status_in(error_) : std::nullopt;
      outcome.kind = OutcomeKind::agent_error;
      reconsider(outcome, error_);
    }
    outcome.exit_status = end.exit_status;
    outcome.signal = end.signal;
    outcome.text = std::move(text_);
    outcome.usage = usage_;
    outcome.conversation = conversation_;
    return outcome;
  }

 private:
  /// Its errors are sentences, so words decide.
  static void reconsider(Outcome& outcome, std::string_view words) {
    for (const std::string_view part : {"status", "stream disconnected", "high demand", "quota exceeded", "usage limit",
                                        "missing environment variable", "not logged in", "codex login",
                                        "error sending request", "timeout waiting", "rate limit"}) {
      if (has(words, part)) return classify_api_error(outcome, words);
    }
  }
  void read_usage(const json::object& event, std::vector<Progress>& out) {
    const json::object* const usage = object_at(event, "usage");
    if (usage == nullptr) return;
    // Cached tokens are inside the input here.
    Usage now;
    now.cache_read = count_at(*usage, "cached_input_tokens");
    now.cache_write = count_at(*usage, "cache_write_input_tokens");
    now.fresh_in = std::max<std::int64_t>(0, count_at(*usage, "input_tokens") - now.cache_read - now.cache_write);
    now.out = count_at(*usage, "output_tokens");
    now.reasoning = count_at(*usage, "reasoning_output_tokens");
    // It counts from the conversation's beginning.
    const auto since = [](std::int64_t total, std::int64_t before) {
      return std::max<std::int64_t>(0, total - before);
    };
    usage_.fresh_in = since(now.fresh_in, before_.fresh_in);
    usage_.cache_read = since(now.cache_read, before_.cache_read);
    usage_.cache_write = since(now.cache_write, before_.cache_write);
    usage_.out = since(now.out, before_.out);
    usage_.reasoning = std::min(usage_.out, since(now.reasoning, before_.reasoning));
    say(out, ProgressKind::usage, "");
    out.back().usage = usage_;
  }
  void read_item(std::string_view event, const json::object& item, std::vector<Progress>& out) {
    const std::string type = text_at(item, "type");
    const bool done = event == "item.completed";
    if (type == "agent_message") {
      if (!done) return say(out, ProgressKind::heartbeat, type);
      text_ = shortened(text_at(item, "text"), Outcome::kTextMax);
      return say(out, ProgressKind::text, text_);
    }
    if (type == "reasoning") return say(out, ProgressKind::thinking, text_at(item, "text"));
    if (type == "error") return say(out, ProgressKind::note, text_at(item, "message"));
    std::string what = type;
    if (type == "command_execution") what = text_at(item, "command");
    if (type == "mcp_tool_call") what = text_at(item, "server") + "." + text_at(item, "tool");
    if (event == "item.updated") return say(out, ProgressKind::heartbeat, one_line(what, kShownMax));
    if (done) {
      if (const auto status = number_at(item, "exit_code")) what += fmt::format(" → {}", *status);
    }
    say(out, done ? ProgressKind::tool_end : ProgressKind::tool_start, one_line(what, kShownMax));
  }

  std::string conversation_, text_, error_;
  Usage usage_, before_;
  bool completed_ = false, failed_ = false;
};

}  // namespace

std::unique_ptr<Dialect> make_codex() { return std::make_unique<CodexDialect>(); }

}  // namespace stint::driver
