#include "cli/output_buffer.hpp"

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

class OutputBufferTest : public testing::Test {
 protected:
  OutputBufferTest() {
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
  /// Runs the buffer beside `act` until everything is written.
  void drain(OutputBuffer& buffer, Task<> act) {
    auto body = [&](Scope& scope) -> Task<> {
      scope.spawn(buffer.run());
      scope.spawn(std::move(act));
      co_await buffer.drained();
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

TEST_F(OutputBufferTest, writes_at_once_what_the_reader_takes) {
  OutputBuffer buffer(writer_.get());
  buffer.put("hello ");
  buffer.put("world");
  EXPECT_EQ(read_some(), "hello world");
}

TEST_F(OutputBufferTest, keeps_the_rest_in_order_and_signals_back_pressure) {
  OutputBuffer buffer(writer_.get());
  std::vector<bool> signalled;
  buffer.on_full([&](bool full) { signalled.push_back(full); });
  std::string said, seen;
  while (signalled.empty()) {
    const std::string line = std::to_string(said.size()) + "\n";
    said += line;
    buffer.put(line);
  }
  EXPECT_GT(said.size(), OutputBuffer::kFull);
  const auto take = [&]() -> Task<> {
    while (seen.size() < said.size()) {
      seen += read_some();
      co_await sleep_for(std::chrono::milliseconds(1));
    }
  };
  drain(buffer, take());
  while (seen.size() < said.size()) seen += read_some();
  EXPECT_TRUE(seen == said);
  EXPECT_EQ(signalled, (std::vector<bool>{true, false}));
}

TEST_F(OutputBufferTest, does_not_wait_for_a_reader_that_is_gone) {
  OutputBuffer buffer(writer_.get());
  buffer.put(std::string(1 << 20, 'x'));
  const auto leave = [&]() -> Task<> {
    reader_.reset();
    co_return;
  };
  drain(buffer, leave());
  buffer.put("lost");
}

}  // namespace
}  // namespace stint::cli
