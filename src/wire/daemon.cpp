#include "wire/daemon.hpp"

#include "wire/values.hpp"

namespace stint::wire {

std::string to_json(const DaemonPlace& place) {
  return json::serialize(json::object{{"url", text_value(place.url)},
                                      {"pid", place.pid},
                                      {"token_file", text_value(place.token_file)},
                                      {"root", text_value(place.root)}});
}

Result<DaemonPlace> read_daemon_place(std::string_view text) {
  STINT_TRY(const json::object object, parse_object(text));
  DaemonPlace place{text_at(object, "url"), number_at(object, "pid"), text_at(object, "token_file"),
                    text_at(object, "root")};
  if (place.url.empty() || place.pid <= 0) return fail(Errc::invalid, "the file has no url or no pid");
  return place;
}

std::string to_json(const Serving& serving) {
  json::object object{{"event", "serving"},
                      {"url", text_value(serving.url)},
                      {"store", text_value(serving.store)},
                      {"agents", serving.agents}};
  if (!serving.token.empty()) object["token"] = text_value(serving.token);
  return json::serialize(object);
}

}  // namespace stint::wire
