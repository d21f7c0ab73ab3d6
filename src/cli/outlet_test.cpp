#include "cli/outlet.hpp"

#include "os/fd.hpp"
#include "stint/asio.hpp"
#include "stint/combinators.hpp"
#include "stint/scope.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <fcntl.h>
#include <unistd.h>
#include <vector>

namespace stint::cli {
namespace {

class OutletTest : public testing::Test {
 protected:
  OutletTest() {
    ::signal(SIGPIPE, SIG_IGN);
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    reader_ = os::Fd(ends[0]);
    writer_ = os::Fd(ends[1]);
  }
  std::string read_some() {
    std::string text(64 << 10, '\0');
    const ssize_t got = ::read(reader_.get(), text.data(), text.size());
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
  }
  /// Lets it write, with `act` beside it, until all is written.
  void drain(Outlet& outlet, Task<> act) {
    auto body = [&](Scope& scope) -> Task<> {
      scope.spawn(outlet.run());
      scope.spawn(std::move(act));
      co_await outlet.drained();
      scope.cancel();
    };
    auto all = [&]() -> Task<> { (void)co_await with_scope(std::ref(body)); };
    RootScope scope(reactor_);
    scope.spawn(all());
    EXPECT_TRUE(reactor_.run(scope));
  }

  Reactor reactor_;
  os::Fd reader_, writer_;
};

TEST_F(OutletTest, what_is_taken_at_once_is_written_at_once) {
  Outlet outlet(writer_.get());
  outlet.put("hello ");
  outlet.put("world");
  EXPECT_EQ(read_some(), "hello world");
}

TEST_F(OutletTest, what_is_not_taken_is_kept_in_order_and_who_says_more_is_told) {
  Outlet outlet(writer_.get());
  std::vector<bool> told;
  outlet.on_full([&](bool full) { told.push_back(full); });
  std::string said, seen;
  while (told.empty()) {
    const std::string line = std::to_string(said.size()) + "\n";
    said += line;
    outlet.put(line);
  }
  EXPECT_GT(said.size(), Outlet::kFull);
  const auto take = [&]() -> Task<> {
    while (seen.size() < said.size()) {
      seen += read_some();
      co_await sleep_for(std::chrono::milliseconds(1));
    }
  };
  drain(outlet, take());
  while (seen.size() < said.size()) seen += read_some();
  EXPECT_TRUE(seen == said);
  EXPECT_EQ(told, (std::vector<bool>{true, false}));
}

TEST_F(OutletTest, a_reader_who_is_gone_is_waited_for_by_nobody) {
  Outlet outlet(writer_.get());
  outlet.put(std::string(1 << 20, 'x'));
  const auto leave = [&]() -> Task<> {
    reader_.reset();
    co_return;
  };
  drain(outlet, leave());
  outlet.put("for nobody");
}

}  // namespace
}  // namespace stint::cli
