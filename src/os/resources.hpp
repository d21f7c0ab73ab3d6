/// What is left on this host, and its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace stint::os {

/// MemAvailable of /proc/meminfo, in bytes; 0 if it can't be read.
[[nodiscard]] std::uint64_t memory_available();

struct Descriptors {
  std::size_t used = 0, most = 0;
};
/// Of this process.
[[nodiscard]] Descriptors descriptors();
/// As many as the system lets us have.
void raise_descriptor_limit() noexcept;
/// How many it were before that; 0: it was not raised. Programs that we start get as many: some go through all of them.
[[nodiscard]] std::uint64_t descriptor_limit_before() noexcept;
/// For a child before it executes.
void set_descriptor_limit(std::uint64_t limit) noexcept;

[[nodiscard]] std::string host_name();

}  // namespace stint::os
