/// What the ready runs of each agent have waited for, as this node saw it: the claim of a run takes it along, and the
/// run's timeline shows it. Pure; times are the executor's.
///
/// Two sources, never both at once for an agent: the line of a host limit in which the engine waits for the agent, and
/// the answers of the store, which names the limit that blocks an agent. What neither says is not known.
#pragma once

#include "domain/span.hpp"

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace stint::engine {

class LimitWaits {
 public:
  static constexpr std::size_t kWaitsMax = 16;  // of one agent; the oldest are forgotten
  /// The wait of an agent goes on if it is blocked by the same limit again within this time: the run ahead took the
  /// freed permit meanwhile, and the others stayed in line.
  static constexpr Duration kSameWait = std::chrono::seconds(1);

  /// The engine waits in the line of a host limit for the agent.
  void in_line(const std::string& agent, const std::string& limit, TimePoint now);
  void out_of_line(const std::string& agent, TimePoint now) { end(agent, now, true); }
  /// The store names the limit because of which no run of the agent may start. No effect while it is in line.
  void blocked(const std::string& agent, const std::string& limit, TimePoint now);
  void not_blocked(const std::string& agent, TimePoint now) { end(agent, now, false); }
  /// The engine does not ask the store for now.
  void stop_looking(TimePoint now);
  /// Agents without ready runs: what others waited for does not concern later ones.
  template <class IsReady>
  void keep_if(IsReady is_ready) {
    std::erase_if(agents_, [&](const auto& each) { return !is_ready(each.first) && !each.second.in_line; });
  }

  /// The oldest first.
  [[nodiscard]] std::vector<domain::LimitWait> of(const std::string& agent, TimePoint now) const;

 private:
  struct Wait {
    std::string limit;
    TimePoint since, until;
  };
  struct Agent {
    std::deque<Wait> waits;
    bool open = false;     // the last one goes on
    bool in_line = false;  // … in a line of the host
  };
  static void begin(Agent& agent, const std::string& limit, TimePoint now);
  static void close(Agent& agent, TimePoint now);
  void end(const std::string& agent, TimePoint now, bool in_line);

  std::map<std::string, Agent> agents_;
};

}  // namespace stint::engine
