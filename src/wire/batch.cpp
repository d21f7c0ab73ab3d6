#include "wire/batch.hpp"

#include "store/search_text.hpp"
#include "wire/request_fields.hpp"
#include "wire/strict_json.hpp"
#include "wire/time_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stint::wire {
namespace {

constexpr std::int64_t kExpectMax = 1'000'000'000;

/// A list of words, each of which `parse` must know.
template <class Value, class Parse>
Result<std::vector<Value>> words_field(const json::object& object, std::string_view name, Parse parse) {
  std::vector<Value> values;
  STINT_TRY(const json::value* const found, field(object, name));
  if (found == nullptr) return values;
  const json::array* const list = found->if_array();
  if (list == nullptr || list->empty()) {
    return fail(Errc::invalid, fmt::format("'{}' must be a list with at least one word", name));
  }
  for (const json::value& each : *list) {
    const auto value = each.is_string() ? parse(std::string_view(each.get_string())) : std::nullopt;
    if (!value) return fail(Errc::invalid, fmt::format("'{}' has a word that is not one of its values", name));
    values.push_back(*value);
  }
  return values;
}

/// Empty: absent. An empty text is refused: it would ask for nothing.
Result<std::string> some_text_field(const json::object& object, std::string_view name) {
  STINT_TRY(std::string text, text_field(object, name));
  if (text.empty() && object.contains(name))
    return fail(Errc::invalid, fmt::format("'{}' is empty: leave it out", name));
  return text;
}

Result<store::Filter> read_filter(const json::object& object) {
  STINT_CHECK(only(object, {"state", "hold", "agent", "session", "parent", "q", "since", "until"}));
  store::Filter filter;
  STINT_TRY(filter.states, words_field<domain::RunState>(object, "state", domain::parse_run_state));
  STINT_TRY(filter.holds, words_field<domain::Hold>(object, "hold", domain::parse_hold));
  STINT_TRY(filter.agent, some_text_field(object, "agent"));
  STINT_TRY(filter.session, some_text_field(object, "session"));
  STINT_TRY(filter.parent, some_text_field(object, "parent"));
  STINT_TRY(const std::string search, some_text_field(object, "q"));
  if (!search.empty()) {
    STINT_TRY(filter.search, read_search(search));
  }
  STINT_TRY(const std::string since, some_text_field(object, "since"));
  STINT_TRY(filter.since, read_filter_time("since", since));
  STINT_TRY(const std::string until, some_text_field(object, "until"));
  STINT_TRY(filter.until, read_filter_time("until", until));
  return filter;
}

json::object filter_value(const store::Filter& filter) {
  json::object object;
  json::array states, holds;
  for (const domain::RunState state : filter.states) states.emplace_back(to_string(state));
  for (const domain::Hold hold : filter.holds) holds.emplace_back(to_string(hold));
  if (!states.empty()) object["state"] = std::move(states);
  if (!holds.empty()) object["hold"] = std::move(holds);
  if (!filter.agent.empty()) object["agent"] = text_value(filter.agent);
  if (!filter.session.empty()) object["session"] = text_value(filter.session);
  if (!filter.parent.empty()) object["parent"] = text_value(filter.parent);
  if (!filter.search.empty()) object["q"] = text_value(filter.search);
  if (filter.since) object["since"] = time_text(*filter.since);
  if (filter.until) object["until"] = time_text(*filter.until);
  return object;
}

json::object batch_value(const store::Batch& batch) {
  json::object object{{"id", text_value(batch.id)},
                      {"action", to_string(batch.action)},
                      {"state", to_string(batch.state)},
                      {"matched", batch.matched},
                      {"done", batch.done},
                      {"skipped", batch.skipped},
                      {"failed", batch.failed},
                      {"left", batch.matched - batch.acted()},
                      {"created_at", to_ms(batch.created_at)}};
  object["ended_at"] = batch.ended_at ? json::value(to_ms(*batch.ended_at)) : json::value(nullptr);
  object["node"] = batch.node ? json::value(batch.node->value) : json::value(nullptr);
  boost::system::error_code error;
  json::value filter = json::parse(batch.filter, error);
  object["filter"] = error ? json::value(json::object()) : std::move(filter);
  return object;
}

store::Batch read_batch_value(const json::object& object) {
  store::Batch batch;
  batch.id = text_at(object, "id");
  batch.action = store::parse_batch_action(text_at(object, "action")).value_or(store::BatchAction::cancel);
  batch.state = store::parse_batch_state(text_at(object, "state")).value_or(store::BatchState::running);
  const auto count = [&](std::string_view name) { return static_cast<std::uint64_t>(number_at(object, name)); };
  batch.matched = count("matched");
  batch.done = count("done");
  batch.skipped = count("skipped");
  batch.failed = count("failed");
  batch.created_at = time_at(object, "created_at").value_or(WallTime());
  batch.ended_at = time_at(object, "ended_at");
  if (const auto node = maybe_number_at(object, "node")) batch.node = domain::NodeNumber{*node};
  if (const json::value* const filter = object.if_contains("filter")) batch.filter = json::serialize(*filter);
  if (const json::value* const failures = object.if_contains("failures"); failures != nullptr && failures->is_array()) {
    for (const json::value& each : failures->get_array()) {
      if (!each.is_object()) continue;
      batch.failures.push_back({text_at(each.get_object(), "run"), text_at(each.get_object(), "error")});
    }
  }
  return batch;
}

}  // namespace

Result<std::optional<WallTime>> read_filter_time(std::string_view name, std::string_view text) {
  if (text.empty()) return std::nullopt;
  const std::optional<WallTime> time = parse_time(text);
  if (!time) return fail(Errc::invalid, fmt::format("'{}' must be a time such as 2026-11-16T03:00:00Z", name));
  return time;
}

Result<std::string> read_search(std::string_view text) {
  if (text.empty()) return fail(Errc::invalid, "'q' is empty: leave it out, or give it a text");
  const auto characters =
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
  if (characters > static_cast<std::ptrdiff_t>(store::kSearchMax)) {
    return fail(Errc::invalid,
                fmt::format("'q' has {} characters; at most {} are searched", characters, store::kSearchMax));
  }
  return store::fold_search(text);
}

Result<engine::BatchRequest> read_batch_request(std::string_view body) {
  STINT_TRY(const json::object object, parse_strictly(body));
  STINT_CHECK(only(object, {"action", "filter", "expect", "dry_run"}));
  engine::BatchRequest request;
  STINT_TRY(const std::string action, text_field(object, "action"));
  const auto known = store::parse_batch_action(action);
  if (!known) return fail(Errc::invalid, "'action' must be one of cancel and retry");
  request.action = *known;
  STINT_TRY(const json::value* const filter, field(object, "filter"));
  if (filter == nullptr || !filter->is_object()) return fail(Errc::invalid, "'filter' must be an object");
  STINT_TRY(request.filter, read_filter(filter->get_object()));
  STINT_TRY(const auto expect, number_field(object, "expect", 0, kExpectMax));
  if (expect) request.expect = static_cast<std::uint64_t>(*expect);
  STINT_TRY(request.dry_run, flag_field(object, "dry_run"));
  if (!request.expect && !request.dry_run) {
    return fail(Errc::invalid, "'expect' is missing: the number of runs that a request with 'dry_run' returned");
  }
  return request;
}

std::string to_json(const store::Filter& filter) { return json::serialize(filter_value(filter)); }

std::string to_json(const engine::BatchRequest& request) {
  json::object object{{"action", to_string(request.action)}, {"filter", filter_value(request.filter)}};
  if (request.expect) object["expect"] = *request.expect;
  if (request.dry_run) object["dry_run"] = true;
  return json::serialize(object);
}

std::string to_json(const store::Batch& batch) {
  json::object object = batch_value(batch);
  json::array failures;
  for (const store::BatchFailure& each : batch.failures) {
    failures.push_back(json::object{{"run", text_value(each.run)}, {"error", text_value(each.error)}});
  }
  object["failures"] = std::move(failures);
  return json::serialize(object);
}

std::string to_json(const std::vector<store::Batch>& batches, std::string_view next) {
  json::array list;
  for (const store::Batch& each : batches) list.push_back(batch_value(each));
  return json::serialize(json::object{{"batches", std::move(list)},
                                      {"next", next.empty() ? json::value(nullptr) : json::value(text_value(next))}});
}

std::string dry_run_to_json(store::BatchAction action, std::uint64_t matched) {
  return json::serialize(json::object{{"action", to_string(action)}, {"dry_run", true}, {"matched", matched}});
}

Result<store::Batch> read_batch(std::string_view text) {
  STINT_TRY(const json::object object, parse_object(text));
  return read_batch_value(object);
}

Result<std::vector<store::Batch>> read_batches(std::string_view text) {
  STINT_TRY(const json::object object, parse_object(text));
  std::vector<store::Batch> batches;
  const json::value* const list = object.if_contains("batches");
  if (list == nullptr || !list->is_array()) return fail(Errc::failed, "the answer has no 'batches'");
  for (const json::value& each : list->get_array()) {
    if (each.is_object()) batches.push_back(read_batch_value(each.get_object()));
  }
  return batches;
}

Result<engine::BatchAnswer> read_batch_answer(std::string_view text) {
  STINT_TRY(const json::object object, parse_object(text));
  engine::BatchAnswer answer;
  answer.matched = static_cast<std::uint64_t>(number_at(object, "matched"));
  if (flag_at(object, "dry_run")) return answer;
  answer.batch = read_batch_value(object);
  answer.created = true;
  return answer;
}

}  // namespace stint::wire
