/// The runs of a fleet page by page, of several states at once.
#pragma once

#include "engine/fleet.hpp"

#include <string>
#include <vector>

namespace stint::cli {

/// `fleet` must outlive it. Own thread only.
class RunPages {
 public:
  static constexpr std::uint32_t kPage = 200;

  /// No states: any.
  RunPages(engine::Fleet& fleet, const std::vector<std::string>& states, std::string agent, std::string session);

  /// The newest of all, at most so many.
  Task<Result<std::vector<engine::RunView>>> newest(std::uint32_t most);
  /// The next page, newest first; it may be empty although there are more.
  Task<Result<std::vector<engine::RunView>>> next();
  [[nodiscard]] bool more() const noexcept { return more_; }
  [[nodiscard]] bool filtered() const noexcept {
    return !states_.empty() || !filter_.agent.empty() || !filter_.session.empty();
  }

 private:
  engine::Fleet& fleet_;
  std::vector<domain::RunState> states_;
  store::Filter filter_;
  bool more_ = true;
};

}  // namespace stint::cli
