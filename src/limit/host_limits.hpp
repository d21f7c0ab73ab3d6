/// Host limits on the reactor: `acquire` waits for several of them, in sorted order, so that no two processes can wait
/// for each other. A wait can be cancelled (its frames go, and with them the ticket and what it held) and shows why it
/// waits. Own thread only; must outlive its waits.
#pragma once

#include "domain/system.hpp"
#include "domain/wait_reason.hpp"
#include "limit/file_notifier.hpp"
#include "limit/host_wait.hpp"
#include "stint/task.hpp"

#include <functional>
#include <string>
#include <vector>

namespace stint::limit {

struct HostRequest {
  HostLimit limit;
  std::uint32_t weight = 1;
};

/// Whose permits they are.
struct Claimant {
  std::string run;     ///< the mark that all its processes will carry
  std::string cgroup;  ///< where they will live; empty: none
  std::string label;   ///< for people
  std::vector<std::string>
      marks;  ///< the runs that this process is itself a part of: what they hold is not asked again
};

class HostLimits {
 public:
  /// `use_inotify` false: poll, as where there is none.
  HostLimits(Reactor& reactor, const domain::System& system, bool use_inotify = true)
      : reactor_(reactor), system_(system), notifier_(reactor, use_inotify) {}

  /// Told when a wait begins, and when its reason changes; null when it is over.
  using Listener = std::function<void(const domain::WaitReason*)>;
  /// `Errc::timed_out` at the deadline, `Errc::full` if it may not wait: nothing is held then.
  struct Options {
    Options() noexcept {}  // NOLINT: not an aggregate, so that it may stand in a co_await expression
    Deadline deadline;
    bool may_wait = true;
    Listener listener;
    std::function<void(domain::WaitReason)> on_refusal;  ///< told why, before it fails with one of these two
  };
  Task<Result<HostPermit>> acquire(std::vector<HostRequest> requests, Claimant who, Options options = Options());

 private:
  Task<Result<HostPermit>> acquire_one(HostRequest request, const Claimant& who, const Options& options);
  Task<Result<HostWait>> join(const HostRequest& request, const Claimant& who, Deadline deadline);

  Reactor& reactor_;
  const domain::System& system_;
  FileNotifier notifier_;
};

}  // namespace stint::limit
