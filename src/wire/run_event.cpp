#include "wire/run_event.hpp"

#include "wire/json.hpp"

#include <boost/json.hpp>

namespace stint::wire {
namespace {

namespace json = boost::json;

std::int64_t ms(Duration duration) { return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count(); }

json::string text(std::string_view value) { return json::string(valid_utf8(value)); }

json::object usage_value(const Usage& usage) {
  return {{"fresh_in", usage.fresh_in},        {"cache_read", usage.cache_read},
          {"cache_write", usage.cache_write},  {"out", usage.out},
          {"reasoning", usage.reasoning},      {"tokens", usage.tokens()},
          {"cost_micros", usage.money_micros}, {"estimated", usage.estimated}};
}

std::string_view name_of(engine::RunEvent::Kind kind) {
  using Kind = engine::RunEvent::Kind;
  switch (kind) {
    case Kind::waiting: return "waiting";
    case Kind::started: return "started";
    case Kind::progress: return "progress";
    case Kind::attempt_ended: return "attempt_ended";
    case Kind::backing_off: return "backing_off";
    case Kind::ended: return "ended";
  }
  return "unknown";
}

json::object reason_value(const limit::WaitReason& reason) {
  json::array holders;
  for (const limit::Slots::Holder& holder : reason.holders) {
    json::object object{{"slot", holder.index}};
    if (holder.record) {
      object["label"] = text(holder.record->label);
      object["pid"] = holder.record->pid;
    }
    holders.push_back(std::move(object));
  }
  return {{"limit", text(reason.limit)},
          {"capacity", reason.capacity},
          {"weight", reason.weight},
          {"ahead", static_cast<std::int64_t>(reason.ahead)},
          {"holders", std::move(holders)}};
}

json::array denials_value(const std::vector<Denial>& denials) {
  json::array out;
  for (const Denial& denial : denials) {
    out.push_back(
        json::object{{"tool", text(denial.tool)}, {"call", text(denial.call)}, {"allow", text(denial.allow)}});
  }
  return out;
}

json::object report_value(const driver::ProcessReport& report) {
  const Outcome& outcome = report.outcome;
  json::object object{{"outcome", to_string(outcome.kind)},
                      {"message", text(outcome.message)},
                      {"usage", usage_value(outcome.usage)},
                      {"processes_ended", report.processes_ended},
                      {"ending_ms", ms(report.ending)}};
  if (outcome.exit_status) object["exit_status"] = *outcome.exit_status;
  if (outcome.signal) object["signal"] = *outcome.signal;
  if (outcome.http_status) object["http_status"] = *outcome.http_status;
  if (!outcome.conversation.empty()) object["conversation"] = text(outcome.conversation);
  return object;
}

}  // namespace

std::string run_event_to_json(std::string_view run, const engine::RunEvent& event, Duration elapsed) {
  json::object object{{"event", name_of(event.kind)}, {"run", text(run)}, {"elapsed_ms", ms(elapsed)}};
  if (event.attempt != 0) object["attempt"] = event.attempt;
  if (event.reason != nullptr) object["waits_for"] = reason_value(*event.reason);
  if (event.progress != nullptr) {
    object["kind"] = to_string(event.progress->kind);
    if (!event.progress->text.empty()) object["text"] = text(event.progress->text);
    if (event.progress->kind == driver::ProgressKind::usage) object["usage"] = usage_value(event.progress->usage);
  }
  if (event.report != nullptr) object["report"] = report_value(*event.report);
  if (event.kind == engine::RunEvent::Kind::backing_off) object["wait_ms"] = ms(event.wait);
  if (!event.text.empty()) object["why"] = text(event.text);
  return json::serialize(object);
}

std::string run_result_to_json(std::string_view run, const engine::RunResult& result) {
  return json::serialize(json::object{{"event", "result"},
                                      {"run", text(run)},
                                      {"state", to_string(result.end)},
                                      {"refused", result.refused},
                                      {"text", text(result.text)},
                                      {"message", text(result.message)},
                                      {"attempts", result.attempts},
                                      {"usage", usage_value(result.usage)},
                                      {"denials", denials_value(result.denials)},
                                      {"elapsed_ms", ms(result.elapsed)}});
}

}  // namespace stint::wire
