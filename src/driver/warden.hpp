/// The warden: a small process, this same binary started with kWardenArgument or a copy of Stint's process, that is the
/// parent of one command. It holds the command's slots, and releases them only when the command and all its descendants
/// are gone. It ends them on an order, when Stint dies (the control socket closes) or freezes (no heartbeat within the
/// lease). Stint holds the same slots and is a subreaper, too: either of the two may be killed at any moment, and the
/// other ends what is left, then frees the slots. If both are killed, the slots' records remain (os/slot_file.hpp).
#pragma once

#include "stint/time.hpp"

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

namespace stint::driver {

inline constexpr char kWardenArgument[] = "__warden";

/// An order from Stint to the warden: one packet on the control socket.
struct Order {
  enum Kind : std::int32_t { beat, pause, end } kind;
  std::int32_t signal;
};

/// The warden's report to Stint, sent once, when no process is left.
struct WardenReport {
  std::int32_t start_errno = 0;  ///< not 0: the command could not be started
  std::int32_t wait_status = 0;  ///< of the command itself
  bool by_lease = false;         ///< ended because no heartbeat came within the lease
  bool by_stint = false;         ///< the warden was killed or frozen, and Stint ended the command: status unknown
  bool out_of_memory = false;    ///< the kernel killed a process of it because memory ran out
  std::uint32_t processes = 0;   ///< how many had to be ended
  std::int64_t ending_us = 0;    ///< from the first signal, or the command's own end, until the last was reaped
};

/// The options of the warden, passed on its command line before the command.
struct WardenPlan {
  int control = -1;
  std::vector<int> slots;
  Duration lease{};
  Duration grace{};
  std::string run;
  std::string cgroup;
  std::uint64_t descriptors = 0;  ///< descriptor limit of the command; 0: that of the warden
  bool own_group = false;         ///< the command leads its own process group; false: it stays in the caller's
};
[[nodiscard]] std::vector<std::string> to_arguments(const WardenPlan& plan);
/// The mark of the command that a warden watches, read from its command line; empty if the process is not a warden.
[[nodiscard]] std::string watched_by(pid_t pid);

/// main() of the warden; `arguments` begin after kWardenArgument.
int warden_main(const std::vector<std::string>& arguments);

}  // namespace stint::driver
