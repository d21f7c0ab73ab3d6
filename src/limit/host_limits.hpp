/// Host limits on the reactor: `acquire` waits for several limits in sorted order, so that no two processes can
/// deadlock. A wait can be cancelled, which destroys its frames and so releases its ticket and slots, and it reports
/// why it waits. Own thread only; must outlive its waits.
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

/// The run that acquires permits.
struct Claimant {
  std::string run;                 ///< the mark that all its processes will carry
  std::string cgroup;              ///< of its processes; empty: none
  std::string label;               ///< for display
  std::vector<std::string> marks;  ///< the runs of which this process is a part: it inherits what they hold
};

class HostLimits {
 public:
  /// `use_inotify` false: poll, as on a host without inotify.
  HostLimits(Reactor& reactor, const domain::System& system, bool use_inotify = true)
      : reactor_(reactor), system_(system), notifier_(reactor, use_inotify) {}

  /// Called when a wait begins, when its reason changes, and with null when it is over.
  using Listener = std::function<void(const domain::WaitReason*)>;
  /// `Errc::timed_out` at the deadline, `Errc::full` if it may not wait: it then holds nothing.
  struct Options {
    Options() noexcept {}  // NOLINT: not an aggregate, so that it can be used in a co_await expression
    Deadline deadline;
    bool may_wait = true;
    Listener listener;
    std::function<void(domain::WaitReason)> on_refusal;  ///< called with the reason before it fails with one of the two
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
