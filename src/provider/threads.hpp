/// Conversations that the provider keeps for its callers: the Anthropic SDKs' tool runners begin a thread, and from
/// then on send only what is new, with the id of the answer that it follows. Of each answer as much is kept as decides
/// about the next one. Bounded: the oldest goes first, and a caller that continues it is told to begin anew. Pure.
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
  /// Completes a request that continues a thread. False: that answer is not known here.
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
