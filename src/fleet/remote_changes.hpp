/// Change notifications of a daemon, from its event stream (SSE) of one run or of all. An event only wakes the waiter,
/// which then re-reads the run. So nothing is missed or reported twice, whatever happens to the stream or the daemon.
///
/// Reopens a stream that breaks or is silent for too long, after the last event seen. Without a stream each wait
/// returns after kPollEvery as if there were a change: it degrades to polling.
///
/// Own thread only; one waiter at a time. Must be destroyed before its client.
#pragma once

#include "net/event_reader.hpp"
#include "net/http_client.hpp"
#include "stint/executor.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace stint::fleet {

class RemoteChanges {
 public:
  static constexpr Duration kPollEvery = std::chrono::milliseconds(250);  ///< without a stream
  static constexpr Duration kGather = std::chrono::milliseconds(50);      ///< at least between two notifications
  static constexpr Duration kReopenEvery = std::chrono::seconds(1);
  static constexpr Duration kOpenMax =
      std::chrono::seconds(1);  ///< also for a shorter wait: else no stream would ever open
  static constexpr Duration kSilenceMax = std::chrono::seconds(40);  ///< a daemon sends a heartbeat every 15 s

  /// The request for the event stream of a run, of all runs if `run` is empty.
  using Request = std::function<net::Ask(const std::string& run)>;
  RemoteChanges(Executor& executor, net::HttpClient& client, Request request);

  /// As `Fleet::changed`.
  Task<std::uint64_t> wait(std::string run, std::uint64_t seen, Duration most);

 private:
  void switch_to(std::string run);
  Task<bool> open();
  Task<> read_stream(TimePoint until);

  Executor& executor_;
  net::HttpClient& client_;
  const Request request_;
  std::string run_;
  std::optional<net::ReplyStream> stream_;
  net::EventReader reader_;
  std::uint64_t changes_ = 1;  // 0: the caller has seen nothing
  TimePoint notified_at_{}, received_at_{}, may_open_at_{};
};

}  // namespace stint::fleet
