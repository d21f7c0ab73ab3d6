#include "wire/provider_report.hpp"

#include "wire/values.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace stint::wire {
std::string_view to_string(ProviderEnd end) noexcept {
  switch (end) {
    case ProviderEnd::done: return "done";
    case ProviderEnd::fault: return "fault";
    case ProviderEnd::client_closed: return "client_closed";
    case ProviderEnd::refused: return "refused";
    case ProviderEnd::stopped: return "stopped";
  }
  return "unknown";
}

std::string to_json(const ProviderStats& stats) {
  return json::serialize(json::object{{"event", "stats"},
                                      {"requests", stats.requests},
                                      {"active", stats.active},
                                      {"active_max", stats.active_max},
                                      {"connections", stats.connections},
                                      {"connections_total", stats.connections_total},
                                      {"faults", stats.faults},
                                      {"closed_early", stats.closed_early},
                                      {"streams_closed_early", stats.streams_closed_early},
                                      {"tokens", stats.tokens},
                                      {"tokens_after_gone", stats.tokens_after_gone},
                                      {"bad_requests", stats.bad_requests}});
}

std::string to_json(const ProviderRecord& record) {
  return json::serialize(json::object{{"event", "request"},
                                      {"number", record.number},
                                      {"at_ms", to_ms(record.at)},
                                      {"took_ms", to_ms(record.took)},
                                      {"protocol", record.protocol},
                                      {"model", record.model},
                                      {"stream", record.stream},
                                      {"turn", record.turn},
                                      {"status", record.status},
                                      {"fault", record.fault},
                                      {"end", to_string(record.end)},
                                      {"input_tokens", record.input_tokens},
                                      {"tokens", record.tokens},
                                      {"tokens_after_gone", record.tokens_after_gone},
                                      {"prompt", record.prompt}});
}

std::string to_json(const ProviderListening& listening) {
  json::object environment;
  for (const auto& [name, value] : listening.environment) environment[name] = value;
  return json::serialize(json::object{{"event", "listening"},
                                      {"address", listening.address},
                                      {"url", listening.url},
                                      {"environment", std::move(environment)}});
}

}  // namespace stint::wire
