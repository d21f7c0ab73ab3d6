/// For tests: a process that no signal ends. A version-1 cgroup freezes it, which acts like an uninterruptible sleep.
#pragma once

#include "os/fd.hpp"

#include <poll.h>
#include <string>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

namespace stint::driver {

class Freezer {
 public:
  Freezer() : path_("/sys/fs/cgroup/freezer/stint-test-" + std::to_string(::getpid())) {
    made_ = ::mkdir(path_.c_str(), 0755) == 0;
  }
  ~Freezer() {
    thaw();
    // A process that was killed while it was frozen leaves the cgroup a moment after it is thawed.
    for (int tries = 0; made_ && tries < 200 && ::rmdir(path_.c_str()) != 0; ++tries) ::poll(nullptr, 0, 10);
  }
  Freezer(const Freezer&) = delete;
  Freezer& operator=(const Freezer&) = delete;

  [[nodiscard]] bool works() const noexcept { return made_; }
  void freeze(pid_t pid) const {
    os::write_kernel_file(path_ + "/cgroup.procs", std::to_string(pid));
    os::write_kernel_file(path_ + "/freezer.state", "FROZEN");
    while (os::read_small_file(path_ + "/freezer.state") != "FROZEN\n") {
    }
  }
  void thaw() const { os::write_kernel_file(path_ + "/freezer.state", "THAWED"); }

 private:
  std::string path_;
  bool made_ = false;
};

}  // namespace stint::driver
