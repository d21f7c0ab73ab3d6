#include "os/random.hpp"

#include "stint/assert.hpp"

#include <cerrno>
#include <sys/random.h>

namespace stint::os {

std::uint64_t Random::operator()() {
  const std::lock_guard lock(mutex_);
  if (left_ == 0) {
    ssize_t got = 0;
    do {
      got = ::getrandom(numbers_.data(), sizeof numbers_, 0);  // up to 256 bytes are never split
    } while (got < 0 && errno == EINTR);
    STINT_ASSERT(got == static_cast<ssize_t>(sizeof numbers_));
    left_ = numbers_.size();
  }
  std::uint64_t& taken = numbers_[--left_];
  const std::uint64_t number = taken;
  taken = 0;  // it may be a key: no copy stays here
  return number;
}

}  // namespace stint::os
