#include "os/memory.hpp"

#include "os/fd.hpp"

#include <charconv>

namespace stint::os {

std::uint64_t memory_available() {
  constexpr std::string_view kField = "MemAvailable:";
  const std::string table = read_small_file("/proc/meminfo");
  const auto at = table.find(kField);
  if (at == std::string::npos) return 0;
  const auto digits = table.find_first_not_of(' ', at + kField.size());
  if (digits == std::string::npos) return 0;
  std::uint64_t kilobytes = 0;
  std::from_chars(table.data() + digits, table.data() + table.size(), kilobytes);
  return kilobytes * 1024;
}

}  // namespace stint::os
