#include "wire/scribe.hpp"

#include "wire/values.hpp"

namespace stint::wire {
namespace {

void put(json::object& object, std::string_view name, std::string_view text) {
  if (!text.empty()) object[name] = text_value(text);
}

Result<std::vector<domain::RunInput::BudgetAbove>> read_budgets_above(const json::array& array) {
  std::vector<domain::RunInput::BudgetAbove> above;
  for (const json::value& each : array) {
    const json::object* const object = each.if_object();
    const json::value* const budget = object == nullptr ? nullptr : object->if_contains("budget");
    if (budget == nullptr) return fail(Errc::invalid, "a budget above it can't be read");
    STINT_TRY(const domain::BudgetSpec spec, read_budget(*budget));
    above.push_back({text_at(*object, "run"), spec});
  }
  return above;
}

}  // namespace

std::string Scribe::write(const domain::RunInput& input) const {
  json::object object{{"args", args_value(input.args)}};
  put(object, "prompt", input.prompt);
  put(object, "driver", input.driver);
  put(object, "model", input.model);
  put(object, "program", input.program);
  put(object, "title", input.title);
  put(object, "directory", input.directory);
  put(object, "retry_of", input.retry_of);
  put(object, "trace", input.trace);
  json::object budget = budget_value(input.budget);
  if (!budget.empty()) object["budget"] = std::move(budget);
  if (!input.budgets_above.empty()) {
    json::array& above = object["budgets_above"].emplace_array();
    for (const auto& each : input.budgets_above) {
      above.push_back(json::object{{"run", text_value(each.run)}, {"budget", budget_value(each.budget)}});
    }
  }
  return json::serialize(object);
}

Result<domain::RunInput> Scribe::read_input(std::string_view text) const {
  STINT_TRY(const json::object object, parse_object(text));
  domain::RunInput input;
  if (const json::value* const args = object.if_contains("args")) {
    STINT_TRY(input.args, read_args(*args));
  }
  if (const json::value* const budget = object.if_contains("budget")) {
    STINT_TRY(input.budget, read_budget(*budget));
  }
  if (const json::value* const above = object.if_contains("budgets_above"); above != nullptr && above->is_array()) {
    STINT_TRY(input.budgets_above, read_budgets_above(above->get_array()));
  }
  input.prompt = text_at(object, "prompt");
  input.driver = text_at(object, "driver");
  input.model = text_at(object, "model");
  input.program = text_at(object, "program");
  input.title = text_at(object, "title");
  input.directory = text_at(object, "directory");
  input.retry_of = text_at(object, "retry_of");
  input.trace = text_at(object, "trace");
  return input;
}

std::string Scribe::write(const domain::RunMemo& memo) const {
  json::object object{{"outcome", to_string(memo.last)}};
  if (memo.usage != Usage()) object["usage"] = usage_value(memo.usage);
  if (memo.processes_ended != 0) object["processes_ended"] = memo.processes_ended;
  if (memo.streams_closed != 0) object["streams_closed"] = memo.streams_closed;
  if (memo.ending != Duration::zero()) object["ending_ms"] = to_ms(memo.ending);
  put(object, "text", memo.text);
  put(object, "conversation", memo.conversation);
  if (memo.resumes) object["resumes"] = true;
  if (!memo.denials.empty()) object["denials"] = denials_value(memo.denials);
  return json::serialize(object);
}

Result<domain::RunMemo> Scribe::read_memo(std::string_view text) const {
  STINT_TRY(const json::object object, parse_object(text));
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
  return memo;
}

std::string Scribe::write_note(std::string_view text) const {
  return json::serialize(json::object{{"text", text_value(text)}});
}

std::string Scribe::read_note(std::string_view data) const {
  const auto object = parse_object(data);
  return object ? text_at(*object, "text") : std::string();
}

}  // namespace stint::wire
