/// Follows the output of a run: from the two ends that the store keeps to a reader that has seen a part.
#pragma once

#include "fleet/fleet.hpp"
#include "stint/executor.hpp"

#include <functional>
#include <optional>
#include <string>

namespace stint::fleet {

/// Tracks how much of an output a reader has seen. Pure.
class OutputReader {
 public:
  struct Piece {
    std::uint64_t left_out = 0;  ///< bytes before the text that the store did not keep
    std::string text;
  };
  /// Returns what is new since the last call.
  [[nodiscard]] std::vector<Piece> take(const store::Output& output);
  /// The reader has seen `bytes` more that did not come through the store.
  void saw(std::size_t bytes) noexcept { seen_ += bytes; }

 private:
  std::uint64_t seen_ = 0;
};

/// "… 5000 bytes left out …"
[[nodiscard]] std::string left_out_text(std::uint64_t bytes);

/// A time in which a fleet does not answer a subscriber: its daemon may be restarting, or have stopped. Reports the
/// beginning and the end.
class Outage {
 public:
  static constexpr Duration kToleratedMax = std::chrono::seconds(30);

  using Say = std::function<void(const std::string&)>;
  Outage(const Executor& clock, Say say) : clock_(clock), say_(std::move(say)) {}
  /// True: retry. False: the error is final, or the outage has lasted kToleratedMax.
  [[nodiscard]] bool tolerate(const Error& error);
  void end();

 private:
  const Executor& clock_;
  const Say say_;
  std::optional<TimePoint> since_;
};

/// Passes everything the run prints to `out` (if set) until the run is at rest, and outages to `say`. Returns the run
/// at rest.
Task<Result<engine::RunView>> follow(Fleet& fleet, const Executor& clock, std::string id,
                                     std::function<void(const OutputReader::Piece&)> out, Outage::Say say);

}  // namespace stint::fleet
