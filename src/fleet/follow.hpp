/// What a run prints, as it comes: from the store's two ends of it to a reader that has seen a part.
#pragma once

#include "fleet/fleet.hpp"
#include "stint/executor.hpp"

#include <functional>
#include <optional>
#include <string>

namespace stint::fleet {

/// How much of an output somebody has seen. Pure.
class OutputReader {
 public:
  struct Piece {
    std::uint64_t left_out = 0;  ///< bytes before it that are gone, or were never kept
    std::string text;
  };
  /// What is new since the last call.
  [[nodiscard]] std::vector<Piece> take(const store::Output& output);
  /// So much more was seen on another way, before the store had it.
  void saw(std::size_t bytes) noexcept { seen_ += bytes; }

 private:
  std::uint64_t seen_ = 0;
};

/// "… 5000 bytes left out …"
[[nodiscard]] std::string left_out_text(std::uint64_t bytes);

/// A time in which a fleet does not answer whoever follows a run: its daemon may be starting again, or have stopped.
/// The beginning and the end of it are told.
class Outage {
 public:
  static constexpr Duration kBorneMax = std::chrono::seconds(30);

  using Say = std::function<void(const std::string&)>;
  Outage(const Executor& clock, Say say) : clock_(clock), say_(std::move(say)) {}
  /// True: it is worth asking again.
  [[nodiscard]] bool bear(const Error& error);
  void end();

 private:
  const Executor& clock_;
  const Say say_;
  std::optional<TimePoint> since_;
};

/// Gives `out`, if there is one, all that the run prints, until it is at rest, and `say` the outages. The run as it is
/// then.
Task<Result<engine::RunView>> follow(Fleet& fleet, const Executor& clock, std::string id,
                                     std::function<void(const OutputReader::Piece&)> out, Outage::Say say);

}  // namespace stint::fleet
