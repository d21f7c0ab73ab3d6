#include "os/presence_file.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace stint::os {

Result<PresenceFile> PresenceFile::blocking_write(std::string path, std::string_view text) {
  const std::string aside = path + ".new";
  ::unlink(aside.c_str());
  Fd file(::open(aside.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return fail(system_error("cannot write " + aside));
  const bool whole = ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!whole || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0 || ::rename(aside.c_str(), path.c_str()) != 0) {
    const Error error = system_error("cannot write " + path);
    ::unlink(aside.c_str());
    return fail(error);
  }
  return PresenceFile(std::move(path), std::move(file));
}

PresenceFile::~PresenceFile() {
  if (lock_) ::unlink(path_.c_str());
}

std::optional<std::string> blocking_read_presence(const std::string& path) {
  const Fd file = open_to_look(path);
  if (!file) return std::nullopt;
  // Shared, so that two readers do not take each other for the writer.
  if (::flock(file.get(), LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) return std::nullopt;
  std::string text(PresenceFile::kBytesMax, '\0');
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), 0);
  if (got < 0) return std::nullopt;
  text.resize(static_cast<std::size_t>(got));
  return text;
}

}  // namespace stint::os
