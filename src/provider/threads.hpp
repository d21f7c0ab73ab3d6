/// Conversations that the provider stores for its callers: the Anthropic SDKs' tool runners create a thread, and from
/// then on send only new messages, with the id of the answer that they follow. Keeps of each answer only what the next
/// one depends on. Bounded: the oldest is dropped first, and a caller that continues it gets a 404. Pure.
#pragma once

#include "provider/protocol.hpp"

#include <deque>
#include <string>
#include <unordered_map>

namespace stint::provider {

class Threads {
 public:
  static constexpr std::size_t kAnswersMax = 10'000;

  /// Remembers the answer `id` to `ask`, if its caller wants to continue from it.
  void keep(const std::string& id, const Ask& ask);
  /// Completes a request that continues a thread. False: that answer is unknown.
  [[nodiscard]] bool complete(Ask& ask) const;

 private:
  struct Answer {
    std::string prompt;
    std::uint32_t turn = 0;
    std::uint32_t input_tokens = 0;
  };
  std::unordered_map<std::string, Answer> answers_;
  std::deque<std::string> order_;
};

}  // namespace stint::provider
