#include "stint/stop_cord.hpp"

namespace stint {

void StopCord::pull() noexcept {
  pulled_ = true;
  holders_.for_each([](OnCordBase& holder) { holder.token_->cancel(Reason::user); });
}

CancelToken* OnCordBase::begin() noexcept {
  if (!park()) return nullptr;
  token_.emplace(token());
  cord_.holders_.push_back(*this);
  if (cord_.pulled()) token_->cancel(Reason::user);
  return &*token_;
}

void OnCordBase::branch_ended(Chain&, End) noexcept {
  Link<OnCordBase>::unlink();
  complete();
}

}  // namespace stint
