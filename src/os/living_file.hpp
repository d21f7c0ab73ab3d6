/// A small file that counts as long as the process lives that wrote it. Its writer holds a lock on it, which the system
/// takes back however that process ends: a number of a process proves nothing, since the next one may get it.
#pragma once

#include "os/fd.hpp"
#include "stint/error.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace stint::os {

class LivingFile {
 public:
  static constexpr std::size_t kBytesMax = 64 << 10;

  /// Only its user can read it. Whoever reads it sees all of the text, and the lock; one that was there is replaced.
  static Result<LivingFile> blocking_write(std::string path, std::string_view text);
  LivingFile(LivingFile&&) noexcept = default;
  LivingFile& operator=(LivingFile&&) = delete;
  ~LivingFile();  // removes it

 private:
  LivingFile(std::string path, Fd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  Fd lock_;
};

/// What it says; none: nobody who lives has written it. Any number of processes may look at once.
[[nodiscard]] std::optional<std::string> blocking_read_living(const std::string& path);

}  // namespace stint::os
