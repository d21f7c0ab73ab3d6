#include "stint/cancel.hpp"

#include "stint/task.hpp"

namespace stint {

std::string_view to_string(Reason reason) noexcept {
  switch (reason) {
    case Reason::none: return "none";
    case Reason::user: return "cancelled by the caller";
    case Reason::deadline: return "deadline passed";
    case Reason::lost_race: return "another branch was first";
    case Reason::sibling_failed: return "a sibling failed";
    case Reason::shutdown: return "shutting down";
  }
  return "unknown";
}

CancelToken::CancelToken(CancelToken& parent) noexcept
    : executor_(parent.executor_),
      parent_(&parent),
      deadline_(parent.deadline_),
      budget_(parent.budget_),
      pulse_(parent.pulse_),
      reason_(parent.reason_),
      plain_(parent.plain_) {
  parent.children_.push_back(*this);
}

/// The next token of the subtree under `top` in preorder, without recursion.
CancelToken* CancelToken::next_below(CancelToken& top) noexcept {
  if (!children_.empty()) return &children_.front();
  for (CancelToken* token = this; token != &top; token = token->parent_) {
    auto* const following = token->next();
    if (following != token->parent_->children_.end()) return static_cast<CancelToken*>(following);
  }
  return nullptr;
}

void CancelToken::cancel(Reason reason, std::string cause) noexcept {
  STINT_ASSERT(executor_->is_current());
  if (cancelled()) return;
  if (!cause.empty()) cause_ = std::make_unique<std::string>(std::move(cause));
  for (CancelToken* token = this; token != nullptr; token = token->next_below(*this)) {
    if (token->cancelled()) continue;
    token->reason_ = reason;
    token->plain_ = false;
    executor_->cancelled_.splice_back(token->chains_);
  }
  executor_->cancel_walk_.start();
}

std::string_view CancelToken::cause() const noexcept {
  if (!cancelled()) return {};
  for (const CancelToken* token = this; token != nullptr; token = token->parent_) {
    if (token->cause_) return *token->cause_;
  }
  return {};
}

bool CancelToken::is_within(const CancelToken& ancestor) const noexcept {
  const CancelToken* token = this;
  while (token != nullptr && token != &ancestor) token = token->parent_;
  return token != nullptr;
}

void Executor::CancelWalk::start() noexcept {
  if (!queued_) run();  // otherwise the running walk reaches the new ones too
}

void Executor::CancelWalk::run() noexcept {
  queued_ = false;
  for (int count = 0; count < kCancelsPerBatch && !executor_.cancelled_.empty(); ++count) {
    Chain& chain = executor_.cancelled_.front();
    chain.unlink();
    chain.token().chains_.push_back(chain);
    if (chain.parked != nullptr) chain.parked->cancel();
  }
  if (executor_.cancelled_.empty()) return;
  queued_ = true;
  executor_.post(*this);
}

void Chain::destroy_frames(std::coroutine_handle<> root) noexcept {
  if (Leaf* const leaf = std::exchange(parked, nullptr)) {
    for (std::coroutine_handle<> frame = leaf->awaiting_; frame != root;) {
      TaskLink& link = *promise_of(frame).awaiter();
      frame.destroy();
      link.child = {};
      frame = link.parent;
    }
  }
  root.destroy();
}

bool Chain::is_awaited_by(const Leaf& leaf, std::coroutine_handle<> frame) noexcept {
  return leaf.awaiting_.address() == frame.address();
}

void Leaf::run() {
  CancelToken& token = this->token();
  if (!token.plain_) [[unlikely]]
    return run_watched(token);
  unpark();
  awaiting_.resume();
}

void Leaf::run_watched(CancelToken& token) {
  // A cancellation that came before this resume wins over any result: the frame is destroyed, which returns what it was
  // granted.
  if (token.cancelled()) return chain().ended(End::stopped);
  if (token.arbitrated_ && !chain().may_resume(*this)) return chain().ended(End::stopped);
  if (std::atomic<std::uint32_t>* const pulse = token.pulse_) {  // one writer: the executor's thread
    pulse->store(pulse->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  unpark();
  awaiting_.resume();
}

}  // namespace stint
