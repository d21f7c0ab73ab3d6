// Reads the bodies of clients' requests. A member that is unknown, null or of the wrong type is refused by name: a
// client that misspells something must not get a run without it.
#include "wire/fleet.hpp"
#include "wire/request_fields.hpp"
#include "wire/strict_json.hpp"
#include "wire/time_text.hpp"

namespace stint::wire {
namespace {

constexpr std::int64_t kMsMax = 1'000'000'000'000;  // 31 years
constexpr std::int64_t kAttemptsMax = 100;          // as on the command line

Result<std::vector<std::string>> read_words(const json::value& value) {
  const json::array* const array = value.if_array();
  if (array == nullptr) return fail(Errc::invalid, "'words' must be a list of strings");
  std::vector<std::string> words;
  for (const json::value& each : *array) {
    if (!each.is_string()) return fail(Errc::invalid, "'words' must be a list of strings");
    words.emplace_back(each.get_string());
  }
  return words;
}

Result<> read_arguments_of(const json::object& object, engine::Submission& submission) {
  STINT_TRY(const json::value* const args, field(object, "args"));
  STINT_TRY(const json::value* const words, field(object, "words"));
  if (args != nullptr) {
    STINT_TRY(submission.args, read_args(*args));
  }
  if (words != nullptr) {
    STINT_TRY(submission.words, read_words(*words));
  }
  if (!submission.args.empty() && words != nullptr) {
    return fail(Errc::invalid, "'args' (by name) and 'words' (in order) can't be combined: send one of them");
  }
  return {};
}

Result<> read_times_of(const json::object& object, engine::Submission& submission) {
  STINT_TRY(const auto deadline, number_field(object, "deadline_ms", 1, kMsMax));
  if (deadline) submission.deadline = std::chrono::milliseconds(*deadline);
  STINT_TRY(const json::value* const moment, field(object, "deadline"));
  if (moment != nullptr) {
    if (deadline) {
      return fail(Errc::invalid,
                  "'deadline' (absolute) and 'deadline_ms' (from now) can't be combined: send one of them");
    }
    STINT_TRY(const std::string text, text_field(object, "deadline"));
    submission.deadline_at = parse_time(text);
    if (!submission.deadline_at) {
      return fail(Errc::invalid,
                  "'deadline' must be a time such as 2026-11-16T03:00:00Z; for a duration use 'deadline_ms'");
    }
  }
  STINT_TRY(const auto delay, number_field(object, "delay_ms", 0, kMsMax));
  if (delay) submission.delay = std::chrono::milliseconds(*delay);
  return {};
}

}  // namespace

Result<domain::ArgumentValues> read_arguments(std::string_view text) {
  STINT_TRY(json::object object, parse_strictly(text, NumbersAsText::everywhere));
  return read_args(json::value(std::move(object)));
}

Result<SubmitRequest> read_submit(std::string_view body) {
  STINT_TRY(const json::object object, parse_strictly(body, NumbersAsText::in_args));
  STINT_CHECK(only(object, {"agent", "args", "words", "prompt", "session", "parent", "priority", "budget", "deadline",
                            "deadline_ms", "delay_ms", "driver", "model", "wait", "parent_waits", "one_budget"}));
  SubmitRequest request;
  engine::Submission& submission = request.submission;
  STINT_TRY(submission.agent, text_field(object, "agent"));
  STINT_TRY(submission.prompt, text_field(object, "prompt"));
  STINT_TRY(submission.session, text_field(object, "session"));
  STINT_TRY(submission.parent, text_field(object, "parent"));
  STINT_TRY(submission.driver, text_field(object, "driver"));
  STINT_TRY(submission.model, text_field(object, "model"));
  STINT_TRY(submission.one_budget, text_field(object, "one_budget"));
  STINT_CHECK(read_arguments_of(object, submission));
  STINT_TRY(const json::value* const budget, field(object, "budget"));
  if (budget != nullptr) {
    STINT_TRY(submission.budget, read_budget(*budget));
    if (submission.budget.attempts.value_or(1) > kAttemptsMax) {
      return fail(Errc::invalid, "budget.attempts is at most " + std::to_string(kAttemptsMax));
    }
  }
  STINT_TRY(const auto priority, number_field(object, "priority", -domain::kPriorityMax, domain::kPriorityMax));
  if (priority) submission.priority = static_cast<int>(*priority);
  STINT_CHECK(read_times_of(object, submission));
  STINT_TRY(request.wait, flag_field(object, "wait"));
  STINT_TRY(submission.parent_waits, flag_field(object, "parent_waits"));
  if (submission.agent.empty() == submission.prompt.empty()) {
    return fail(Errc::invalid, submission.agent.empty() ? "'agent' is missing: name one, or send a 'prompt'"
                                                        : "'prompt' and 'agent' can't be combined: send one of them");
  }
  return request;
}

Result<> read_nothing(std::string_view body) {
  if (body.empty()) return {};
  STINT_TRY(const json::object object, parse_strictly(body));
  return only(object, {});
}

Result<domain::Resolution> read_resolve(std::string_view body) {
  STINT_TRY(const json::object object, parse_strictly(body));
  STINT_CHECK(only(object, {"as"}));
  const auto how = domain::parse_resolution(text_at(object, "as"));
  if (!how) return fail(Errc::invalid, "'as' must be one of done, rerun and discard");
  return *how;
}

Result<engine::ScaleRequest> read_scale(std::string_view body) {
  STINT_TRY(const json::object object, parse_strictly(body));
  STINT_CHECK(only(object, {"workers", "min", "max"}));
  engine::ScaleRequest scale;
  constexpr std::int64_t kMost = 10'000;
  STINT_TRY(scale.workers, number_field(object, "workers", 0, kMost));
  STINT_TRY(scale.min, number_field(object, "min", 0, kMost));
  STINT_TRY(scale.max, number_field(object, "max", 1, kMost));
  if (!scale.workers && !scale.min && !scale.max) {
    return fail(Errc::invalid, "nothing to change: send workers, min or max");
  }
  return scale;
}

Result<std::uint32_t> read_capacity(std::string_view body) {
  STINT_TRY(const json::object object, parse_strictly(body));
  STINT_CHECK(only(object, {"capacity"}));
  STINT_TRY(const auto capacity, number_field(object, "capacity", 1, domain::kPermitsMax));
  if (!capacity) return fail(Errc::invalid, "'capacity' is missing");
  return static_cast<std::uint32_t>(*capacity);
}

Result<engine::DrainRequest> read_drain(std::string_view body) {
  engine::DrainRequest drain;
  if (body.empty()) return drain;
  STINT_TRY(const json::object object, parse_strictly(body));
  STINT_CHECK(only(object, {"timeout_ms", "hurry"}));
  STINT_TRY(const auto ms, number_field(object, "timeout_ms", 0, kMsMax));
  if (ms) drain.timeout = std::chrono::milliseconds(*ms);
  STINT_TRY(drain.hurry, flag_field(object, "hurry"));
  return drain;
}

Result<std::optional<Duration>> read_length(std::string_view body, std::string_view name) {
  if (body.empty()) return std::nullopt;
  STINT_TRY(const json::object object, parse_strictly(body));
  STINT_CHECK(only(object, {name}));
  STINT_TRY(const auto ms, number_field(object, name, 0, kMsMax));
  if (!ms) return std::nullopt;
  return std::chrono::milliseconds(*ms);
}

}  // namespace stint::wire
