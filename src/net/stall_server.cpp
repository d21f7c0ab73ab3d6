#include "net/stall_server.hpp"

#include "stint/assert.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace stint::net {
namespace {

constexpr std::size_t kPorts = 6;
constexpr int kStartMs = 60'000;  // openssl and Python on a loaded machine

std::int64_t number(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string_view word(std::string_view& line) {
  const std::string_view first = line.substr(0, line.find(' '));
  line.remove_prefix(std::min(line.size(), first.size() + 1));
  return first;
}

}  // namespace

StallServer::StallServer() {
  std::string pattern = (std::filesystem::temp_directory_path() / "stint-stall-XXXXXX").string();
  STINT_ASSERT(::mkdtemp(pattern.data()) != nullptr);
  folder_ = pattern;
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  STINT_ASSERT(::pipe2(in.data(), O_CLOEXEC) == 0 && ::pipe2(out.data(), O_CLOEXEC) == 0);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  std::array<std::string, 4> words = {STINT_PYTHON, "-B", STINT_STALL_SERVER, folder_};
  std::array<char*, 5> arguments = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), nullptr};
  STINT_ASSERT(::posix_spawn(&pid_, words[0].c_str(), &actions, nullptr, arguments.data(), environ) == 0);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(in[0]);
  ::close(out[1]);
  input_ = in[1];
  output_ = out[0];
  while (ports_.size() < kPorts) STINT_ASSERT(read_some(true) && "stall_server.py has not started");
}

StallServer::~StallServer() {
  ::close(input_);
  ::close(output_);
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

/// False if there was nothing, and at the end.
bool StallServer::read_some(bool wait) {
  pollfd ready{.fd = output_, .events = POLLIN, .revents = 0};
  if (::poll(&ready, 1, wait ? kStartMs : 0) != 1) return false;
  std::array<char, 65536> piece;
  const ssize_t count = ::read(output_, piece.data(), piece.size());
  if (count <= 0) return false;
  buffer_.append(piece.data(), static_cast<std::size_t>(count));
  std::size_t begin = 0;
  for (std::size_t end; (end = buffer_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    take(std::string_view(buffer_).substr(begin, end - begin));
  }
  buffer_.erase(0, begin);
  return true;
}

void StallServer::take(std::string_view line) {
  const std::string_view first = word(line);
  if (ports_.size() < kPorts) {
    ports_.emplace(first, static_cast<std::uint16_t>(number(line)));
    return;
  }
  Event event;
  event.when = std::chrono::steady_clock::time_point(std::chrono::nanoseconds(number(first)));
  event.connection = static_cast<int>(number(word(line)));
  event.stream = static_cast<int>(number(word(line)));
  event.what = line;
  events_.push_back(std::move(event));
}

const std::vector<StallServer::Event>& StallServer::events() {
  while (read_some(false)) continue;
  return events_;
}

std::size_t StallServer::count(std::string_view what) {
  return static_cast<std::size_t>(
      std::ranges::count_if(events(), [what](const Event& event) { return event.what.starts_with(what); }));
}

const StallServer::Event* StallServer::last(std::string_view what) {
  events();
  for (auto event = events_.rbegin(); event != events_.rend(); ++event) {
    if (event->what.starts_with(what)) return &*event;
  }
  return nullptr;
}

}  // namespace stint::net
