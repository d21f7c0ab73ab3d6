#include "os/private_file.hpp"

#include "os/fd.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace stint::os {

Result<> blocking_write_private(const std::filesystem::path& path, const std::string& text) {
  const std::string aside = path.string() + "." + std::to_string(::getpid());
  const Fd file(::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return fail(system_error("cannot write " + aside));
  const bool written = ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!written || ::fsync(file.get()) != 0 || ::rename(aside.c_str(), path.c_str()) != 0) {
    const Error error = system_error("cannot write " + path.string());
    ::unlink(aside.c_str());
    return fail(error);
  }
  return {};
}

}  // namespace stint::os
