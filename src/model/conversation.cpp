#include "model/conversation.hpp"

#include <algorithm>

namespace stint::model {

std::string_view to_string(Role role) noexcept { return role == Role::user ? "user" : "assistant"; }

std::vector<ToolCall> unanswered_calls(std::span<const Message> messages) {
  std::vector<ToolCall> calls;
  for (const Message& message : messages) {
    if (message.role == Role::assistant) calls.clear();
    for (const Block& block : message.content) {
      if (const auto* const call = std::get_if<ToolCall>(&block)) calls.push_back(*call);
      if (const auto* const result = std::get_if<ToolResult>(&block)) {
        const auto found = std::ranges::find(calls, result->call, &ToolCall::id);
        if (found != calls.end()) calls.erase(found);
      }
    }
  }
  return calls;
}

}  // namespace stint::model
