#include "wire/run_codec.hpp"

#include "wire/values.hpp"

#include <algorithm>

namespace stint::wire {
namespace {

/// Of a stored length: an imported file may hold any number.
Duration stored_length(const json::object& object, std::string_view name) {
  constexpr std::chrono::milliseconds kMost = std::chrono::years(10);
  return std::clamp(std::chrono::milliseconds(number_at(object, name)), std::chrono::milliseconds::zero(), kMost);
}

struct InputText {
  std::string_view name;
  std::string domain::RunInput::* value;
};
constexpr InputText kInputTexts[] = {
    {"prompt", &domain::RunInput::prompt},     {"driver", &domain::RunInput::driver},
    {"model", &domain::RunInput::model},       {"program", &domain::RunInput::program},
    {"title", &domain::RunInput::title},       {"directory", &domain::RunInput::directory},
    {"retry_of", &domain::RunInput::retry_of}, {"trace", &domain::RunInput::trace},
    {"asked", &domain::RunInput::asked},
};
constexpr std::size_t kInputMembersMax = std::size(kInputTexts) + 4;  // args, budget, priority, budgets_above
constexpr std::size_t kMemoMembersMax = 11;

void add_text(json::object& object, std::string_view name, std::string_view text) {
  if (!text.empty()) object.emplace(name, text_value(text, object.storage()));
}

Result<std::vector<domain::RunInput::BudgetAbove>> read_budgets_above(const json::array& array) {
  std::vector<domain::RunInput::BudgetAbove> above;
  for (const json::value& each : array) {
    const json::object* const object = each.if_object();
    const json::value* const budget = object == nullptr ? nullptr : object->if_contains("budget");
    if (budget == nullptr) return fail(Errc::invalid, "the budget of an ancestor can't be read");
    STINT_TRY(const domain::BudgetSpec spec, read_budget(*budget));
    above.push_back({text_at(*object, "run"), spec});
  }
  return above;
}

}  // namespace

std::string RunCodec::write(const domain::RunInput& input) const {
  Scratch scratch;
  json::object object(kInputMembersMax, scratch.memory());
  object.emplace("args", args_value(input.args, scratch.memory()));
  for (const InputText& text : kInputTexts) add_text(object, text.name, input.*text.value);
  if (input.budget != domain::BudgetSpec()) object["budget"] = budget_value(input.budget);
  if (input.priority) object["priority"] = *input.priority;
  if (!input.budgets_above.empty()) {
    json::array above;
    for (const auto& each : input.budgets_above) {
      above.push_back(json::object{{"run", text_value(each.run)}, {"budget", budget_value(each.budget)}});
    }
    object["budgets_above"] = std::move(above);
  }
  return json::serialize(object);
}

Result<domain::RunInput> RunCodec::read_input(std::string_view text) const {
  Scratch scratch;
  STINT_TRY(const json::object object, parse_object(text, scratch.memory()));
  Result<domain::RunInput> input;
  for (const auto& member : object) {
    const std::string_view name = member.key();
    const json::value& value = member.value();
    if (name == "args") {
      STINT_TRY(input->args, read_args(value));
    } else if (name == "budget") {
      STINT_TRY(input->budget, read_budget(value));
    } else if (name == "priority" && value.is_int64()) {
      input->priority = static_cast<int>(value.get_int64());
    } else if (name == "budgets_above" && value.is_array()) {
      STINT_TRY(input->budgets_above, read_budgets_above(value.get_array()));
    } else if (value.is_string()) {
      const auto* const known = std::ranges::find(kInputTexts, name, &InputText::name);
      if (known != std::end(kInputTexts)) (*input).*known->value = std::string_view(value.get_string());
    }
  }
  return input;
}

std::string RunCodec::write(const domain::RunMemo& memo) const {
  Scratch scratch;
  json::object object(kMemoMembersMax, scratch.memory());
  object.emplace("outcome", to_string(memo.last));
  if (memo.usage != Usage()) object["usage"] = usage_value(memo.usage);
  if (memo.processes_ended != 0) object["processes_ended"] = memo.processes_ended;
  if (memo.streams_closed != 0) object["streams_closed"] = memo.streams_closed;
  if (memo.ending != Duration::zero()) object["ending_ms"] = to_ms(memo.ending);
  if (!memo.permits_returned.empty()) object["permits_returned"] = texts_value(memo.permits_returned);
  if (!memo.permits_held.empty()) object["permits_held"] = texts_value(memo.permits_held);
  add_text(object, "text", memo.text);
  add_text(object, "conversation", memo.conversation);
  if (memo.resumes) object["resumes"] = true;
  if (!memo.denials.empty()) object["denials"] = denials_value(memo.denials);
  return json::serialize(object);
}

Result<domain::RunMemo> RunCodec::read_memo(std::string_view text) const {
  Scratch scratch;
  STINT_TRY(const json::object object, parse_object(text, scratch.memory()));
  domain::RunMemo memo;
  memo.text = text_at(object, "text");
  memo.conversation = text_at(object, "conversation");
  memo.resumes = flag_at(object, "resumes");
  memo.last = parse_outcome_kind(text_at(object, "outcome")).value_or(OutcomeKind::crashed);
  if (const json::value* const usage = object.if_contains("usage")) memo.usage = read_usage(*usage);
  if (const json::value* const denials = object.if_contains("denials")) memo.denials = read_denials(*denials);
  memo.processes_ended = static_cast<std::uint32_t>(number_at(object, "processes_ended"));
  memo.streams_closed = static_cast<std::uint32_t>(number_at(object, "streams_closed"));
  memo.ending = std::chrono::milliseconds(number_at(object, "ending_ms"));
  memo.permits_returned = texts_at(object, "permits_returned");
  memo.permits_held = texts_at(object, "permits_held");
  return memo;
}

std::string RunCodec::write_note(std::string_view text) const {
  return json::serialize(json::object{{"text", text_value(text)}});
}

std::string RunCodec::write_note_at(std::string_view text, std::uint64_t output_at) const {
  return json::serialize(json::object{{"text", text_value(text)}, {"output_at", output_at}});
}

std::optional<std::uint64_t> RunCodec::read_output_at(std::string_view data) const {
  const auto object = parse_object(data);
  const auto at = object ? maybe_number_at(*object, "output_at") : std::nullopt;
  return at && *at >= 0 ? std::optional(static_cast<std::uint64_t>(*at)) : std::nullopt;
}

std::string RunCodec::write_span(const domain::Span& span) const {
  json::object object{{"kind", to_string(span.kind)}, {"name", text_value(span.name)}, {"ms", to_ms(span.length)}};
  if (span.usage != Usage()) object["usage"] = usage_value(span.usage);
  add_text(object, "text", span.text);
  if (span.output_at) object["output_at"] = *span.output_at;
  return json::serialize(object);
}

std::optional<domain::Span> RunCodec::read_span(std::string_view data) const {
  const auto object = parse_object(data);
  const auto kind = object ? domain::parse_span_kind(text_at(*object, "kind")) : std::nullopt;
  if (!kind) return std::nullopt;
  domain::Span span{
      .kind = *kind, .name = text_at(*object, "name"), .length = stored_length(*object, "ms"), .usage = {}};
  if (const json::value* const usage = object->if_contains("usage")) span.usage = read_usage(*usage);
  span.text = text_at(*object, "text");
  span.output_at = read_output_at(data);
  return span;
}

std::string RunCodec::write_waits(const std::vector<domain::LimitWait>& waits) const {
  json::array list;
  for (const domain::LimitWait& each : waits) {
    list.push_back(
        json::object{{"limit", text_value(each.limit)}, {"ago_ms", to_ms(each.ago)}, {"ms", to_ms(each.length)}});
  }
  return json::serialize(json::object{{"waits", std::move(list)}});
}

std::vector<domain::LimitWait> RunCodec::read_waits(std::string_view data) const {
  std::vector<domain::LimitWait> waits;
  const auto object = parse_object(data);
  const json::value* const list = object ? object->if_contains("waits") : nullptr;
  if (list == nullptr || !list->is_array()) return waits;
  for (const json::value& each : list->get_array()) {
    if (!each.is_object()) continue;
    const json::object& wait = each.get_object();
    waits.push_back(
        {.limit = text_at(wait, "limit"), .ago = stored_length(wait, "ago_ms"), .length = stored_length(wait, "ms")});
  }
  return waits;
}

std::string RunCodec::write_verdict(const domain::VerdictRecord& verdict) const {
  json::object object{
      {"rule", to_string(verdict.rule)}, {"attempt", verdict.attempt}, {"attempts_max", verdict.attempts_max}};
  if (verdict.after) object["after_ms"] = to_ms(*verdict.after);
  if (!verdict.limit.empty()) object["limit"] = text_value(verdict.limit);
  if (verdict.resumes) object["resumes"] = true;
  return json::serialize(json::object{{"verdict", std::move(object)}});
}

std::optional<domain::VerdictRecord> RunCodec::read_verdict(std::string_view data) const {
  const auto outer = parse_object(data);
  const json::value* const value = outer ? outer->if_contains("verdict") : nullptr;
  const json::object* const object = value == nullptr ? nullptr : value->if_object();
  const auto rule = object == nullptr ? std::nullopt : domain::parse_verdict_rule(text_at(*object, "rule"));
  if (!rule) return std::nullopt;
  domain::VerdictRecord verdict;
  verdict.rule = *rule;
  verdict.attempt = static_cast<std::uint32_t>(number_at(*object, "attempt"));
  verdict.attempts_max = static_cast<std::uint32_t>(number_at(*object, "attempts_max"));
  if (object->contains("after_ms")) verdict.after = stored_length(*object, "after_ms");
  verdict.limit = text_at(*object, "limit");
  verdict.resumes = flag_at(*object, "resumes");
  return verdict;
}

std::string RunCodec::read_note(std::string_view data) const {
  const auto object = parse_object(data);
  return object ? text_at(*object, "text") : std::string();
}

}  // namespace stint::wire
