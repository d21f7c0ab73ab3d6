#include "playground/observer.hpp"

#include "playground/line_watch.hpp"

#include <algorithm>
#include <utility>

namespace stint::playground {

std::string_view to_string(EventKind kind) noexcept {
  switch (kind) {
    case EventKind::waits: return "waits";
    case EventKind::granted: return "granted";
    case EventKind::released: return "released";
    case EventKind::left: return "left";
    case EventKind::refused: return "refused";
    case EventKind::resized: return "resized";
    case EventKind::closed: return "closed";
    case EventKind::made: return "made";
    case EventKind::reused: return "reused";
    case EventKind::discarded: return "discarded";
    case EventKind::token: return "token";
  }
  std::unreachable();
}

Observer::Observer() = default;
Observer::~Observer() = default;

void Observer::watch(const Semaphore& semaphore) { lines_.push_back(std::make_unique<LineWatch>(semaphore)); }
void Observer::watch(const Mutex& mutex) { lines_.push_back(std::make_unique<LineWatch>(mutex)); }
void Observer::watch(const ConnectionPool& pool, const Server& server) {
  watch(pool.places());
  lent_.push_back({&pool, pool.counts().reused});
  watch(server);
}
void Observer::watch(const Server& server) { counted_.push_back({&server, server.made(), server.discarded()}); }
void Observer::watch(const TokenMeter& meter) { meter_ = &meter; }

void Observer::replace(const Semaphore& semaphore) {
  for (const auto& line : lines_) {
    if (line->name() == semaphore.name()) line->look_at(semaphore);
  }
}

void Observer::failed(std::string task, const Error& error) {
  if (error == Errc::timed_out || error == Errc::cancelled) return;
  Event event;
  event.kind = EventKind::refused;
  event.task = std::move(task);
  event.detail = error.what();
  failures_.push_back(std::move(event));
}

void Observer::look(const Moment& moment) {
  const auto add = [&](Event event) {
    event.step = moment.step;
    event.at = moment.at;
    events_.push_back(std::move(event));
  };
  const auto times = [&](EventKind kind, const std::string& resource, std::uint64_t& seen, std::uint64_t now) {
    for (; seen < now; ++seen) add({.kind = kind, .resource = resource, .units = 1});
  };
  for (const auto& line : lines_) {
    line->look(moment.quiet, [&](EventKind kind, const std::string& task, std::uint32_t units) {
      add({.kind = kind, .task = task, .resource = line->name(), .units = units});
    });
  }
  for (Lent& lent : lent_) times(EventKind::reused, lent.pool->name(), lent.reused, lent.pool->counts().reused);
  for (Counted& counted : counted_) {
    times(EventKind::made, counted.server->name(), counted.made, counted.server->made());
    times(EventKind::discarded, counted.server->name(), counted.discarded, counted.server->discarded());
  }
  if (meter_ != nullptr) {
    for (; tokens_ < meter_->tokens(); ++tokens_) {
      const bool leaks = leaked_ < meter_->leaked();
      if (leaks) ++leaked_;
      add({.kind = EventKind::token, .units = 1, .detail = leaks ? "leaked" : ""});
    }
  }
  for (Event& failure : failures_) add(std::move(failure));
  failures_.clear();
}

}  // namespace stint::playground
