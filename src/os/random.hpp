/// Random numbers of the kernel, suitable for keys. Reads many at once: a call for each would be a tenth of the cost
/// of a run. Thread-safe: the reactor and the store's threads share one instance.
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
