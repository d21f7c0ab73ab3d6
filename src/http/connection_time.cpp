// The time limits of a connection (invariants 2 and 3 of connection.cpp), and what ends it before its time.
#include "http/connection.hpp"

namespace stint::http {

using boost::system::error_code;

void Connection::set_limit(Limit limit, TimePoint when) noexcept {
  limit_ = limit;
  deadline_ = when;
  if (Timer::linked() && armed_for_ <= when) return;
  armed_for_ = when;
  state_.reactor.disarm(*this);
  state_.reactor.arm(*this, when);
}

void Connection::fire() noexcept {
  if (deadline_ == TimePoint::max()) return;  // the next limit arms it anew
  const TimePoint now = state_.reactor.now();
  if (now < deadline_) return set_limit(limit_, deadline_);
  if (limit_ == Limit::heartbeat) return beat(now);
  cut(limit_);
}

void Connection::cut(Limit why) noexcept {
  if (cut_ != Limit::none) return;
  cut_ = why;
  clear_limit();
  if (why == Limit::header) ++state_.stats.cut_header;
  if (why == Limit::body) ++state_.stats.cut_body;
  if (why == Limit::write) ++state_.stats.cut_write;
  if (why == Limit::write) abort_ = true;
  error_code ignored;
  socket_.cancel(ignored);
  if (departure_waiters_ > 0) leave();
}

void Connection::evict() noexcept {
  ++state_.stats.connections_evicted;
  if (idle_) leave_idle();
  leave_head();
  cut(Limit::evicted);
}

void Connection::drain() noexcept {
  if (idle_ || in_head_ || streaming_) cut(Limit::drain);
}

}  // namespace stint::http
