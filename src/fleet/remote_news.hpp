/// The notification of a daemon: its stream of events, of one run or of all. What came is not looked at, only that
/// something did, and whoever waits for it asks for the rest. So nothing is missed or told twice, whatever becomes of
/// the stream, or of the daemon.
///
/// A stream that breaks, or is silent for too long, is opened again, and goes on after the last event that was seen.
/// As long as there is none, each wait ends after a moment, as if there were news: then it is a poll.
///
/// Own thread only; one waits at a time. Ends before its client.
#pragma once

#include "net/event_reader.hpp"
#include "net/http_client.hpp"
#include "stint/executor.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace stint::fleet {

class RemoteNews {
 public:
  static constexpr Duration kPollEvery = std::chrono::milliseconds(250);  ///< without a stream
  static constexpr Duration kGather = std::chrono::milliseconds(50);      ///< between two pieces of news
  static constexpr Duration kReopenEvery = std::chrono::seconds(1);
  static constexpr Duration kOpenMax = std::chrono::seconds(1);      ///< however short a wait is: else none would open
  static constexpr Duration kSilenceMax = std::chrono::seconds(40);  ///< a daemon says something every 15 s

  /// The request for the stream of a run, or of all if it is empty.
  using Request = std::function<net::Ask(const std::string& run)>;
  RemoteNews(Executor& executor, net::HttpClient& client, Request request);

  /// As `Fleet::changed`.
  Task<std::uint64_t> wait(std::string run, std::uint64_t seen, Duration most);

 private:
  void turn_to(std::string run);
  Task<bool> open();
  Task<> listen(TimePoint until);

  Executor& executor_;
  net::HttpClient& client_;
  const Request request_;
  std::string run_;
  std::optional<net::ReplyStream> stream_;
  net::EventReader reader_;
  std::uint64_t news_ = 1;  // 0 is who has seen nothing
  TimePoint told_at_{}, heard_at_{}, may_open_at_{};
};

}  // namespace stint::fleet
