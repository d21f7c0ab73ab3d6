#include "wire/store_file.hpp"

#include "domain/system.hpp"
#include "store/column_codec.hpp"
#include "wire/json.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <charconv>
#include <limits>

namespace stint::wire {
namespace {

namespace json = boost::json;
using store::AgentEntry;
using store::Event;
using store::LimitState;
using store::Moved;
using store::Output;
using store::Run;
using store::RunRecord;

constexpr std::int64_t kVersion = 1;

/// JSON allows NUL characters, PostgreSQL does not.
std::string clean(std::string_view text) {
  std::string out;
  for (std::size_t at = text.find('\0'); at != std::string_view::npos; at = text.find('\0')) {
    out += valid_utf8(text.substr(0, at)) + "\xEF\xBF\xBD";
    text.remove_prefix(at + 1);
  }
  return out + valid_utf8(text);
}

// ---- writing: empty values are left out
// ------------------------------------------------------------------------------

void put(json::object& object, std::string_view name, std::string_view text) {
  if (!text.empty()) object[name] = clean(text);
}
void put(json::object& object, std::string_view name, std::optional<WallTime> time) {
  if (time) object[name] = domain::to_unix_ms(*time);
}
void put(json::object& object, std::string_view name, std::optional<Duration> duration) {
  if (duration) object[name] = store::to_ms(*duration);
}
void put(json::object& object, std::string_view name, std::int64_t number) {
  if (number != 0) object[name] = number;
}

/// As text if it is UTF-8; else in hexadecimal digits, so that no byte is lost.
void put_bytes(json::object& object, const std::string& name, std::string_view bytes) {
  if (bytes.empty()) return;
  if (clean(bytes) == bytes) {
    object[name] = bytes;
    return;
  }
  object[name + "_hex"] = store::to_hex(bytes);
}

json::object event_to_json(const Event& event) {
  json::object object{{"cause", clean(event.cause)}, {"at_ms", domain::to_unix_ms(event.at)}};
  put(object, "fence", event.fence.value);
  if (event.node) object["node"] = event.node->value;
  if (event.state) object["state"] = to_string(*event.state);
  if (event.hold != domain::Hold::none) object["hold"] = to_string(event.hold);
  put(object, "error", event.error);
  put(object, "data", event.data);
  return object;
}

json::object moved_to_object(const Moved& counts) {
  return {{"agents", counts.agents}, {"limits", counts.limits}, {"runs", counts.runs}, {"events", counts.events}};
}

json::array limits_to_array(const std::vector<LimitState>& limits) {
  json::array out;
  for (const LimitState& limit : limits) {
    json::object object{
        {"name", clean(limit.name)}, {"capacity", nullptr}, {"units", limit.units}, {"runs", limit.runs}};
    if (limit.capacity) object["capacity"] = *limit.capacity;
    object["paused"] = limit.paused;
    put(object, "paused_until_ms", limit.paused_until);
    out.push_back(std::move(object));
  }
  return out;
}

// ---- reading
// ---------------------------------------------------------------------------------------------------------

/// Reads the members of an object, and remembers the first that is invalid.
class MemberReader {
 public:
  explicit MemberReader(const json::object& object) : object_(object) {}

  std::string text(std::string_view name) {
    const json::value* const found = find(name);
    if (found == nullptr) return {};
    if (const json::string* const string = found->if_string()) return std::string(*string);
    return wrong(name, "a text"), std::string();
  }
  std::optional<std::int64_t> number(std::string_view name) {
    const json::value* const found = find(name);
    if (found == nullptr || found->is_null()) return std::nullopt;
    if (const std::int64_t* const number = found->if_int64()) return *number;
    return wrong(name, "a whole number"), std::nullopt;
  }
  std::int64_t count(std::string_view name) { return number(name).value_or(0); }
  std::uint32_t small(std::string_view name, std::uint32_t otherwise) {
    const std::int64_t found = number(name).value_or(otherwise);
    if (found >= 0 && found <= std::numeric_limits<std::uint32_t>::max()) return static_cast<std::uint32_t>(found);
    return wrong(name, "a small number"), otherwise;
  }
  std::uint64_t natural(std::string_view name) {
    const std::int64_t found = count(name);
    if (found >= 0) return static_cast<std::uint64_t>(found);
    return wrong(name, "a natural number"), 0;
  }
  bool flag(std::string_view name) {
    const json::value* const found = find(name);
    if (found == nullptr) return false;
    if (const bool* const flag = found->if_bool()) return *flag;
    return wrong(name, "true or false"), false;
  }
  std::optional<WallTime> time(std::string_view name) {
    const auto ms = number(name);
    return ms ? std::optional(WallTime(std::chrono::milliseconds(*ms))) : std::nullopt;
  }
  std::optional<Duration> duration(std::string_view name) { return store::to_duration(number(name)); }
  std::string bytes(const std::string& name) {
    const std::string digits = text(name + "_hex");
    if (digits.empty()) return text(name);
    std::string out;
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
      unsigned byte = 0;
      const char* const end = digits.data() + i + 2;
      if (std::from_chars(digits.data() + i, end, byte, 16).ptr != end) break;
      out += static_cast<char>(byte);
    }
    if (out.size() * 2 != digits.size()) wrong(name + "_hex", "pairs of hexadecimal digits");
    return out;
  }
  const json::array& list(std::string_view name) {
    static const json::array kNone;
    const json::value* const found = find(name);
    if (found == nullptr) return kNone;
    if (const json::array* const list = found->if_array()) return *list;
    return wrong(name, "a list"), kNone;
  }
  template <class T>
  void word(std::string_view name, Result<T> read, T& into) {
    if (read) {
      into = *read;
    } else {
      wrong(name, "a value that this version of Stint knows");
    }
  }
  void wrong(std::string_view name, std::string_view expected) {
    if (wrong_.empty()) wrong_ = fmt::format("'{}' is not {}", name, expected);
  }
  [[nodiscard]] const std::string& wrong() const { return wrong_; }

 private:
  [[nodiscard]] const json::value* find(std::string_view name) const { return object_.if_contains(name); }
  const json::object& object_;
  std::string wrong_;
};

Result<StoreFileLine> end_of(MemberReader& members, StoreFileLine line) {
  if (!members.wrong().empty()) return fail(Errc::invalid, members.wrong());
  return line;
}

Result<StoreFileLine> parse_head(const json::value& version) {
  if (const std::int64_t* const number = version.if_int64(); number != nullptr && *number == kVersion) {
    return StoreFileHead();
  }
  return fail(Errc::denied, "this export was made by a newer version of Stint: import it with that version");
}

Result<StoreFileLine> parse_agent(const json::object& object) {
  MemberReader members(object);
  AgentEntry agent;
  agent.name = members.text("name");
  if (agent.name.empty()) members.wrong("name", "there");
  agent.queued_max = members.small("queued_max", agent.queued_max);
  agent.attempts_max = members.small("attempts_max", agent.attempts_max);
  agent.lost_max = members.small("lost_max", agent.lost_max);
  for (const json::value& value : members.list("limits")) {
    if (!value.is_object()) return fail(Errc::invalid, "a limit of the agent is not an object");
    MemberReader limit(value.get_object());
    agent.limits.push_back({limit.text("name"), limit.small("weight", 1)});
    if (!limit.wrong().empty()) return fail(Errc::invalid, limit.wrong());
  }
  return end_of(members, std::move(agent));
}

Result<StoreFileLine> parse_limit(const json::object& object) {
  MemberReader members(object);
  LimitState limit;
  limit.name = members.text("name");
  if (limit.name.empty()) members.wrong("name", "there");
  if (members.number("capacity")) limit.capacity = members.small("capacity", 1);
  limit.paused = members.flag("paused");
  limit.paused_until = members.time("paused_until_ms");
  return end_of(members, std::move(limit));
}

Result<Event> parse_event(const json::value& value, const std::string& run, std::int64_t seq) {
  if (!value.is_object()) return fail(Errc::invalid, fmt::format("event {} is not an object", seq));
  MemberReader members(value.get_object());
  Event event;
  event.run = run;
  event.seq = seq;
  event.fence = store::Fence{members.count("fence")};
  event.cause = members.text("cause");
  event.node = domain::number_of<store::NodeNumber>(members.number("node"));
  if (const std::string state = members.text("state"); !state.empty()) {
    domain::RunState known{};
    members.word("state", store::read_state(state), known);
    event.state = known;
  }
  members.word("hold", store::read_hold(members.text("hold")), event.hold);
  event.error = members.text("error");
  event.data = members.text("data");
  event.at = members.time("at_ms").value_or(WallTime());
  if (!members.wrong().empty()) return fail(Errc::invalid, fmt::format("event {}: {}", seq, members.wrong()));
  return event;
}

Result<store::FamilyUse> parse_family(const json::value& value) {
  if (!value.is_object()) return fail(Errc::invalid, "an item of 'families' is not an object");
  MemberReader members(value.get_object());
  store::FamilyUse family;
  family.head = members.text("head");
  family.used = {.tokens = members.count("tokens"), .cost_micros = members.count("cost_micros")};
  if (family.head.empty()) members.wrong("head", "there");
  if (!members.wrong().empty()) return fail(Errc::invalid, "a family: " + members.wrong());
  return family;
}

Result<StoreFileLine> parse_run(const json::object& object) {
  MemberReader members(object);
  RunRecord record;
  Run& run = record.run;
  run.id = members.text("id");
  run.agent = members.text("agent");
  run.session = members.text("session");
  run.parent = members.text("parent");
  run.key = members.text("key");
  members.word("state", store::read_state(members.text("state")), run.state);
  members.word("hold", store::read_hold(members.text("hold")), run.hold);
  run.stop = store::read_stop(members.text("stop"));
  run.error = members.text("error");
  run.input = members.text("input");
  run.result = members.text("result");
  run.attempt = members.small("attempt", 0);
  run.lost = members.small("lost", 0);
  run.fence = store::Fence{members.count("fence")};
  run.tokens = members.count("tokens");
  run.cost_micros = members.count("cost_micros");
  run.unsafe = members.flag("unsafe");
  run.on_crash = store::read_on_crash(members.text("on_crash"));
  run.created_at = members.time("created_ms").value_or(WallTime());
  run.not_before = members.time("not_before_ms");
  run.deadline = members.time("deadline_ms");
  run.started_at = members.time("started_ms");
  run.finished_at = members.time("finished_ms");
  record.rank = members.count("rank_ms");
  record.budget = members.duration("budget_ms");
  record.budget_left = members.duration("budget_left_ms");
  record.budget_until = members.time("budget_until_ms");
  record.parked_on = members.text("parked_on");
  record.output = {
      .head = members.bytes("head"), .tail = members.bytes("tail"), .bytes = members.natural("output_bytes")};
  if (run.deadline || record.budget_until) {
    run.expires_at = std::min(run.deadline.value_or(WallTime::max()), record.budget_until.value_or(WallTime::max()));
  }
  for (const json::value& value : members.list("conversation")) {
    if (!value.is_object()) return fail(Errc::invalid, "an item of 'conversation' is not an object");
    MemberReader message(value.get_object());
    record.conversation.push_back(message.bytes("body"));
    if (!message.wrong().empty()) return fail(Errc::invalid, "a message of the conversation: " + message.wrong());
  }
  for (const json::value& value : members.list("families")) {
    STINT_TRY(store::FamilyUse family, parse_family(value));
    record.families.push_back(std::move(family));
  }
  for (const json::value& value : members.list("events")) {
    STINT_TRY(Event event, parse_event(value, run.id, std::ssize(record.events) + 1));
    record.events.push_back(std::move(event));
  }
  run.seq = std::ssize(record.events);
  if (run.id.empty()) members.wrong("id", "there");
  return end_of(members, std::move(record));
}

Result<StoreFileLine> parse_end(const json::object& object) {
  MemberReader members(object);
  Moved counts;
  counts.agents = members.natural("agents");
  counts.limits = members.natural("limits");
  counts.runs = members.natural("runs");
  counts.events = members.natural("events");
  return end_of(members, counts);
}

}  // namespace

std::string store_file_head() { return json::serialize(json::object{{"stint_export", kVersion}}); }

std::string to_json(const AgentEntry& agent) {
  json::array limits;
  for (const store::LimitUse& use : agent.limits) {
    limits.push_back(json::object{{"name", clean(use.limit)}, {"weight", use.weight}});
  }
  json::object object{{"name", clean(agent.name)},
                      {"limits", std::move(limits)},
                      {"queued_max", agent.queued_max},
                      {"attempts_max", agent.attempts_max},
                      {"lost_max", agent.lost_max}};
  return json::serialize(json::object{{"agent", std::move(object)}});
}

std::string to_json(const LimitState& limit) {
  json::object object{{"name", clean(limit.name)}};
  if (limit.capacity) object["capacity"] = *limit.capacity;
  if (limit.paused) object["paused"] = true;
  put(object, "paused_until_ms", limit.paused_until);
  return json::serialize(json::object{{"limit", std::move(object)}});
}

std::string to_json(const RunRecord& record) {
  const Run& run = record.run;
  json::object object{{"id", run.id},
                      {"agent", clean(run.agent)},
                      {"state", to_string(run.state)},
                      {"on_crash", to_string(run.on_crash)},
                      {"created_ms", domain::to_unix_ms(run.created_at)},
                      {"rank_ms", record.rank}};
  put(object, "session", run.session);
  put(object, "parent", run.parent);
  put(object, "key", run.key);
  if (run.hold != domain::Hold::none) object["hold"] = to_string(run.hold);
  if (run.stop != domain::Stop::none) object["stop"] = to_string(run.stop);
  put(object, "error", run.error);
  put(object, "input", run.input);
  put(object, "result", run.result);
  put(object, "attempt", std::int64_t{run.attempt});
  put(object, "lost", std::int64_t{run.lost});
  put(object, "fence", run.fence.value);
  put(object, "tokens", run.tokens);
  put(object, "cost_micros", run.cost_micros);
  if (run.unsafe) object["unsafe"] = true;
  put(object, "not_before_ms", run.not_before);
  put(object, "deadline_ms", run.deadline);
  put(object, "started_ms", run.started_at);
  put(object, "finished_ms", run.finished_at);
  put(object, "budget_ms", record.budget);
  put(object, "budget_left_ms", record.budget_left);
  put(object, "budget_until_ms", record.budget_until);
  put(object, "parked_on", record.parked_on);
  put(object, "output_bytes", static_cast<std::int64_t>(record.output.bytes));
  put_bytes(object, "head", record.output.head);
  put_bytes(object, "tail", record.output.tail);
  json::array conversation;
  for (const std::string& message : record.conversation) {
    put_bytes(conversation.emplace_back(json::object()).get_object(), "body", message);
  }
  if (!conversation.empty()) object["conversation"] = std::move(conversation);
  json::array families;
  for (const store::FamilyUse& family : record.families) {
    json::object& each = families.emplace_back(json::object{{"head", family.head}}).get_object();
    put(each, "tokens", family.used.tokens);
    put(each, "cost_micros", family.used.cost_micros);
  }
  if (!families.empty()) object["families"] = std::move(families);
  json::array events;
  for (const Event& event : record.events) events.push_back(event_to_json(event));
  object["events"] = std::move(events);
  return json::serialize(json::object{{"run", std::move(object)}});
}

std::string store_file_end(const Moved& counts) {
  return json::serialize(json::object{{"end", moved_to_object(counts)}});
}

Result<StoreFileLine> parse_store_line(std::string_view line) {
  boost::system::error_code error;
  const json::value value = json::parse(line, error);
  if (error || !value.is_object() || value.get_object().size() != 1) {
    return fail(Errc::invalid, "this is not a line of an export");
  }
  const json::key_value_pair& only = *value.get_object().begin();
  if (only.key() == "stint_export") return parse_head(only.value());
  if (!only.value().is_object()) return fail(Errc::invalid, "this is not a line of an export");
  const json::object& object = only.value().get_object();
  if (only.key() == "agent") return parse_agent(object);
  if (only.key() == "limit") return parse_limit(object);
  if (only.key() == "run") return parse_run(object);
  if (only.key() == "end") return parse_end(object);
  return fail(Errc::invalid, "this is not a line of an export");
}

std::string schema_to_json(const std::string& store, const store::Schema& schema) {
  return json::serialize(json::object{{"store", clean(store)}, {"found", schema.found}, {"schema", schema.now}});
}

std::string stats_to_json(const std::string& store, const store::Stats& stats, const std::vector<LimitState>& limits) {
  json::object runs;
  for (const domain::RunState state : domain::kRunStates) {
    const auto found = stats.runs.find(state);
    runs[to_string(state)] = found == stats.runs.end() ? 0 : found->second;
  }
  return json::serialize(json::object{{"store", clean(store)},
                                      {"runs", std::move(runs)},
                                      {"ready", stats.ready},
                                      {"events", stats.events},
                                      {"nodes", stats.nodes},
                                      {"bytes", stats.bytes},
                                      {"limits", limits_to_array(limits)}});
}

std::string audit_to_json(const std::string& store, const store::Audit& audit) {
  json::array findings;
  for (const std::string& finding : audit.findings) findings.push_back(json::string(clean(finding)));
  return json::serialize(json::object{
      {"store", clean(store)}, {"runs", audit.runs}, {"events", audit.events}, {"findings", std::move(findings)}});
}

std::string moved_to_json(const Moved& moved, const Moved& added) {
  return json::serialize(json::object{{"read", moved_to_object(moved)}, {"added", moved_to_object(added)}});
}

}  // namespace stint::wire
