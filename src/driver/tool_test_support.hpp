/// For tests of tools: a reactor with wardens, the scripted MCP server, and a check that no process is left.
#pragma once

#include "driver/mcp_connection.hpp"
#include "driver/tool_call.hpp"
#include "os/process.hpp"
#include "stint/asio.hpp"
#include "stint/combinators.hpp"
#include "stint/scope.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <unistd.h>
#include <vector>

namespace stint::driver {

class ToolTest : public testing::Test {
 protected:
  ToolTest() {
    os::become_subreaper();
    (void)std::signal(SIGPIPE, SIG_IGN);  // as `stint` does: a server may be gone when a call is written
    wardens_.emplace(reactor_);
    client_.emplace(reactor_);
    folder_ = std::filesystem::temp_directory_path() / ("stint-tools-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  ~ToolTest() override {
    client_.reset();
    wardens_.reset();  // a warden that has sent its report may still be exiting
    EXPECT_TRUE(os::marked(mark_).empty());
    for (const pid_t child : os::own_children()) {
      EXPECT_NE(std::ranges::find(children_before_, child), children_before_.end()) << child << " was not reaped";
    }
    std::filesystem::remove_all(folder_);
  }

  /// Runs until `body` and all that it spawned have ended.
  void play(const std::function<Task<>(Scope&)>& body) {
    RootScope scope(reactor_);
    scope.spawn(body(scope));
    EXPECT_TRUE(reactor_.run(scope));
  }
  /// Processes of tools and servers. A warden that has sent its report may still be exiting.
  [[nodiscard]] std::size_t living() const {
    const std::vector<os::Process> all = os::marked(mark_);
    return static_cast<std::size_t>(
        std::ranges::count_if(all, [](const os::Process& process) { return watched_by(process.pid).empty(); }));
  }
  /// A process that is exiting can no longer be told from a tool.
  void expect_gone() {
    play([this](Scope&) -> Task<> {
      for (int tries = 0; tries < 500 && living() > 0; ++tries) co_await sleep_for(std::chrono::milliseconds(10));
    });
    EXPECT_EQ(living(), 0U);
  }
  static std::vector<std::string> server_argv(const std::vector<std::string>& words) {
    std::vector<std::string> out{"python3", "-S", "-E", STINT_MCP_STAND_IN};
    out.insert(out.end(), words.begin(), words.end());
    return out;
  }
  ToolProcessOptions server(const std::vector<std::string>& words) {
    return {.command = server_argv(words),
            .run = mark_,
            .directory = {},
            .environment = {},
            .grace = std::chrono::milliseconds(200)};
  }
  [[nodiscard]] std::string log_option() const { return "log=" + log_file(); }
  [[nodiscard]] std::string log_file() const { return (folder_ / "log").string(); }
  [[nodiscard]] std::string logged() const {
    std::ifstream file(log_file());
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// Waits until the server's log has the text.
  Task<> until_logged(std::string text) {
    for (int tries = 0; tries < 500 && logged().find(text) == std::string::npos; ++tries) {
      co_await sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_NE(logged().find(text), std::string::npos) << text << " is not in:\n" << logged();
  }

  Reactor reactor_;
  const std::vector<pid_t> children_before_ = os::own_children();  // another suite of this program may leave some
  std::optional<Wardens> wardens_;
  std::optional<net::HttpClient> client_;
  std::filesystem::path folder_;
  std::string mark_ = "tool" + std::to_string(::getpid()) + ":1";
};

}  // namespace stint::driver
