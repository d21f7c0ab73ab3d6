#include "provider/threads.hpp"

namespace stint::provider {

void Threads::keep(const std::string& id, const Ask& ask) {
  if (!ask.threaded) return;
  if (order_.size() >= kAnswersMax) {
    answers_.erase(order_.front());
    order_.pop_front();
  }
  answers_[id] = {ask.prompt, ask.turn, ask.input_tokens};
  order_.push_back(id);
}

bool Threads::complete(Ask& ask) const {
  if (ask.continues.empty()) return true;
  const auto found = answers_.find(ask.continues);
  if (found == answers_.end()) return false;
  const Answer& answer = found->second;
  ask.input_tokens += answer.input_tokens;
  if (!ask.prompt.empty()) return true;  // a new user message: turns count from there
  ask.prompt = answer.prompt;
  ask.turn += answer.turn + 1;
  return true;
}

}  // namespace stint::provider
