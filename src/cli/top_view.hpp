/// The screen of `stint top`, and what its keys do: the fleet, a selected run, a confirmation. Pure.
#pragma once

#include "cli/demo_text.hpp"
#include "engine/views.hpp"
#include "fleet/fleet.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::cli {

enum class Key : std::uint8_t { up, down, page_up, page_down, cancel, drain, yes, quit, other };

/// Turns bytes from a terminal into keys. Joins sequences that come in pieces; an unknown sequence is `other`.
class KeyReader {
 public:
  [[nodiscard]] std::vector<Key> add(std::string_view bytes);

 private:
  std::string held_;
};

/// The fleet's last answer.
struct TopFrame {
  engine::FleetStatus status;
  std::vector<engine::LimitView> limits;
  std::vector<engine::RunView> running, waiting;  ///< waiting: queued, parked, in doubt
  std::string where;
  bool daemon = false;
};

class TopView {
 public:
  enum class Act : std::uint8_t { none, quit, cancel, drain };
  struct Action {
    Act act = Act::none;
    std::string run;  ///< of a cancel
  };

  /// The selection stays on its run while that is listed.
  void update(TopFrame frame);
  /// Shows a message below the runs until the next one.
  void say(std::string message) { message_ = std::move(message); }
  [[nodiscard]] Action press(Key key);
  /// At most `rows` lines of `columns`.
  [[nodiscard]] std::vector<Line> draw(int columns, int rows, WallTime now);

 private:
  [[nodiscard]] std::vector<engine::RunView> runs() const;
  void move(std::int64_t by);
  [[nodiscard]] Line foot() const;
  [[nodiscard]] std::vector<Line> worker_lines() const;

  TopFrame frame_;
  std::string selected_;      // id; empty: the first
  std::size_t at_ = 0;        // row of the selection
  std::size_t first_ = 0;     // first run that is drawn
  std::size_t visible_ = 10;  // runs drawn last time
  Act asked_ = Act::none;     // waits for confirmation with y
  std::string asked_run_;
  std::string message_;
};

}  // namespace stint::cli
