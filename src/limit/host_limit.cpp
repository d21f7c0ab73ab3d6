#include "limit/host_limit.hpp"

#include "domain/agent.hpp"
#include "limit/line.hpp"
#include "os/fd.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace stint::limit {
namespace {

constexpr std::string_view kSlotEnding = ".lock";
constexpr std::size_t kNameShown = 40;  // shown bytes of a refused name

std::unexpected<Error> unusable(const HostLimit& limit, const std::filesystem::path& path, const std::string& why) {
  const bool agent = limit.name.starts_with("agent:");
  return fail(Errc::denied,
              "cannot use " + path.string() + " for the limit '" + limit.name + "': " + why + ". " +
                  (agent ? "Make it writable for your user"
                         : "Make it writable for your user, or set another with limits_dir in stint.toml or "
                           "STINT_LIMITS_DIR"));
}

}  // namespace

std::string HostLimit::stem() const {
  std::string stem = name.starts_with("agent:") ? name.substr(6) : name;
  std::ranges::replace(stem, ':', '.');
  return stem;
}
std::string HostLimit::slot_path(std::uint32_t index) const {
  return directory + "/" + stem() + "." + std::to_string(index) + std::string(kSlotEnding);
}
std::string HostLimit::line_path() const { return directory + "/" + stem() + ".line"; }
std::string HostLimit::capacity_path() const { return directory + "/" + stem() + ".capacity"; }

Result<> check_name(std::string_view name) {
  if (const std::string meant = domain::limit_of_file_name(name); !meant.empty() && domain::is_limit_name(name)) {
    return fail(Errc::invalid, "the limit is called '" + meant + "', not '" + std::string(name.substr(0, kNameShown)) +
                                   "': its files are named that way");
  }
  if (domain::is_limit_name(name)) return {};
  return fail(Errc::invalid,
              "'" + std::string(name.substr(0, kNameShown)) +
                  "' is not a valid limit name: use letters, digits, '.', '_', '-' and ':', at most 128 of "
                  "them, a letter or digit first");
}

Result<> check_capacity(std::string_view name, std::int64_t capacity) {
  if (capacity >= 1 && capacity <= std::int64_t{domain::kPermitsMax}) return {};
  return fail(Errc::invalid, std::string(name) + ": the capacity must be between 1 and " +
                                 std::to_string(domain::kPermitsMax) + ", not " + std::to_string(capacity));
}

std::optional<std::uint32_t> written_capacity(const HostLimit& limit) {
  const std::string text = os::read_small_file(limit.capacity_path());
  std::uint32_t resized = 0;
  std::from_chars(text.data(), text.data() + text.size(), resized);
  return resized > 0 ? std::optional(std::min(resized, domain::kPermitsMax)) : std::nullopt;
}

std::uint32_t capacity_now(const HostLimit& limit) { return written_capacity(limit).value_or(limit.capacity); }

Result<> resize(const HostLimit& limit, std::uint32_t capacity) {
  STINT_CHECK(check_name(limit.name));
  STINT_CHECK(check_capacity(limit.name, capacity));
  STINT_CHECK(make_directory(limit));
  const std::string fresh = limit.capacity_path() + "." + std::to_string(::getpid());
  {
    ::unlink(fresh.c_str());  // left by an earlier process with this pid, or placed by another program
    STINT_TRY(const os::Fd file, os::open_shared_file(fresh, limit.file_mode()));
    const std::string text = std::to_string(capacity) + "\n";
    if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
      Error error = os::system_error("cannot write " + fresh);
      ::unlink(fresh.c_str());
      return fail(std::move(error));
    }
  }
  if (::rename(fresh.c_str(), limit.capacity_path().c_str()) != 0) {
    return fail(os::system_error("cannot write " + limit.capacity_path()));
  }
  STINT_TRY(const Line line, Line::open(limit));
  line.notify();
  return {};
}

Result<bool> reset_capacity(const HostLimit& limit) {
  if (::unlink(limit.capacity_path().c_str()) != 0) {
    if (errno == ENOENT) return false;
    return fail(os::system_error("cannot remove " + limit.capacity_path()));
  }
  STINT_TRY(const Line line, Line::open(limit));
  line.notify();
  return true;
}

Result<> make_directory(const HostLimit& limit) {
  std::error_code error;
  // An agent's limit is in its checkout, two folders down. A deleted checkout must not reappear as an empty folder.
  const std::filesystem::path checkout = std::filesystem::path(limit.directory).parent_path().parent_path();
  if (limit.name.starts_with("agent:") && !std::filesystem::is_directory(checkout, error)) {
    return fail(Errc::unavailable, "cannot use the limit '" + limit.name + "': " + checkout.string() +
                                       " does not exist any more; its checkout was deleted or moved");
  }
  std::filesystem::create_directories(limit.directory, error);
  struct stat status{};
  if (!error && ::stat(limit.directory.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
      ::access(limit.directory.c_str(), W_OK | X_OK) == 0) {
    return {};
  }
  return unusable(limit, limit.directory, error ? error.message() : std::generic_category().message(errno));
}

Result<> check_usable(const HostLimit& limit) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path folder = limit.directory;
  while (!fs::exists(folder, error) && !error && folder.has_relative_path()) folder = folder.parent_path();
  if (error) return unusable(limit, folder, error.message());
  if (!fs::is_directory(folder, error)) return unusable(limit, folder, std::generic_category().message(ENOTDIR));
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    return unusable(limit, folder, std::generic_category().message(errno));
  std::vector<std::string> files{limit.line_path()};
  for (std::uint32_t i = 0; i < capacity_now(limit); ++i) files.push_back(limit.slot_path(i));
  for (const std::string& file : files) {
    if (::access(file.c_str(), R_OK | W_OK) != 0 && errno != ENOENT) {
      return unusable(limit, file, std::generic_category().message(errno));
    }
  }
  return {};
}

int slot_index(std::string_view file, std::string_view stem) noexcept {
  if (!file.starts_with(stem) || !file.ends_with(kSlotEnding)) return -1;
  file.remove_prefix(stem.size());
  if (!file.starts_with('.') || file.size() <= 1 + kSlotEnding.size()) return -1;
  const std::string_view digits = file.substr(1, file.size() - 1 - kSlotEnding.size());
  int index = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  return error == std::errc() && end == digits.data() + digits.size() ? index : -1;
}

}  // namespace stint::limit
