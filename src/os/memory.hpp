/// How much memory the host could give to new processes now.
#pragma once

#include <cstdint>

namespace stint::os {

/// MemAvailable of /proc/meminfo, in bytes; 0 if it can't be read.
[[nodiscard]] std::uint64_t memory_available();

}  // namespace stint::os
