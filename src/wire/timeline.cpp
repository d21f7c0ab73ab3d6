#include "wire/timeline.hpp"

#include "wire/timeline_value.hpp"

namespace stint::wire {
namespace {

using engine::AttemptLane;
using engine::Segment;
using engine::TranscriptItem;

json::object span_value(const AttemptLane::Part& span) {
  json::object object{{"kind", to_string(span.kind)}, {"at", to_ms(span.at)}, {"ms", to_ms(span.until - span.at)}};
  if (!span.name.empty()) object["name"] = text_value(span.name);
  if (span.usage != Usage()) object["usage"] = usage_value(span.usage);
  return object;
}

json::object verdict_value(const domain::VerdictRecord& verdict, WallTime ended) {
  json::object object{
      {"rule", to_string(verdict.rule)}, {"attempt", verdict.attempt}, {"attempts_max", verdict.attempts_max}};
  if (verdict.after)
    object["until_at"] = to_ms(WallTime(std::chrono::time_point_cast<WallTime::duration>(ended + *verdict.after)));
  if (!verdict.limit.empty()) object["limit"] = text_value(verdict.limit);
  if (verdict.resumes) object["resumes"] = true;
  return object;
}

json::object lane_value(const AttemptLane& lane) {
  json::array spans;
  for (const AttemptLane::Part& span : lane.spans) spans.push_back(span_value(span));
  json::object object{{"attempt", lane.attempt},
                      {"fence", lane.fence.value},
                      {"begun_at", to_ms(lane.begun)},
                      {"ended_at", maybe_time(lane.ended)},
                      {"spans", std::move(spans)}};
  if (lane.node) object["node"] = lane.node->value;
  if (!lane.ended) return object;
  object["cause"] = text_value(lane.cause);
  if (lane.state) object["state"] = to_string(*lane.state);
  if (lane.hold != domain::Hold::none) object["hold"] = to_string(lane.hold);
  if (!lane.error.empty()) object["error"] = text_value(lane.error);
  if (lane.verdict) object["verdict"] = verdict_value(*lane.verdict, *lane.ended);
  return object;
}

json::object segment_value(const Segment& segment) {
  json::object object{{"kind", to_string(segment.kind)}, {"at", to_ms(segment.at)}, {"ms", segment.length.count()}};
  if (!segment.name.empty()) object["name"] = text_value(segment.name);
  if (segment.attempt != 0) object["attempt"] = segment.attempt;
  return object;
}

const json::array& items_at(const json::object& object, std::string_view name) {
  static const json::array kNone;
  const json::value* const value = object.if_contains(name);
  return value != nullptr && value->is_array() ? value->get_array() : kNone;
}

std::chrono::milliseconds ms_at(const json::object& object, std::string_view name) {
  return std::chrono::milliseconds(number_at(object, name));
}

WallTime moment_at(const json::object& object, std::string_view name) {
  return time_at(object, name).value_or(WallTime());
}

domain::SpanKind kind_at(const json::object& object) {
  return domain::parse_span_kind(text_at(object, "kind")).value_or(domain::SpanKind::queue);
}

std::optional<domain::VerdictRecord> read_verdict(const json::object& lane, WallTime ended) {
  const json::value* const value = lane.if_contains("verdict");
  const json::object* const object = value == nullptr ? nullptr : value->if_object();
  const auto rule = object == nullptr ? std::nullopt : domain::parse_verdict_rule(text_at(*object, "rule"));
  if (!rule) return std::nullopt;
  domain::VerdictRecord verdict;
  verdict.rule = *rule;
  verdict.attempt = static_cast<std::uint32_t>(number_at(*object, "attempt"));
  verdict.attempts_max = static_cast<std::uint32_t>(number_at(*object, "attempts_max"));
  if (const auto until = time_at(*object, "until_at")) verdict.after = *until - ended;
  verdict.limit = text_at(*object, "limit");
  verdict.resumes = flag_at(*object, "resumes");
  return verdict;
}

AttemptLane read_lane(const json::object& object) {
  AttemptLane lane;
  lane.attempt = static_cast<std::uint32_t>(number_at(object, "attempt"));
  lane.fence = domain::Fence{number_at(object, "fence")};
  if (const auto node = maybe_number_at(object, "node")) lane.node = domain::NodeNumber{*node};
  lane.begun = moment_at(object, "begun_at");
  lane.ended = time_at(object, "ended_at");
  lane.cause = text_at(object, "cause");
  lane.state = domain::parse_run_state(text_at(object, "state"));
  lane.hold = domain::parse_hold(text_at(object, "hold")).value_or(domain::Hold::none);
  lane.error = text_at(object, "error");
  if (lane.ended) lane.verdict = read_verdict(object, *lane.ended);
  for (const json::value& each : items_at(object, "spans")) {
    const json::object* const span = each.if_object();
    if (span == nullptr) continue;
    const WallTime at = moment_at(*span, "at");
    lane.spans.push_back({kind_at(*span), text_at(*span, "name"), at, at + ms_at(*span, "ms"), {}});
    if (const json::value* const usage = span->if_contains("usage")) lane.spans.back().usage = read_usage(*usage);
  }
  return lane;
}

json::object item_value(const TranscriptItem& item) {
  using Kind = TranscriptItem::Kind;
  json::object object{{"kind", to_string(item.kind)}, {"byte", item.byte}};
  if (item.kind == Kind::left_out) object["bytes"] = item.bytes;
  if (item.seq != 0) {
    object["seq"] = item.seq;
    object["at"] = to_ms(item.at);
    object["fence"] = item.fence.value;
  }
  if (!item.text.empty()) object["text"] = text_value(item.text);
  if (!item.name.empty()) object["name"] = text_value(item.name);
  if (!item.error.empty()) object["error"] = text_value(item.error);
  if (item.kind == Kind::tool_end || item.kind == Kind::model_call) object["ms"] = to_ms(item.length);
  if (item.usage != Usage()) object["usage"] = usage_value(item.usage);
  return object;
}

}  // namespace

json::object timeline_value(const engine::Timeline& timeline) {
  json::array segments, attempts, sums;
  for (const engine::Timeline::Sum& each : timeline.sums) {
    sums.push_back(json::object{{"kind", to_string(each.kind)}, {"ms", each.length.count()}, {"spans", each.spans}});
  }
  for (const Segment& each : timeline.segments) segments.push_back(segment_value(each));
  for (const AttemptLane& each : timeline.attempts) attempts.push_back(lane_value(each));
  json::object object{{"id", text_value(timeline.run)},
                      {"state", to_string(timeline.state)},
                      {"begun_at", to_ms(timeline.begun)},
                      {"until_at", to_ms(timeline.until)},
                      {"waiting_ms", timeline.waiting.count()},
                      {"working_ms", timeline.working.count()},
                      {"charged_ms", timeline.charged.count()},
                      {"tokens", timeline.used.tokens},
                      {"cost_micros", timeline.used.cost_micros},
                      {"segments", std::move(segments)},
                      {"attempts", std::move(attempts)},
                      {"sums", std::move(sums)},
                      {"spans_left_out", timeline.spans_left_out},
                      {"events_left_out", timeline.events_left_out}};
  if (json::object budget = budget_value(timeline.budget); !budget.empty()) object["budget"] = std::move(budget);
  return object;
}

std::string to_json(const engine::Timeline& timeline) { return json::serialize(timeline_value(timeline)); }

Result<engine::Timeline> read_timeline(std::string_view text) {
  const auto object = parse_object(text);
  if (!object) return fail(Errc::failed, "this is not a timeline of a daemon of this version");
  engine::Timeline timeline;
  timeline.run = text_at(*object, "id");
  timeline.state = domain::parse_run_state(text_at(*object, "state")).value_or(domain::RunState::queued);
  timeline.begun = moment_at(*object, "begun_at");
  timeline.until = moment_at(*object, "until_at");
  timeline.waiting = ms_at(*object, "waiting_ms");
  timeline.working = ms_at(*object, "working_ms");
  timeline.charged = ms_at(*object, "charged_ms");
  if (const json::value* const budget = object->if_contains("budget")) {
    if (auto read = read_budget(*budget)) timeline.budget = *read;
  }
  timeline.used.tokens = number_at(*object, "tokens");
  timeline.used.cost_micros = number_at(*object, "cost_micros");
  timeline.spans_left_out = static_cast<std::uint64_t>(number_at(*object, "spans_left_out"));
  timeline.events_left_out = static_cast<std::uint64_t>(number_at(*object, "events_left_out"));
  for (const json::value& each : items_at(*object, "segments")) {
    if (!each.is_object()) continue;
    const json::object& segment = each.get_object();
    timeline.segments.push_back({kind_at(segment), text_at(segment, "name"), moment_at(segment, "at"),
                                 ms_at(segment, "ms"), static_cast<std::uint32_t>(number_at(segment, "attempt"))});
  }
  for (const json::value& each : items_at(*object, "sums")) {
    if (!each.is_object()) continue;
    const json::object& sum = each.get_object();
    timeline.sums.push_back({kind_at(sum), ms_at(sum, "ms"), static_cast<std::uint64_t>(number_at(sum, "spans"))});
  }
  for (const json::value& each : items_at(*object, "attempts")) {
    if (each.is_object()) timeline.attempts.push_back(read_lane(each.get_object()));
  }
  return timeline;
}

std::string to_json(const engine::Transcript& transcript, std::string_view id) {
  json::array items;
  for (const TranscriptItem& each : transcript.items) items.push_back(item_value(each));
  return json::serialize(json::object{{"id", text_value(id)},
                                      {"items", std::move(items)},
                                      {"next", to_string(transcript.next)},
                                      {"more", transcript.more},
                                      {"bytes", transcript.bytes}});
}

}  // namespace stint::wire
