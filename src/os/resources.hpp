/// Free resources of this host, and its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace stint::os {

/// MemAvailable of /proc/meminfo, in bytes; 0 if it cannot be read.
[[nodiscard]] std::uint64_t memory_available();

/// How many descriptors this process may have.
[[nodiscard]] std::size_t descriptors_max() noexcept;
/// An upper bound of the descriptors that this process has open: the size of the kernel's table, in one small read.
/// Returns the maximum if it can't be read.
[[nodiscard]] std::size_t descriptors_bound();
struct Descriptors {
  std::size_t used = 0, most = 0;
};
/// Of this process. Counts them: about 0.5 ms for a thousand.
[[nodiscard]] Descriptors blocking_descriptors();
/// Raises the limit to the maximum that the system allows.
void raise_descriptor_limit() noexcept;
/// The limit before that; 0: not raised. Started programs get this one, as some iterate over all possible
/// descriptors.
[[nodiscard]] std::uint64_t descriptor_limit_before() noexcept;
/// For a child before it executes.
void set_descriptor_limit(std::uint64_t limit) noexcept;

[[nodiscard]] std::string host_name();

}  // namespace stint::os
