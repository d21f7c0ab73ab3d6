#include "wire/playground.hpp"

#include "agent/text.hpp"
#include "playground/sandboxes.hpp"
#include "wire/request_fields.hpp"
#include "wire/strict_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace stint::wire {
namespace {

using namespace playground;

constexpr std::int64_t kSeedMax = (std::int64_t{1} << 53) - 1;  // exact in every JSON reader
constexpr std::int64_t kVirtualMsMax = std::chrono::duration_cast<std::chrono::milliseconds>(kTimeMax).count();

/// Which members an action has besides `do`, by its verb. A member in `needed` must be there.
struct ActionMembers {
  Verb verb;
  std::vector<std::string_view> needed, optional{};
};

const std::vector<ActionMembers>& members() {
  static const std::vector<ActionMembers> table = {
      {Verb::acquire, {"task", "resource"}, {"weight", "priority", "timeout_ms"}},
      {Verb::release, {"task", "resource"}, {"of"}},
      {Verb::return_units, {"task", "resource", "units"}},
      {Verb::discard, {"task", "resource"}},
      {Verb::work, {"task", "ms"}},
      {Verb::stream, {"task", "units", "ms"}, {"timeout_ms", "owned"}},
      {Verb::cancel, {"task"}},
      {Verb::resize, {"resource", "capacity"}},
      {Verb::close, {"resource"}},
      {Verb::bypass, {"resource", "bypass_max"}},
      {Verb::advance, {"ms"}},
  };
  return table;
}

template <class Enum, std::size_t N>
Result<Enum> word_field(const json::object& object, std::string_view name, const Enum (&values)[N]) {
  STINT_TRY(const std::string text, text_field(object, name));
  const auto found = std::ranges::find(values, text, [](Enum value) { return to_string(value); });
  if (found != std::end(values)) return *found;
  std::string known;
  for (const Enum value : values) known += (known.empty() ? "" : ", ") + std::string(to_string(value));
  return fail(Errc::invalid, fmt::format("'{}' must be one of {}", name, known));
}

/// Refuses what no action has before anything else: a misspelt member is the likeliest reason that another is missing.
Result<> only_members(const json::object& object, bool with_step) {
  std::vector<std::string_view> names = {"do"};
  for (const ActionMembers& each : members()) {
    for (const auto* const list : {&each.needed, &each.optional}) {
      for (const std::string_view name : *list) {
        if (std::ranges::find(names, name) == names.end()) names.push_back(name);
      }
    }
  }
  if (with_step) names.emplace_back("at_step");
  return only(object, names);
}

Result<Action> read_action(const json::object& object, bool with_step) {
  STINT_CHECK(only_members(object, with_step));
  STINT_TRY(const Verb verb, word_field(object, "do", kVerbs));
  const ActionMembers& wanted = *std::ranges::find(members(), verb, &ActionMembers::verb);
  std::vector<std::string_view> names = {"do"};
  std::ranges::copy(wanted.needed, std::back_inserter(names));
  std::ranges::copy(wanted.optional, std::back_inserter(names));
  if (with_step) names.emplace_back("at_step");
  STINT_CHECK(only(object, names));
  for (const std::string_view name : wanted.needed) {
    if (!object.contains(name)) {
      return fail(Errc::invalid, fmt::format("'{}' is missing: '{}' needs it", name, to_string(verb)));
    }
  }
  Action action;
  action.verb = verb;
  STINT_TRY(action.task, text_field(object, "task"));
  STINT_TRY(action.resource, text_field(object, "resource"));
  STINT_TRY(action.of, text_field(object, "of"));
  if (object.contains("of") && action.of.empty()) return fail(Errc::invalid, "'of' must name a task");
  STINT_TRY(const auto weight, number_field(object, "weight", 1, kUnitsMax));
  STINT_TRY(const auto units, number_field(object, "units", 1, kUnitsMax));
  action.units = static_cast<std::uint32_t>(weight.value_or(units.value_or(1)));
  STINT_TRY(const auto priority, number_field(object, "priority", Semaphore::kPriorityMin, Semaphore::kPriorityMax));
  action.priority = static_cast<int>(priority.value_or(0));
  STINT_TRY(const auto capacity, number_field(object, "capacity", 0, kUnitsMax));
  STINT_TRY(const auto bypass, number_field(object, "bypass_max", 0, kUnitsMax));
  action.capacity = static_cast<std::uint32_t>(capacity.value_or(bypass.value_or(0)));
  STINT_TRY(const auto ms, number_field(object, "ms", 0, kVirtualMsMax));
  action.time = std::chrono::milliseconds(ms.value_or(0));
  STINT_TRY(const auto timeout, number_field(object, "timeout_ms", 0, kVirtualMsMax));
  if (timeout) action.timeout = std::chrono::milliseconds(*timeout);
  STINT_TRY(action.owned, flag_field(object, "owned"));
  STINT_TRY(const auto at, number_field(object, "at_step", 0, kStepsMax));
  if (at) action.at = static_cast<std::uint32_t>(*at);
  return action;
}

json::object action_value(const Action& action) {
  json::object out{{"do", to_string(action.verb)}};
  const ActionMembers& wanted = *std::ranges::find(members(), action.verb, &ActionMembers::verb);
  const auto add = [&](std::string_view name) {
    if (name == "task") out[name] = text_value(action.task);
    if (name == "resource") out[name] = text_value(action.resource);
    if (name == "of" && !action.of.empty()) out[name] = text_value(action.of);
    if (name == "weight" || name == "units") out[name] = action.units;
    if (name == "priority") out[name] = action.priority;
    if (name == "capacity" || name == "bypass_max") out[name] = action.capacity;
    if (name == "ms") out[name] = to_ms(action.time);
    if (name == "timeout_ms" && action.timeout) out[name] = to_ms(*action.timeout);
    if (name == "owned") out[name] = action.owned;
  };
  std::ranges::for_each(wanted.needed, add);
  std::ranges::for_each(wanted.optional, add);
  if (action.at) out["at_step"] = *action.at;
  return out;
}

bool has_capacity(Kind kind) { return kind == Kind::semaphore || kind == Kind::pool; }

Result<ResourceSpec> read_resource(const json::value& value) {
  const json::object* const object = value.if_object();
  if (object == nullptr) return fail(Errc::invalid, "it must be an object");
  STINT_CHECK(only(*object, {"name", "kind", "capacity", "bypass_max"}));
  ResourceSpec resource;
  STINT_TRY(resource.name, text_field(*object, "name"));
  STINT_TRY(resource.kind, word_field(*object, "kind", kKinds));
  STINT_TRY(const auto capacity, number_field(*object, "capacity", 0, kUnitsMax));
  STINT_TRY(const auto bypass, number_field(*object, "bypass_max", 0, kUnitsMax));
  if (has_capacity(resource.kind) != capacity.has_value()) {
    return fail(Errc::invalid,
                fmt::format("a {} {} a 'capacity'", to_string(resource.kind), capacity ? "does not have" : "needs"));
  }
  if (bypass && resource.kind != Kind::semaphore) {
    return fail(Errc::invalid, fmt::format("a {} does not have a 'bypass_max'", to_string(resource.kind)));
  }
  resource.capacity = static_cast<std::uint32_t>(capacity.value_or(1));
  resource.bypass_max = static_cast<std::uint32_t>(bypass.value_or(0));
  return resource;
}

/// A list of at most `most` values. Absent: nothing. An error names the entry.
template <class Read>
auto read_list(const json::object& object, std::string_view name, std::size_t most, Read read)
    -> Result<std::optional<std::vector<typename std::invoke_result_t<Read, const json::value&>::value_type>>> {
  STINT_TRY(const json::value* const value, field(object, name));
  if (value == nullptr) return std::nullopt;
  const json::array* const array = value->if_array();
  if (array == nullptr || array->size() > most) {
    return fail(Errc::invalid, fmt::format("'{}' must be a list of at most {} entries", name, most));
  }
  std::vector<typename std::invoke_result_t<Read, const json::value&>::value_type> entries;
  for (const json::value& each : *array) {
    auto entry = read(each);
    if (!entry) {
      return fail(Errc::invalid, fmt::format("entry {} of '{}': {}", entries.size() + 1, name, entry.error().what()));
    }
    entries.push_back(*std::move(entry));
  }
  return entries;
}

Result<Action> read_listed_action(const json::value& value) {
  const json::object* const object = value.if_object();
  if (object == nullptr) return fail(Errc::invalid, "it must be an object");
  return read_action(*object, true);
}

Result<> read_preset(const json::object& object, Sandbox& sandbox) {
  STINT_TRY(const std::string name, text_field(object, "preset"));
  if (!object.contains("preset")) return {};
  const Preset* const preset = find_preset(name);
  if (preset == nullptr) {
    return fail(Errc::invalid, fmt::format("there is no preset '{}'; /v1/playground lists them", agent::excerpt(name)));
  }
  if (object.contains("resources")) {
    return fail(Errc::invalid, "'preset' and 'resources' can't be combined: send one of them");
  }
  sandbox = open(*preset);
  return {};
}

json::array places_value(const std::vector<PlaceView>& places, bool is_line) {
  json::array out;
  for (const PlaceView& place : places) {
    json::object entry{{"task", text_value(place.task)}, {"units", place.units}};
    if (place.priority) entry["priority"] = *place.priority;
    if (is_line) entry["place"] = out.size() + 1;
    if (place.since) entry["since_ms"] = to_ms(*place.since);
    out.push_back(std::move(entry));
  }
  return out;
}

json::object resource_value(const ResourceView& resource) {
  json::object out{{"name", text_value(resource.name)}, {"kind", to_string(resource.kind)}};
  if (resource.kind != Kind::server) {
    out["capacity"] = resource.capacity;
    out["available"] = std::max<std::int64_t>(0, resource.available);
    out["debt"] = std::max<std::int64_t>(0, -resource.available);
    out["closed"] = resource.closed;
  }
  if (resource.kind == Kind::semaphore) out["bypass_max"] = resource.bypass_max;
  out["holders"] = places_value(resource.holders, false);
  out["line"] = places_value(resource.line, true);
  if (resource.kind == Kind::pool || resource.kind == Kind::server) {
    out["made"] = resource.made;
    out["reused"] = resource.reused;
    out["discarded"] = resource.discarded;
  }
  return out;
}

json::array tasks_value(const std::vector<TaskView>& tasks) {
  json::array out;
  for (const TaskView& task : tasks) {
    json::object entry{{"name", text_value(task.name)}, {"state", to_string(task.state)}, {"queued", task.queued}};
    if (!task.error.empty()) entry["error"] = text_value(task.error);
    out.push_back(std::move(entry));
  }
  return out;
}

/// `preset`: null if the sandbox is not of one.
json::array events_value(const View& view, const Preset* preset) {
  json::array out;
  for (const Event& event : view.events) {
    json::object entry{{"n", view.events_left_out + out.size() + 1},
                       {"step", event.step},
                       {"at_ms", to_ms(event.at)},
                       {"kind", to_string(event.kind)}};
    if (!event.task.empty()) entry["task"] = text_value(event.task);
    if (!event.resource.empty()) entry["resource"] = text_value(event.resource);
    if (event.units != 0 || event.kind == EventKind::resized) entry["units"] = event.units;
    if (!event.detail.empty()) entry["detail"] = text_value(event.detail);
    if (const auto line = preset == nullptr ? std::nullopt : preset->code.line_of(event)) entry["line"] = *line;
    out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace

std::string presets_to_json(const std::vector<Preset>& presets) {
  json::array list;
  for (const Preset& preset : presets) {
    json::array sentences, choices;
    for (const std::string_view each : preset.sentences) sentences.push_back(text_value(each));
    for (const std::string_view each : preset.choices) choices.push_back(text_value(each));
    list.push_back({{"name", text_value(preset.name)},
                    {"title", text_value(preset.title)},
                    {"sentences", std::move(sentences)},
                    {"question", text_value(preset.question)},
                    {"choices", std::move(choices)},
                    {"answer", preset.answer},
                    {"why", text_value(preset.why)},
                    {"code", text_value(preset.code.text)}});
  }
  const json::object bounds{{"resources_max", kResourcesMax},
                            {"tasks_max", kTasksMax},
                            {"actions_max", kActionsMax},
                            {"steps_max", kStepsMax},
                            {"units_max", kUnitsMax},
                            {"sandboxes_max", kSandboxesMax},
                            {"idle_ms_max", to_ms(kSandboxIdleMax)}};
  return json::serialize(json::object{{"presets", std::move(list)}, {"bounds", bounds}});
}

std::string to_json(std::string_view id, const Played& played) {
  const Sandbox& sandbox = played.sandbox;
  const View& view = played.view;
  json::object out{{"id", text_value(id)}};
  if (!sandbox.preset.empty()) out["preset"] = text_value(sandbox.preset);
  out["seed"] = sandbox.setup.seed;
  out["order"] = to_string(sandbox.setup.order);
  out["step"] = sandbox.step;
  out["steps_max"] = kStepsMax;
  json::array actions, resources;
  for (const Action& action : sandbox.actions) actions.push_back(action_value(action));
  for (const ResourceView& resource : view.resources) resources.push_back(resource_value(resource));
  out["actions"] = std::move(actions);
  out["actions_done"] = view.actions_done;
  out["now_ms"] = to_ms(view.now);
  out["done"] = view.done;
  out["resources"] = std::move(resources);
  out["tasks"] = tasks_value(view.tasks);
  out["meters"] = json::array{{{"name", "tokens"}, {"value", view.tokens}},
                              {{"name", "tokens_leaked"}, {"value", view.tokens_leaked}}};
  out["events"] = events_value(view, find_preset(sandbox.preset));
  out["events_left_out"] = view.events_left_out;
  return json::serialize(out);
}

Result<Sandbox> read_sandbox(std::string_view body) {
  STINT_TRY(const json::object object, parse_strictly(body));
  STINT_CHECK(only(object, {"preset", "seed", "order", "resources", "actions", "step"}));
  Sandbox sandbox;
  STINT_CHECK(read_preset(object, sandbox));
  STINT_TRY(const auto seed, number_field(object, "seed", 0, kSeedMax));
  sandbox.setup.seed = static_cast<std::uint64_t>(seed.value_or(0));
  if (object.contains("order")) {
    STINT_TRY(sandbox.setup.order, word_field(object, "order", {Order::fifo, Order::seeded}));
  }
  STINT_TRY(auto resources, read_list(object, "resources", kResourcesMax, read_resource));
  if (resources) sandbox.setup.resources = *std::move(resources);
  STINT_TRY(auto actions, read_list(object, "actions", kActionsMax, read_listed_action));
  if (actions) sandbox.actions = *std::move(actions);
  STINT_TRY(const auto step, number_field(object, "step", 0, kStepsMax));
  sandbox.step = static_cast<std::uint32_t>(step.value_or(0));
  return sandbox;
}

Result<Action> read_action(std::string_view body) {
  STINT_TRY(const json::object object, parse_strictly(body));
  return read_action(object, false);
}

Result<Steps> read_steps(std::string_view body) {
  if (body.empty()) return Steps{};
  STINT_TRY(const json::object object, parse_strictly(body));
  STINT_CHECK(only(object, {"steps", "by"}));
  STINT_TRY(const auto count, number_field(object, "steps", 1, kStepsMax));
  Steps steps{.count = static_cast<std::uint32_t>(count.value_or(1))};
  if (!object.contains("by")) return steps;
  STINT_TRY(const std::string by, text_field(object, "by"));
  if (by != "step" && by != "event") return fail(Errc::invalid, "'by' must be one of step, event");
  steps.by_event = by == "event";
  return steps;
}

}  // namespace stint::wire
