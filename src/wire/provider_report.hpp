/// Reports of `stint provider`: its address, a record of each request, and the totals. The totals are the leak
/// audit: a client that cancels well leaves `tokens_after_gone` at 0 and `active` at 0.
#pragma once

#include "stint/time.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stint::wire {

struct ProviderStats {
  std::uint64_t requests = 0;  ///< model calls, since the start or the last reset
  std::uint64_t active = 0;    ///< in progress now
  std::uint64_t active_max = 0;
  std::uint64_t connections = 0;  ///< open now
  std::uint64_t connections_total = 0;
  std::uint64_t faults = 0;        ///< requests that got one
  std::uint64_t closed_early = 0;  ///< requests whose client left before the answer was complete
  std::uint64_t streams_closed_early = 0;
  std::uint64_t tokens = 0;             ///< generated
  std::uint64_t tokens_after_gone = 0;  ///< of them after the client had left
  std::uint64_t bad_requests = 0;
};

/// How a request ended.
enum class ProviderEnd : std::uint8_t { done, fault, client_closed, refused, stopped };
[[nodiscard]] std::string_view to_string(ProviderEnd end) noexcept;

struct ProviderRecord {
  std::uint64_t number = 0;
  Duration at{};  ///< since the provider began
  Duration took{};
  std::string protocol, model, fault, prompt;
  std::uint32_t turn = 0;
  int status = 0;  ///< 0: none was sent
  bool stream = false;
  std::uint32_t input_tokens = 0, tokens = 0, tokens_after_gone = 0;
  ProviderEnd end = ProviderEnd::done;
};

struct ProviderListening {
  std::string address, url;
  std::vector<std::pair<std::string, std::string>> environment;
};

[[nodiscard]] std::string to_json(const ProviderStats& stats);
[[nodiscard]] std::string to_json(const ProviderRecord& record);
[[nodiscard]] std::string to_json(const ProviderListening& listening);

}  // namespace stint::wire
