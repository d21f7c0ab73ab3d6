#include "os/resources.hpp"

#include "os/fd.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <dirent.h>
#include <limits>
#include <sys/resource.h>
#include <unistd.h>

namespace stint::os {

namespace {

/// The number behind `field` in a table of /proc; 0: it can't be read.
std::uint64_t value_in(const char* path, std::string_view field) {
  const std::string table = read_small_file(path);
  const auto at = table.find(field);
  if (at == std::string::npos) return 0;
  const auto digits = table.find_first_not_of(" \t", at + field.size());
  if (digits == std::string::npos) return 0;
  std::uint64_t value = 0;
  std::from_chars(table.data() + digits, table.data() + table.size(), value);
  return value;
}

}  // namespace

std::uint64_t memory_available() { return value_in("/proc/meminfo", "MemAvailable:") * 1024; }

std::size_t descriptors_max() noexcept {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

std::size_t descriptors_bound() {
  const std::size_t size = value_in("/proc/self/status", "FDSize:");
  return size == 0 ? std::numeric_limits<std::size_t>::max() : size;
}

Descriptors blocking_descriptors() {
  Descriptors found{.used = 0, .most = descriptors_max()};
  DIR* const folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) {
    found.used = found.most;
    return found;
  }
  while (::readdir(folder) != nullptr) ++found.used;
  ::closedir(folder);
  found.used -= std::min<std::size_t>(found.used, 3);  // ".", ".." and the folder itself
  return found;
}

namespace {

std::uint64_t limit_before = 0;

}  // namespace

void raise_descriptor_limit() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit_before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::uint64_t descriptor_limit_before() noexcept { return limit_before; }

void set_descriptor_limit(std::uint64_t limit) noexcept {
  rlimit now{};
  if (limit == 0 || ::getrlimit(RLIMIT_NOFILE, &now) != 0) return;
  now.rlim_cur = limit;
  ::setrlimit(RLIMIT_NOFILE, &now);
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string("localhost");
}

}  // namespace stint::os
