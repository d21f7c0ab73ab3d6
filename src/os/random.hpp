/// Random numbers of the kernel, good enough for keys. It is asked for many at once: a call for each would be a tenth
/// of what a run costs. Thread-safe: the reactor and the store's threads draw from the same one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace stint::os {

class Random {
 public:
  [[nodiscard]] std::uint64_t operator()();

 private:
  std::mutex mutex_;
  std::array<std::uint64_t, 32> numbers_{};
  std::size_t left_ = 0;
};

}  // namespace stint::os
