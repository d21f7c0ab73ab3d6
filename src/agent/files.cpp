#include "agent/files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace stint::agent {
namespace {

namespace fs = std::filesystem;

/// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int number) noexcept : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const noexcept { return number_; }

 private:
  int number_;
};

std::unexpected<Error> refuse(const fs::path& path, std::string_view what, int error) {
  const Errc code = error == ENOENT || error == ENOTDIR ? Errc::unavailable
                    : error == EEXIST                   ? Errc::conflict
                    : error == EACCES || error == EPERM ? Errc::denied
                                                        : Errc::failed;
  return fail(code, fmt::format("{} {}: {}", what, path.string(), std::generic_category().message(error)));
}

Result<> write_all(const Descriptor& file, const fs::path& path, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return refuse(path, "can't write", errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<> make_folders(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) return refuse(path.parent_path(), "can't make the folder", error.value());
  return {};
}

}  // namespace

namespace {

/// Without O_NONBLOCK opening a pipe blocks until a writer opens it.
int open_to_read(const fs::path& path) noexcept {
  return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

Result<std::string> blocking_read_open_file(const Descriptor& file, const fs::path& path, std::size_t bytes_max) {
  if (file.get() < 0) return refuse(path, "can't read", errno);
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return refuse(path, "can't read", errno);
  if (!S_ISREG(status.st_mode)) {
    return fail(Errc::invalid, fmt::format("{} is {}, not a file", path.string(),
                                           S_ISDIR(status.st_mode) ? "a folder" : "a device or a pipe"));
  }
  std::string text;
  constexpr std::size_t kChunk = 64 * 1024;
  while (text.size() <= bytes_max) {
    const std::size_t have = text.size();
    text.resize(have + std::min(kChunk, bytes_max + 1 - have));
    const ssize_t got = ::read(file.get(), text.data() + have, text.size() - have);
    text.resize(have + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refuse(path, "can't read", errno);
    if (got == 0) return text;
  }
  return fail(Errc::invalid, fmt::format("{} is longer than {} bytes", path.string(), bytes_max));
}

}  // namespace

bool blocking_exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool is_within(const fs::path& root, const fs::path& path) {
  return std::ranges::mismatch(root, path).in1 == root.end();
}

Result<std::string> blocking_read_file(const fs::path& path, std::size_t bytes_max) {
  return blocking_read_open_file(Descriptor(open_to_read(path)), path, bytes_max);
}

Result<std::string> blocking_read_file_within(const fs::path& root, const fs::path& path, std::size_t bytes_max) {
  const Descriptor file(open_to_read(path));
  if (file.get() >= 0) {
    // Checks the opened file, not the path, which may point elsewhere by now.
    std::error_code error;
    const fs::path real = fs::read_symlink(fmt::format("/proc/self/fd/{}", file.get()), error);
    const fs::path real_root = error ? fs::path() : fs::canonical(root, error);
    if (error || !is_within(real_root, real)) {
      return fail(Errc::denied, fmt::format("{} links out of the checkout, to {}: it is not read", path.string(),
                                            error ? error.message() : real.string()));
    }
  }
  return blocking_read_open_file(file, path, bytes_max);
}

Result<> blocking_create_file(const fs::path& path, std::string_view text) {
  STINT_CHECK(make_folders(path));
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (file.get() < 0) return refuse(path, "can't make", errno);
  return write_all(file, path, text);
}

Result<> blocking_replace_private_file(const fs::path& path, std::string_view text) {
  STINT_CHECK(make_folders(path));
  std::string name = path.string() + ".XXXXXX";
  const Descriptor file(::mkostemp(name.data(), O_CLOEXEC));  // 0600
  if (file.get() < 0) return refuse(path, "can't make", errno);
  Result<> done = write_all(file, name, text);
  if (done && ::fsync(file.get()) != 0) done = refuse(name, "can't write", errno);
  if (done && ::rename(name.c_str(), path.c_str()) != 0) done = refuse(path, "can't replace", errno);
  if (!done) ::unlink(name.c_str());
  return done;
}

Result<FolderEntries> blocking_list_folder(const fs::path& path, std::size_t entries_max) {
  FolderEntries out;
  std::error_code error;
  fs::directory_iterator entry(path, error);
  if (error.value() == ENOENT) return out;
  if (error) return refuse(path, "can't list", error.value());
  for (; entry != fs::directory_iterator(); entry.increment(error)) {
    if (out.names.size() == entries_max) {
      out.more = true;
      break;
    }
    out.names.push_back(entry->path().filename().string());
  }
  if (error) return refuse(path, "can't list", error.value());
  std::ranges::sort(out.names);
  return out;
}

}  // namespace stint::agent
