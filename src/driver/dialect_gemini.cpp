// Google's Gemini CLI: `gemini -o stream-json`, checked with 0.61.
//
// Observed behaviour (tests/streams/gemini):
// 1. It retries up to ten times within four minutes, and reports that on stderr only: "Attempt 1 failed with status
//    500. Retrying with backoff... _ApiError: {…}". Only root or the user can change the settings for that. So the
//    first such line ends the attempt if it was a rate limit, otherwise the second.
// 2. It retries a broken stream up to four times without a message: the same text comes again.
// 3. Its text comes in deltas, each with a timestamp.
#include "driver/dialect_support.hpp"
#include "driver/registry.hpp"
#include "driver/tool_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>

namespace stint::driver {
namespace {

constexpr std::string_view kGemini = "gemini";

/// The permissions that would provide a refused tool; empty: Gemini CLI never has that tool.
std::string_view permissions_for(std::string_view tool) {
  if (tool == "write_file" || tool == "replace" || tool == "edit" || tool == "web_fetch") return "permissions: edit";
  return tool == "run_shell_command" ? "permissions: full" : std::string_view();
}

/// What its documented exit statuses mean; empty: none of them.
std::string_view meaning(int status) {
  switch (status) {
    case 41: return "no login or key";
    case 42: return "invalid input";
    case 44: return "its sandbox failed";
    case 52: return "its settings are invalid";
    case 53: return "it reached its turn limit";
    case 54: return "a tool failed fatally";
    case 55: return "the folder is not trusted";
    default: return {};
  }
}

/// The time of day of "…T02:17:00.510Z", in milliseconds; none if the text has another form.
std::optional<std::int64_t> time_of_day(std::string_view text) {
  constexpr std::array<std::pair<std::size_t, std::int64_t>, 3> kParts{{{11, 3'600'000}, {14, 60'000}, {17, 1000}}};
  const auto number = [&](std::size_t at, std::size_t digits) -> std::optional<std::int64_t> {
    std::int64_t value = 0;
    for (std::size_t i = at; i < at + digits; ++i) {
      if (text[i] < '0' || text[i] > '9') return std::nullopt;
      value = value * 10 + (text[i] - '0');
    }
    return value;
  };
  if (text.size() < 23) return std::nullopt;
  std::int64_t sum = number(20, 3).value_or(0);
  for (const auto& [at, scale] : kParts) {
    const auto value = number(at, 2);
    if (!value) return std::nullopt;
    sum += *value * scale;
  }
  return sum;
}

class GeminiDialect final : public Dialect {
 public:
  Launch launch(const Invocation& invocation) override {
    Launch launch;
    launch.argv = {invocation.program.empty() ? std::string(kGemini) : invocation.program,
                   "--output-format=stream-json", "--skip-trust"};
    launch.argv.insert(launch.argv.end(), invocation.driver_args.begin(), invocation.driver_args.end());
    if (!invocation.model.empty()) launch.argv.push_back("--model=" + invocation.model);
    for (std::string& argument :
         gemini_arguments({invocation.permissions, invocation.tools, invocation.tools_denied})) {
      launch.argv.push_back(std::move(argument));
    }
    if (invocation.permissions == Permissions::read) launch.env = read_only_git();
    if (!invocation.conversation.empty()) launch.argv.push_back("--resume=" + invocation.conversation);
    // Otherwise Stint would signal only a parent process, which does not forward signals to the one that works.
    launch.env.emplace_back("GEMINI_CLI_NO_RELAUNCH", "true");
    launch.stdin_text =
        invocation.system_prompt.empty() ? invocation.prompt : invocation.system_prompt + "\n\n" + invocation.prompt;
    conversation_ = invocation.conversation;
    prompt_tokens_ = estimated_tokens(launch.stdin_text);
    return launch;
  }

  void read(std::string_view line, std::vector<Progress>& out) override {
    const std::optional<json::object> event = parse_object(line);
    if (!event) return emit(out, ProgressKind::note, line.substr(0, Progress::kTextMax));
    const std::string type = text_at(*event, "type");
    begun_ = begun_ || type == "message";
    if (type != "error") waiting_.clear();
    if (type == "init") {
      conversation_ = shortened(text_at(*event, "session_id"), kShownMax);
      emit(out, ProgressKind::conversation, conversation_);
    } else if (type == "message") {
      read_message(*event, out);
    } else if (type == "tool_use") {
      settle_text(out);
      text_.clear();  // the text after the last call is the answer
      if (calls_.size() >= kCallsMax) calls_.erase(calls_.begin());
      const std::string name = shortened(text_at(*event, "tool_name"), kShownMax);
      const json::object* const parameters = object_at(*event, "parameters");
      std::string call = parameters == nullptr ? "" : text_at(*parameters, "command");
      if (call.empty() && parameters != nullptr) call = text_at(*parameters, "file_path");
      calls_.push_back({shortened(text_at(*event, "tool_id"), kShownMax), name, one_line(call, kShownMax)});
      emit(out, ProgressKind::tool_start, one_line(name + " " + call, kShownMax));
      out.back().call = calls_.back().id;
      out.back().tool = name;
    } else if (type == "tool_result") {
      read_tool_result(*event, out);
    } else if (type == "error") {
      const std::string message = shortened(text_at(*event, "message"), Outcome::kMessageMax);
      if (has(message, "loop detected")) loop_ = message;
      error_event_ = message;
      emit(out, ProgressKind::note, message);
    } else if (type == "result") {
      read_result(*event, out);
    } else {
      emit(out, ProgressKind::heartbeat, type);
    }
  }

  void read_error(std::string_view line) override {
    constexpr std::string_view kAttempt = "Attempt ", kFailed = " failed";
    if (line.starts_with("  code: ") || line.starts_with("  status: ")) {
      if (const auto status = status_in(line)) http_status_ = status;
    }
    if (!line.starts_with(kAttempt) || line.find(". Retrying ") == std::string_view::npos) return;
    const std::size_t end = line.find(kFailed);
    if (end == std::string_view::npos) return;
    const bool first = line.substr(kAttempt.size(), end - kAttempt.size()) == "1";
    http_status_ = has(line, "with status") ? status_in(line) : std::nullopt;
    own_retry_ = words_of(line);
    waiting_ = own_retry_;
    const bool limited = http_status_ == 429 || has(line, "quota") || has(line, "retrying after");
    if (limited) {
      http_status_ = 429;
      own_wait_ = wait_in(line);
    }
    gave_up_ = gave_up_ || limited || !first;
  }
  bool gives_up() const override { return gave_up_; }
  std::string waits_for() const override { return one_line(waiting_, kWaitShown); }
  bool result_seen() const override { return result_; }
  PoliteEnd polite_end() override {
    PoliteEnd end;
    end.signal = SIGINT;  // it then exits with status 0 and without a final event
    return end;
  }

  Outcome finish(const ProcessEnd& end) override {
    Outcome outcome;
    if (result_ && error_.empty() && loop_.empty()) {
      outcome.kind = OutcomeKind::succeeded;
      if (!denials_.empty()) outcome.message = fmt::format("{} calls were refused", denials_.size());
    } else if (gave_up_) {
      outcome.message = own_retry_;
      outcome.http_status = http_status_;
      classify_api_error(outcome, own_retry_);
      if (outcome.kind == OutcomeKind::rate_limited && own_wait_) outcome.retry_after = own_wait_;
    } else if (result_ && !end.killed_by_us) {
      judge_error(outcome, end);
    } else {
      outcome = ended_without_result(kGemini, end);
      const int status = end.exit_status.value_or(0);
      if (const std::string_view why = meaning(status); outcome.kind == OutcomeKind::crashed && !why.empty()) {
        outcome.kind = status == 41 ? OutcomeKind::not_logged_in : OutcomeKind::agent_error;
        outcome.message = shortened(fmt::format("{} ({})", outcome.message, why), Outcome::kMessageMax);
      }
    }
    outcome.exit_status = end.exit_status;
    outcome.signal = end.signal;
    // The usage of an interrupted call is not reported: estimate it.
    const bool refused = outcome.http_status || outcome.unreachable || outcome.kind == OutcomeKind::succeeded;
    if (begun_ && usage_.tokens() == 0 && !refused) {
      usage_.fresh_in = prompt_tokens_;
      usage_.out = text_.empty() ? 0 : estimated_tokens(text_);
      usage_.estimated = true;
    }
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

  void judge_error(Outcome& outcome, const ProcessEnd& end) const {
    outcome.kind = OutcomeKind::agent_error;
    outcome.message = error_.empty() ? "gemini stopped itself: " + loop_ : error_;
    if (has(error_, "api error") || has(error_, "quota")) {
      outcome.http_status = status_in(error_);
      if (!outcome.http_status) outcome.http_status = http_status_;
      if (!outcome.http_status) outcome.http_status = status_of_exit(end.exit_status.value_or(0));
      classify_api_error(outcome, error_);
    } else if (has(error_, "stream ended") || has(error_, "fetch failed")) {
      classify_api_error(outcome, error_);
    }
  }
  /// Its exit status is the HTTP status, of which an exit status keeps the last eight bits.
  static std::optional<int> status_of_exit(int exit) {
    for (const int status : {exit + 256, exit + 512}) {
      if (exit > 1 && status >= 400 && status <= 599) return status;
    }
    return std::nullopt;
  }
  /// The error in a line about its own retry: the provider's message, if the line has it.
  static std::string words_of(std::string_view line) {
    constexpr std::string_view kBackoff = "Retrying with backoff... ";
    const std::size_t at = line.find(kBackoff);
    std::string_view rest = at == std::string_view::npos ? line : line.substr(at + kBackoff.size());
    if (const std::size_t open = rest.find('{'); open != std::string_view::npos) {
      const std::optional<json::object> body = parse_object(rest.substr(open));
      const json::object* const error = body ? object_at(*body, "error") : nullptr;
      if (error != nullptr && !text_at(*error, "message").empty()) {
        return one_line(text_at(*error, "message"), Outcome::kMessageMax);
      }
    }
    return one_line(rest, Outcome::kMessageMax);
  }
  /// "Retrying after 3100ms...": the provider's delay and up to a fifth more.
  static std::optional<Duration> wait_in(std::string_view line) {
    constexpr std::string_view kAfter = "Retrying after ";
    const std::size_t at = line.find(kAfter);
    if (at == std::string_view::npos) return std::nullopt;
    return delay_in("retry in " + std::string(line.substr(at + kAfter.size())));
  }

  /// Reads a delta. After a broken stream the next one repeats the text from the beginning. Text that matches what was
  /// there before is held back, and dropped as a repetition once all of the old text has come again.
  void read_message(const json::object& event, std::vector<Progress>& out) {
    constexpr std::int64_t kPauseMsLeast = 900;  // it waits a second or more before a retry
    constexpr std::size_t kRepeatLeast = 8;  // bytes: less may repeat by chance, and a lost word is worse than a double
    if (text_at(event, "role") != "assistant") return emit(out, ProgressKind::heartbeat, "");
    const std::string content = text_at(event, "content");
    if (!truth_at(event, "delta")) {
      settle_text(out);
      text_.clear();
    }
    const auto now = time_of_day(text_at(event, "timestamp"));
    const bool paused = now && last_delta_ && *now - *last_delta_ >= kPauseMsLeast;
    last_delta_ = now;
    const bool may_repeat = repeated_ > 0 || (paused && text_.size() >= kRepeatLeast);
    if (may_repeat && !content.empty() && std::string_view(text_).substr(repeated_).starts_with(content)) {
      repeated_ += content.size();
      if (repeated_ == text_.size()) repeated_ = 0;  // all of it came again
      return emit(out, ProgressKind::heartbeat, "");
    }
    if (may_repeat && content.starts_with(std::string_view(text_).substr(repeated_))) {
      const std::size_t known = text_.size() - repeated_;
      repeated_ = 0;
      return add_text(std::string_view(content).substr(known), out);
    }
    settle_text(out);
    add_text(content, out);
  }
  void add_text(std::string_view more, std::vector<Progress>& out) {
    if (text_.size() < Outcome::kTextMax) {
      text_ += more;
      if (text_.size() > Outcome::kTextMax) text_ = shortened(text_, Outcome::kTextMax);
    }
    emit(out, ProgressKind::text, more);
    out.back().is_part = true;
  }
  /// Emits held-back text that turned out not to be a repetition.
  void settle_text(std::vector<Progress>& out) {
    const std::string held = text_.substr(0, std::exchange(repeated_, 0));
    if (!held.empty()) add_text(held, out);
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
    const std::string_view allow = permissions_for(call.tool);
    if (refused && !allow.empty() && denials_.size() < Outcome::kDenialsMax) {
      denials_.push_back({call.tool, call.call, std::string(allow)});
    }
    emit(out, ProgressKind::tool_end, call.tool + " → " + one_line(text_at(event, "status"), kShownMax));
    out.back().call = id;
  }
  void read_result(const json::object& event, std::vector<Progress>& out) {
    result_ = true;
    if (text_at(event, "status") != "success") {
      const json::object* const error = object_at(event, "error");
      error_ = shortened(error == nullptr ? "" : text_at(*error, "message"), Outcome::kMessageMax);
      if (error_.empty()) error_ = error_event_.empty() ? "gemini failed without an error message" : error_event_;
      repeated_ = 0;
    }
    settle_text(out);
    const json::object* const stats = object_at(event, "stats");
    if (stats == nullptr) return;
    // Gemini CLI includes cached tokens in the input.
    usage_.cache_read = count_at(*stats, "cached");
    usage_.fresh_in = std::max<std::int64_t>(0, count_at(*stats, "input_tokens") - usage_.cache_read);
    usage_.out = count_at(*stats, "output_tokens");
    emit(out, ProgressKind::usage, "");
    out.back().usage = usage_;
  }

  std::string conversation_, text_, error_;
  std::string error_event_;                 // by an event of kind error
  std::string loop_;                        // why it stopped itself
  std::string own_retry_;                   // the error that it announced a retry for
  std::string waiting_;                     // the same, until the next event
  std::size_t repeated_ = 0;                // bytes of the text that have come again
  std::optional<std::int64_t> last_delta_;  // its time of day
  std::optional<int> http_status_;          // from stderr
  std::optional<Duration> own_wait_;
  std::int64_t prompt_tokens_ = 0;
  std::vector<Call> calls_;
  std::vector<Denial> denials_;
  Usage usage_;
  bool begun_ = false, result_ = false;
  bool gave_up_ = false;  // it would retry more often than it may
};

}  // namespace

std::unique_ptr<Dialect> make_gemini() { return std::make_unique<GeminiDialect>(); }

}  // namespace stint::driver
