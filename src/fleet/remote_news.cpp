#include "fleet/remote_news.hpp"

#include "stint/combinators.hpp"

#include <algorithm>

namespace stint::fleet {
namespace {

constexpr int kFound = 200;

}  // namespace

RemoteNews::RemoteNews(Executor& executor, net::HttpClient& client, Request request)
    : executor_(executor), client_(client), request_(std::move(request)) {}

void RemoteNews::turn_to(std::string run) {
  if (run == run_) return;
  run_ = std::move(run);
  stream_.reset();
  reader_ = {};
  may_open_at_ = {};
}

Task<std::uint64_t> RemoteNews::wait(std::string run, std::uint64_t seen, Duration most) {
  turn_to(std::move(run));
  const TimePoint until = Deadline::after(executor_.now(), most).when();
  while (news_ == seen && executor_.now() < until) {
    if (stream_) {
      co_await listen(until);
      continue;
    }
    const bool opened = executor_.now() >= may_open_at_ && co_await open();
    if (!opened) co_await sleep_until(std::min(until, executor_.now() + kPollEvery));
    ++news_;  // before a stream something may have come; without one it is looked for
  }
  if (news_ != seen && most > Duration::zero()) {
    co_await sleep_until(std::min(until, told_at_ + kGather));
    told_at_ = executor_.now();
  }
  co_return news_;
}

Task<bool> RemoteNews::open() {
  const TimePoint now = executor_.now();
  may_open_at_ = now + kReopenEvery;
  net::Ask ask = request_(run_);
  ask.headers.emplace_back("Accept", "text/event-stream");
  if (!reader_.last_id().empty()) ask.headers.emplace_back("Last-Event-ID", reader_.last_id());
  auto opened = co_await with_deadline(Deadline::after(now, kOpenMax), client_.open(std::move(ask)));
  if (!opened || opened->head().status != kFound) co_return false;
  stream_.emplace(std::move(*opened));
  reader_.begin_anew();
  heard_at_ = executor_.now();
  co_return true;
}

Task<> RemoteNews::listen(TimePoint until) {
  const TimePoint patience = heard_at_ + kSilenceMax;
  const auto bytes = co_await with_deadline(Deadline(std::min(until, patience)), stream_->next());
  const TimePoint now = executor_.now();
  if (bytes && !bytes->empty()) {
    heard_at_ = now;
    if (reader_.feed(*bytes)) ++news_;
    co_return;
  }
  if (!bytes && bytes.error() == Errc::timed_out && now < patience) co_return;
  stream_.reset();
  ++news_;
}

}  // namespace stint::fleet
