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
  STINT_ASSERT((executor_ == nullptr || running_ == 0) && "a scope must be idle when it is destroyed");
  if (CancelRequest* const request = request_.load(std::memory_order_acquire)) request->scope = nullptr;
}

void Scope::cancel(Reason reason, std::string cause) noexcept {
  STINT_ASSERT(executor_ != nullptr);
  if (executor_->is_current()) return CancelToken::cancel(reason, std::move(cause));
  auto request = std::make_unique<CancelRequest>(*this, reason, std::move(cause));
  CancelRequest* none = nullptr;
  if (!request_.compare_exchange_strong(none, request.get(), std::memory_order_acq_rel)) return;
  executor_->post(*request.release());
}

void Scope::CancelRequest::run() noexcept {
  const std::unique_ptr<CancelRequest> self(this);
  if (scope == nullptr) return;
  scope->CancelToken::cancel(reason, std::move(cause));
  scope->request_.store(nullptr, std::memory_order_release);
  scope->check_idle();
}

void Scope::CancelRequest::dropped() noexcept {
  const std::unique_ptr<CancelRequest> self(this);
  if (scope != nullptr) scope->request_.store(nullptr, std::memory_order_release);
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

Result<> Scope::outcome() const {
  if (exception_) std::rethrow_exception(exception_);
  if (error_) return stint::fail(*error_);
  if (cancelled()) return stint::fail(stop_error());
  return {};
}

RootScope::RootScope(Executor& executor, const ScopeOptions& options) noexcept : Scope(executor, options) {
  STINT_ASSERT(executor.is_current());
  STINT_ASSERT(!executor.inside() && "a coroutine opens scopes with with_scope: a stop would destroy this one");
  executor.add_root(*this);
  if (!options.deadline.is_never()) executor.arm(*this, options.deadline.when());
}

RootScope::~RootScope() = default;

}  // namespace stint
