#include "fleet/remote_changes.hpp"

#include "stint/combinators.hpp"

#include <algorithm>

namespace stint::fleet {
namespace {

constexpr int kFound = 200;

}  // namespace

RemoteChanges::RemoteChanges(Executor& executor, net::HttpClient& client, Request request)
    : executor_(executor), client_(client), request_(std::move(request)) {}

void RemoteChanges::switch_to(std::string run) {
  if (run == run_) return;
  run_ = std::move(run);
  stream_.reset();
  reader_ = {};
  may_open_at_ = {};
}

Task<std::uint64_t> RemoteChanges::wait(std::string run, std::uint64_t seen, Duration most) {
  switch_to(std::move(run));
  const TimePoint until = Deadline::after(executor_.now(), most).when();
  while (changes_ == seen && executor_.now() < until) {
    if (stream_) {
      co_await read_stream(until);
      continue;
    }
    const bool opened = executor_.now() >= may_open_at_ && co_await open();
    if (!opened) co_await sleep_until(std::min(until, executor_.now() + kPollEvery));
    ++changes_;  // a change may have come before the stream opened; without a stream this is a poll
  }
  if (changes_ != seen && most > Duration::zero()) {
    co_await sleep_until(std::min(until, notified_at_ + kGather));
    notified_at_ = executor_.now();
  }
  co_return changes_;
}

Task<bool> RemoteChanges::open() {
  const TimePoint now = executor_.now();
  may_open_at_ = now + kReopenEvery;
  net::Ask ask = request_(run_);
  ask.headers.emplace_back("Accept", "text/event-stream");
  if (!reader_.last_id().empty()) ask.headers.emplace_back("Last-Event-ID", reader_.last_id());
  auto opened = co_await with_deadline(Deadline::after(now, kOpenMax), client_.open(std::move(ask)));
  if (!opened) co_return false;
  if (opened->head().status != kFound) {
    reader_ = {};  // the place to resume at may be the reason: events after it were deleted
    co_return false;
  }
  stream_.emplace(std::move(*opened));
  reader_.begin_anew();
  received_at_ = executor_.now();
  co_return true;
}

Task<> RemoteChanges::read_stream(TimePoint until) {
  const TimePoint patience = received_at_ + kSilenceMax;
  const auto bytes = co_await with_deadline(Deadline(std::min(until, patience)), stream_->next());
  const TimePoint now = executor_.now();
  if (bytes && !bytes->empty()) {
    received_at_ = now;
    if (reader_.feed(*bytes)) ++changes_;
    co_return;
  }
  if (!bytes && bytes.error() == Errc::timed_out && now < patience) co_return;
  stream_.reset();
  ++changes_;
}

}  // namespace stint::fleet
