#include "wire/limits.hpp"

#include "wire/json.hpp"

#include <boost/json.hpp>

#include <algorithm>

namespace stint::wire {
namespace {

namespace json = boost::json;

void add_owner(json::object& object, const os::SlotRecord& record, std::int64_t now_ms) {
  object["label"] = valid_utf8(record.label);
  object["pid"] = record.pid;
  object["age_ms"] = std::max<std::int64_t>(0, now_ms - record.since_ms);
}

}  // namespace

std::string limits_to_json(const std::vector<limit::Listing>& limits, WallTime now) {
  const std::int64_t now_ms = domain::to_unix_ms(now);
  json::array out;
  for (const limit::Listing& limit : limits) {
    json::array holders, waiters;
    for (const limit::Slots::Holder& holder : limit.holders) {
      json::object object{{"slot", holder.index}};
      if (holder.record) {
        add_owner(object, *holder.record, now_ms);
        object["run"] = valid_utf8(holder.record->run);
      }
      object["ours"] = holder.record.has_value();
      object["ending"] = holder.swept;
      holders.push_back(std::move(object));
    }
    for (const os::SlotRecord& waiter : limit.waiters) {
      json::object object{{"place", static_cast<std::int64_t>(waiters.size() + 1)}, {"weight", waiter.weight}};
      add_owner(object, waiter, now_ms);
      waiters.push_back(std::move(object));
    }
    out.push_back(json::object{{"name", valid_utf8(limit.name)},
                               {"capacity", limit.capacity},
                               {"resized", limit.resized},
                               {"holders", std::move(holders)},
                               {"waiters", std::move(waiters)}});
  }
  return json::serialize(json::object{{"limits", std::move(out)}});
}

}  // namespace stint::wire
