// Invariants:
// 1. A thread touches only its Link and the copies it was given. It posts under the link's lock, and only while the
//    lookup, and so its reactor, is alive.
// 2. A name that is `looking` is in `queued_` or on exactly one thread, and is not removed from `names_`.
#include "net/name_lookup.hpp"

#include "stint/asio.hpp"

#include <arpa/inet.h>
#include <mutex>
#include <netdb.h>
#include <system_error>
#include <thread>

namespace stint::net {

Result<Addresses> blocking_lookup(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found); error != 0) {
    return fail(Error(Errc::unavailable, Retry::safe, "can't resolve the name " + host + ": " + ::gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(found, &::freeaddrinfo);
  Addresses addresses;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    char text[INET6_ADDRSTRLEN] = "";
    if (each->ai_family == AF_INET) {
      ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(each->ai_addr)->sin_addr, text, sizeof(text));
    } else if (each->ai_family == AF_INET6) {
      ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(each->ai_addr)->sin6_addr, text, sizeof(text));
    }
    if (text[0] != '\0') addresses.emplace_back(text);
  }
  if (!addresses.empty()) return addresses;
  return fail(Error(Errc::unavailable, Retry::safe, "the name " + host + " has no address"));
}

struct NameLookup::Link {
  std::mutex mutex;
  NameLookup* lookup = nullptr;  // null: destroyed
};

NameLookup::NameLookup(Reactor& reactor, BlockingLookup lookup)
    : reactor_(reactor), lookup_(std::move(lookup)), link_(std::make_shared<Link>()) {
  link_->lookup = this;
}

NameLookup::~NameLookup() {
  const std::lock_guard lock(link_->mutex);
  link_->lookup = nullptr;
}

bool NameLookup::has_fresh(const Name& name) const {
  return !name.looking && name.answer && *name.answer && reactor_.now() - name.answered_at < kKept;
}

Task<Result<Addresses>> NameLookup::find(std::string host) {
  if (const auto known = names_.find(host); known != names_.end() && has_fresh(known->second)) {
    co_return *known->second.answer;
  }
  make_room();
  if (names_.size() >= kNamesMax && !names_.contains(host)) {
    co_return fail(
        Error(Errc::unavailable, Retry::safe, "too many names are being resolved: " + host + " has to wait"));
  }
  Name& name = names_[host];  // stays: it has a waiter
  const auto leave = [](Name* waited_for) { --waited_for->waiters; };
  ++name.waiters;
  const std::unique_ptr<Name, decltype(leave)> waiter(&name, leave);
  if (!name.looking) {
    name.looking = true;
    start(host);
  }
  while (name.looking) co_await changed_.wait(changed_.count());
  co_return *name.answer;
}

void NameLookup::start(const std::string& host) {
  if (running_ >= kThreadsMax) {
    queued_.push_back(host);
    return;
  }
  const auto look = [link = link_, lookup = lookup_, host, io = &reactor_.io()] {
    Result<Addresses> answer = lookup(host);
    const std::lock_guard lock(link->mutex);
    if (link->lookup == nullptr) return;
    asio::post(*io, [link, host, answer = std::move(answer)]() mutable {
      if (link->lookup != nullptr) link->lookup->answered(host, std::move(answer));
    });
  };
  ++running_;
  try {
    // Detached: it can't be interrupted, and neither a client nor the process must wait for it.
    std::thread(look).detach();
  } catch (const std::system_error&) {
    answered(host,
             fail(Error(Errc::unavailable, Retry::safe, "no thread could be started to resolve the name " + host)));
  }
}

void NameLookup::answered(const std::string& host, Result<Addresses> answer) {
  --running_;
  Name& name = names_.at(host);
  name.answer = std::move(answer);
  name.answered_at = reactor_.now();
  name.looking = false;
  changed_.notify();
  while (running_ < kThreadsMax && !queued_.empty()) {
    const std::string next = std::move(queued_.front());
    queued_.pop_front();
    Name& waiting = names_.at(next);
    if (waiting.waiters > 0) {
      start(next);
    } else {
      waiting.looking = false;
    }
  }
}

/// Forgets answers that no longer count; if that is not enough, every answer.
void NameLookup::make_room() {
  if (names_.size() < kNamesMax) return;
  std::erase_if(names_, [this](const auto& each) {
    return each.second.waiters == 0 && !each.second.looking && !has_fresh(each.second);
  });
  if (names_.size() < kNamesMax) return;
  std::erase_if(names_, [](const auto& each) { return each.second.waiters == 0 && !each.second.looking; });
}

}  // namespace stint::net
