#include "wire/reason.hpp"

#include "wire/values.hpp"

#include <utility>

namespace stint::wire {

json::object entry_value(const domain::LimitEntry& entry) {
  json::object object{{"weight", entry.weight}};
  if (!entry.run.empty()) object["run"] = text_value(entry.run);
  if (!entry.agent.empty()) object["agent"] = text_value(entry.agent);
  if (!entry.title.empty()) object["title"] = text_value(entry.title);
  if (!entry.label.empty()) object["label"] = text_value(entry.label);
  if (entry.pid) object["pid"] = *entry.pid;
  if (entry.since) object["since_at"] = to_ms(*entry.since);
  if (entry.place) object["place"] = *entry.place;
  if (!entry.user.empty()) object["user"] = text_value(entry.user);
  if (entry.other_container) object["other_container"] = true;
  if (entry.swept) object["swept"] = true;
  if (entry.unjudged) object["unjudged"] = true;
  if (entry.counts_to) object["counts_to"] = *entry.counts_to;
  return object;
}

json::object shortage_value(const domain::Shortage& shortage) {
  json::object object{{"kind", to_string(shortage.kind)}};
  if (shortage.kind == domain::Shortage::Kind::checkout) {
    object["path"] = text_value(shortage.path);
  } else {
    object["amount"] = shortage.amount;
    object["bound"] = shortage.bound;
  }
  return object;
}

json::object reason_value(const domain::WaitReason& reason) {
  json::object object{{"reason", to_string(reason.cause)}};
  if (!reason.limit.empty()) object["limit"] = text_value(reason.limit);
  if (reason.capacity) object["capacity"] = *reason.capacity;
  using domain::WaitCause;
  if (reason.cause == WaitCause::limit || reason.cause == WaitCause::turn) {
    object["held"] = reason.held;
    object["weight"] = reason.weight;
  }
  if (!reason.holders.empty()) {
    json::array holders;
    for (const domain::LimitEntry& each : reason.holders) holders.push_back(entry_value(each));
    object["holders"] = std::move(holders);
  }
  if (reason.ahead) object["ahead"] = *reason.ahead;
  if (reason.indirect) object["indirect"] = true;
  if (reason.ramp) object["ramp"] = *reason.ramp;
  if (!reason.turn_of.empty()) object["turn_of"] = text_value(reason.turn_of);
  if (!reason.behind.empty()) object["behind"] = text_value(reason.behind);
  if (reason.behind_state) object["behind_state"] = to_string(*reason.behind_state);
  if (reason.place) object["place"] = *reason.place;
  if (reason.until) object["until_at"] = to_ms(*reason.until);
  if (reason.shortage) object["shortage"] = shortage_value(*reason.shortage);
  if (!reason.beyond.empty()) object["beyond"] = text_value(reason.beyond);
  if (!reason.detail.empty()) object["detail"] = text_value(reason.detail);
  return object;
}

}  // namespace stint::wire
