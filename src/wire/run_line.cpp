#include "wire/run_line.hpp"

#include "wire/reason.hpp"
#include "wire/values.hpp"

#include <utility>

namespace stint::wire {

std::string waiting_line(std::string_view run, const domain::WaitReason& reason, std::string_view why) {
  json::object object{{"event", "waiting"}, {"run", text_value(run)}, {"why", text_value(why)}};
  for (auto& field : reason_value(reason)) object[field.key()] = std::move(field.value());
  return json::serialize(object);
}

std::string text_line(std::string_view run, std::string_view text) {
  return json::serialize(json::object{{"event", "text"}, {"run", text_value(run)}, {"text", text_value(text)}});
}

std::string event_line(const store::Event& event, std::uint32_t attempt) {
  json::object object{
      {"event", text_value(event.cause)}, {"run", text_value(event.run)}, {"seq", event.seq}, {"at", to_ms(event.at)}};
  if (event.cause == "claimed") object["attempt"] = attempt;
  if (event.state) object["state"] = to_string(*event.state);
  if (event.hold != domain::Hold::none) object["hold"] = to_string(event.hold);
  if (!event.error.empty()) object["error"] = text_value(event.error);
  if (const auto data = parse_object(event.data)) object["text"] = text_value(text_at(*data, "text"));
  return json::serialize(object);
}

std::string result_line(const engine::RunView& view, bool refused) {
  const store::Run& run = view.run;
  const auto elapsed = run.finished_at.value_or(run.created_at) - run.created_at;
  return json::serialize(
      json::object{{"event", "result"},
                   {"run", text_value(run.id)},
                   {"state", to_string(run.state)},
                   {"refused", refused},
                   {"text", text_value(view.memo.text)},
                   {"message", text_value(run.state == domain::RunState::succeeded ? "" : run.error)},
                   {"attempts", run.attempt},
                   {"usage", usage_value(view.memo.usage)},
                   {"denials", denials_value(view.memo.denials)},
                   {"processes_ended", view.memo.processes_ended},
                   {"ending_ms", to_ms(view.memo.ending)},
                   {"elapsed_ms", elapsed.count()}});
}

}  // namespace stint::wire
