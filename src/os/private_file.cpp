#include "os/private_file.hpp"

#include "os/fd.hpp"

#include <fcntl.h>
#include <sys/stat.h>
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

Result<std::string> blocking_read_private(const std::filesystem::path& path) {
  // O_NONBLOCK: a pipe in the place of the file must not hold this process up.
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return fail(system_error("cannot read " + path.string()));
  struct stat state{};
  if (::fstat(file.get(), &state) != 0) return fail(system_error("cannot read " + path.string()));
  if (!S_ISREG(state.st_mode)) return fail(Errc::denied, path.string() + " is not a regular file");
  if (state.st_uid != ::geteuid() && state.st_uid != 0) {
    return fail(Errc::denied, path.string() + " belongs to another user");
  }
  constexpr mode_t kOthers = S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH;
  if ((state.st_mode & kOthers) != 0) {
    return fail(Errc::denied, "other users can read or change " + path.string() + ": run chmod 600 on it");
  }
  std::string text(kPrivateFileMax + 1, '\0');
  const ssize_t size = ::read(file.get(), text.data(), text.size());
  if (size < 0) return fail(system_error("cannot read " + path.string()));
  if (static_cast<std::size_t>(size) > kPrivateFileMax) return fail(Errc::failed, path.string() + " is too large");
  text.resize(static_cast<std::size_t>(size));
  return text;
}

}  // namespace stint::os
