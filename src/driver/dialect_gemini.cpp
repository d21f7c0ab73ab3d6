// Google's Gemini CLI: `gemini -o stream-json`, checked with 0.61.
#include "driver/dialect_support.hpp"

#include <fmt/format.h>

#include <csignal>

namespace stint::driver {
namespace {

constexpr std::string_view kName = "gemini";
constexpr std::size_t kShownMax = 200;
constexpr std::size_t kCallsMax = 64;  // tool calls that are open at once

std::string_view mode(Permissions permissions) {
  switch (permissions) {
    case Permissions::read: return "default";  // without a terminal it has no tool that changes anything
    case Permissions::edit: return "auto_edit";
    case Permissions::full: return "yolo";
  }
  return "default";
}

/// Its exit statuses with a meaning of their own.
std::string_view meaning(int status) {
  switch (status) {
    case 41: return "no login or key";
    case 42: return "it did not accept its input";
    case 44: return "its sandbox failed";
    case 52: return "its settings are wrong";
    case 53: return "it reached its limit of turns";
    case 54: return "a tool failed for good";
    case 55: return "the folder is not trusted";
    default: return {};
  }
}

class GeminiDialect final : public Dialect {
 public:
  Launch launch(const Attempt& attempt) override {
    Launch launch;
    launch.argv = {attempt.program.empty() ? std::string(kName) : attempt.program, "--output-format=stream-json",
                   "--skip-trust"};
    launch.argv.insert(launch.argv.end(), attempt.driver_args.begin(), attempt.driver_args.end());
    if (!attempt.model.empty()) launch.argv.push_back("--model=" + attempt.model);
    launch.argv.push_back(fmt::format("--approval-mode={}", mode(attempt.permissions)));
    if (!attempt.conversation.empty()) launch.argv.push_back("--resume=" + attempt.conversation);
    // Otherwise the process that we signal is only the parent of the one that works, and passes nothing on.
    launch.env.emplace_back("GEMINI_CLI_NO_RELAUNCH", "true");
    launch.stdin_text =
        attempt.system_prompt.empty() ? attempt.prompt : attempt.system_prompt + "\n\n" + attempt.prompt;
    conversation_ = attempt.conversation;
    return launch;
  }

  void read(std::string_view line, std::vector<Progress>& out) override {
    const std::optional<json::object> event = parse_object(line);
    if (!event) return say(out, ProgressKind::note, line.substr(0, Progress::kTextMax));
    const std::string type = text_at(*event, "type");
    if (type == "init") {
      conversation_ = shortened(text_at(*event, "session_id"), kShownMax);
      say(out, ProgressKind::conversation, conversation_);
    } else if (type == "message") {
      read_message(*event, out);
    } else if (type == "tool_use") {
      text_.clear();  // what follows the last call is the answer
      if (calls_.size() >= kCallsMax) calls_.erase(calls_.begin());
      const std::string name = shortened(text_at(*event, "tool_name"), kShownMax);
      const json::object* const parameters = object_at(*event, "parameters");
      std::string call = parameters == nullptr ? "" : text_at(*parameters, "command");
      if (call.empty() && parameters != nullptr) call = text_at(*parameters, "file_path");
      calls_.push_back({shortened(text_at(*event, "tool_id"), kShownMax), name, one_line(call, kShownMax)});
      say(out, ProgressKind::tool_start, one_line(name + " " + call, kShownMax));
    } else if (type == "tool_result") {
      read_tool_result(*event, out);
    } else if (type == "error") {
      const std::string message = shortened(text_at(*event, "message"), Outcome::kMessageMax);
      if (has(message, "loop detected")) gave_up_ = message;
      say(out, ProgressKind::note, message);
    } else if (type == "result") {
      read_result(*event, out);
    } else {
      say(out, ProgressKind::heartbeat, type);
    }
  }

  bool result_seen() const override { return result_; }
  PoliteEnd polite_end() override {
    PoliteEnd end;
    end.signal = SIGINT;  // it then leaves with status 0 and without a final event
    return end;
  }

  Outcome finish(const ProcessEnd& end) override {
    Outcome outcome;
    if (result_ && error_.empty() && gave_up_.empty()) {
      outcome.kind = OutcomeKind::succeeded;
      if (!denials_.empty()) outcome.message = fmt::format("{} calls were refused", denials_.size());
    } else if (result_ && !end.killed_by_us) {
      outcome.kind = OutcomeKind::agent_error;
      outcome.message = error_.empty() ? "gemini stopped itself: " + gave_up_ : error_;
      if (has(error_, "api error") || has(error_, "quota")) {
        outcome.http_status = status_in(error_);
        classify_api_error(outcome, error_);
      }
    } else {
      outcome = ended_without_result(kName, end);
      const int status = end.exit_status.value_or(0);
      if (const std::string_view why = meaning(status); outcome.kind == OutcomeKind::crashed && !why.empty()) {
        outcome.kind = status == 41 ? OutcomeKind::not_logged_in : OutcomeKind::agent_error;
        outcome.message = shortened(fmt::format("{} ({})", outcome.message, why), Outcome::kMessageMax);
      }
    }
    outcome.exit_status = end.exit_status;
    outcome.signal = end.signal;
    outcome.text = std::move(text_);
    outcome.usage = usage_;
    outcome.conversation = conversation_;
    outcome.denials = std::move(denials_);
    return outcome;
  }

 private:
  struct Call {
    std::string id, tool, call;
  };

  void read_message(const json::object& event, std::vector<Progress>& out) {
    if (text_at(event, "role") != "assistant") return say(out, ProgressKind::heartbeat, "");
    const std::string content = text_at(event, "content");
    if (!truth_at(event, "delta")) text_.clear();
    if (text_.size() < Outcome::kTextMax) {
      text_ += content;
      if (text_.size() > Outcome::kTextMax) text_ = shortened(text_, Outcome::kTextMax);
    }
    say(out, ProgressKind::text, content);
  }
  void read_tool_result(const json::object& event, std::vector<Progress>& out) {
    Call call;
    const std::string id = shortened(text_at(event, "tool_id"), kShownMax);
    for (auto it = calls_.begin(); it != calls_.end(); ++it) {
      if (it->id != id) continue;
      call = std::move(*it);
      calls_.erase(it);
      break;
    }
    const json::object* const error = object_at(event, "error");
    const std::string kind = error == nullptr ? "" : text_at(*error, "type");
    const bool refused = kind == "tool_not_registered" || has(kind, "policy") || has(kind, "denied");
    if (refused && denials_.size() < Outcome::kDenialsMax) {
      const bool edits = call.tool == "write_file" || call.tool == "replace" || call.tool == "edit";
      denials_.push_back({call.tool, call.call, edits ? "permissions: edit" : "permissions: full"});
    }
    say(out, ProgressKind::tool_end, call.tool + " → " + one_line(text_at(event, "status"), kShownMax));
  }
  void read_result(const json::object& event, std::vector<Progress>& out) {
    result_ = true;
    if (text_at(event, "status") != "success") {
      const json::object* const error = object_at(event, "error");
      error_ = shortened(error == nullptr ? "" : text_at(*error, "message"), Outcome::kMessageMax);
      if (error_.empty()) error_ = "gemini failed and did not say why";
    }
    const json::object* const stats = object_at(event, "stats");
    if (stats == nullptr) return;
    // Cached tokens are inside the input here.
    usage_.cache_read = count_at(*stats, "cached");
    usage_.fresh_in = std::max<std::int64_t>(0, count_at(*stats, "input_tokens") - usage_.cache_read);
    usage_.out = count_at(*stats, "output_tokens");
    say(out, ProgressKind::usage, "");
    out.back().usage = usage_;
  }

  std::string conversation_, text_, error_, gave_up_;
  std::vector<Call> calls_;
  std::vector<Denial> denials_;
  Usage usage_;
  bool result_ = false;
};

}  // namespace

std::unique_ptr<Dialect> make_gemini() { return std::make_unique<GeminiDialect>(); }

}  // namespace stint::driver
