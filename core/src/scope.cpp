#include "stint/scope.hpp"

namespace stint {

Scope::Scope(Executor& executor, const ScopeOptions& options) noexcept
    : CancelToken(executor), cancel_on_error_(options.cancel_on_error) {
  shorten(options.deadline);
  draw_on(options.budget);
}

Scope::Scope(CancelToken& parent, const ScopeOptions& options) noexcept
    : CancelToken(parent), cancel_on_error_(options.cancel_on_error) {
  shorten(options.deadline);
  if (options.budget != nullptr) draw_on(options.budget);
}

Scope::~Scope() {
  if (executor_ != nullptr && executor_->closing()) abandon_children();
  STINT_ASSERT(executor_ == nullptr || idle());
}

void Scope::cancel(Reason reason, std::string cause) noexcept {
  STINT_ASSERT(executor_ != nullptr);
  if (executor_->is_current()) {
    CancelToken::cancel(reason, std::move(cause));
  } else if (!request_.pending.exchange(true, std::memory_order_acq_rel)) {
    request_.reason = reason;
    if (!cause.empty()) request_.cause = std::make_unique<std::string>(std::move(cause));
    executor_->post(request_);
  }
}

void Scope::CancelRequest::run() noexcept {
  scope.CancelToken::cancel(reason, cause ? std::move(*cause) : std::string());
  pending.store(false, std::memory_order_release);
  scope.check_idle();
}

void Scope::fail(Error error) noexcept {
  if (!error_ && !exception_) error_ = std::move(error);
  if (cancel_on_error_) CancelToken::cancel(Reason::sibling_failed);
}

void Scope::fail(std::exception_ptr exception) noexcept {
  if (!error_ && !exception_) exception_ = std::move(exception);
  if (cancel_on_error_) CancelToken::cancel(Reason::sibling_failed);
}

void Scope::check_idle() noexcept {
  if (!idle()) return;
  while (!joiners_.empty()) {
    Join& joiner = joiners_.front();
    joiner.unlink();
    joiner.complete();
  }
  if (on_idle_ != nullptr) executor_->post(*std::exchange(on_idle_, nullptr));
}

void Scope::abandon_children() noexcept {
  while (!chains_.empty()) chains_.front().abandon();
  executor_ = nullptr;
}

Error Scope::stop_error() const {
  std::string what = reason() == Reason::deadline ? "stopped at the scope's deadline" : "the scope was cancelled";
  if (!cause().empty()) what.append(": ").append(cause());
  return {reason() == Reason::deadline ? Errc::timed_out : Errc::cancelled, std::move(what)};
}

RootScope::RootScope(Executor& executor, const ScopeOptions& options) noexcept : Scope(executor, options) {
  STINT_ASSERT(executor.is_current());
  STINT_ASSERT(!executor.inside() && "a coroutine opens scopes with with_scope: a stop would destroy this one");
  executor.enroll(*this);
  if (!options.deadline.is_never()) executor.arm(*this, options.deadline.when());
}

RootScope::~RootScope() = default;

}  // namespace stint
