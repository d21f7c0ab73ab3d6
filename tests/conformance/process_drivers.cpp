// The process driver under the suite: with a command, and with a stand-in for Claude Code that plays recorded streams.
#include "driver/process_driver.hpp"
#include "driver_under_test.hpp"
#include "os/process.hpp"
#include "os/test_folder.hpp"
#include "stint/asio.hpp"

#include <fmt/format.h>

#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <unistd.h>

namespace stint::conformance {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPatience = 60s, kWardenExit = 10s;

class ProcessSubject : public DriverUnderTest {
 public:
  ProcessSubject() {
    os::become_subreaper();
    driver::ProcessDriver::Options options;
    options.grace = 1h;  // what does not end by itself ends because the suite hurries, or its chain was stopped
    driver_.emplace(reactor_, std::move(options));
  }
  [[nodiscard]] Executor& executor() override { return reactor_; }
  [[nodiscard]] domain::Driver& driver() override { return *driver_; }
  [[nodiscard]] bool run_until(const std::function<bool()>& done) override {
    const TimePoint last = reactor_.now() + kPatience;
    reactor_.run_until([&] { return done() || reactor_.now() > last; });
    return done();
  }
  [[nodiscard]] std::string leftovers() override {
    // A warden that has reported the end may still be on its way out.
    const TimePoint last = reactor_.now() + kWardenExit;
    reactor_.run_until([&] { return os::marked(mark()).empty() || reactor_.now() > last; });
    const auto alive = os::marked(mark());
    return alive.empty() ? "" : fmt::format("{} processes", alive.size());
  }

 protected:
  [[nodiscard]] static std::string run_name() { return fmt::format("suite{}", ::getpid()); }
  [[nodiscard]] static std::string mark() { return run_name() + ":1"; }
  [[nodiscard]] static domain::WorkOrder marked_order(const std::string& stand_in) {
    domain::WorkOrder order;
    order.run = run_name();
    order.fence = 1;
    order.agent = "suite";
    order.spec.environment = {"STAND_IN=" + stand_in};
    return order;
  }

  Reactor reactor_;
  std::optional<driver::ProcessDriver> driver_;
};

/// Its output is the answer; it knows neither tools nor conversations nor tokens.
class CommandSubject final : public ProcessSubject {
 public:
  [[nodiscard]] Abilities abilities() const override { return {}; }
  [[nodiscard]] domain::WorkOrder order(Scenario scenario) override {
    domain::WorkOrder order = marked_order(settings(scenario));
    order.spec.driver = "command";
    order.spec.invocation.command = {"python3", "-S", "-E", STINT_STAND_IN};
    return order;
  }

 private:
  static std::string settings(Scenario scenario) {
    switch (scenario) {
      case Scenario::fails: return R"({"stdin": "none", "lines": ["no"], "stderr": "out of luck", "exit": 3})";
      case Scenario::breaks_off: return R"({"stdin": "none", "lines": ["up"], "signal": "KILL"})";
      case Scenario::hangs: return R"({"stdin": "none", "lines": ["hanging", "never"], "hang_after": 1})";
      case Scenario::hangs_on:
        return R"({"stdin": "none", "lines": ["hanging", "never"], "hang_after": 1, "ignore": ["TERM", "INT"]})";
      case Scenario::floods: return fmt::format(R"({{"stdin": "none", "flood": {}}})", kFloodBytes + 1000);
      default: return R"({"stdin": "none", "lines": ["all is well"]})";
    }
  }
};

class ClaudeSubject final : public ProcessSubject {
 public:
  [[nodiscard]] Abilities abilities() const override {
    return {.conversations = true, .chooses_conversation = true, .usage = true, .tools = true, .tool_spans = true};
  }
  [[nodiscard]] domain::WorkOrder order(Scenario scenario) override {
    domain::WorkOrder order = marked_order(settings(scenario));
    order.spec.driver = "claude";
    order.spec.invocation.program = STINT_STAND_IN;
    order.spec.invocation.prompt = "do it";
    return order;
  }

 private:
  static std::string play(std::string_view file, std::string_view more = "") {
    return fmt::format(R"({{"stream": "{}"{}}})", file, more);
  }
  static std::string recorded(std::string_view name) { return fmt::format("{}/claude/{}.jsonl", STINT_STREAMS, name); }
  [[nodiscard]] std::string settings(Scenario scenario) const {
    constexpr std::string_view kDeaf = R"(, "hang_after": 2, "interrupt": "ignore", "ignore": ["TERM", "INT"])";
    switch (scenario) {
      case Scenario::fails: return play(recorded("max_turns"));
      case Scenario::breaks_off: return play(half_of("tool"), R"(, "signal": "KILL")");
      case Scenario::hangs:
      case Scenario::hangs_in_tool: return play(recorded("tool"), R"(, "hang_after": 2)");
      case Scenario::hangs_on: return play(recorded("tool"), kDeaf);
      case Scenario::floods: return play(flood());
      case Scenario::uses_tool: return play(recorded("tool"));
      case Scenario::is_denied: return play(recorded("denied"));
      case Scenario::never_resumes: return play(recorded("unknown_conversation"), R"(, "exit": 1)");
      case Scenario::answers: break;
    }
    return play(recorded("success"));
  }
  /// A recorded stream up to its second line.
  [[nodiscard]] std::string half_of(std::string_view name) const {
    std::ifstream whole(recorded(name));
    std::string first, second;
    std::getline(whole, first);
    std::getline(whole, second);
    folder_.write("half.jsonl", first + "\n" + second + "\n");
    return folder_ / "half.jsonl";
  }
  /// Messages of 32 KiB.
  [[nodiscard]] std::string flood() const {
    const std::string text(32 << 10, 'x');
    std::string lines;
    for (std::size_t said = 0; said < kFloodBytes; said += text.size()) {
      lines += fmt::format(
          R"({{"type":"assistant","message":{{"id":"m{}","content":[{{"type":"text","text":"{}"}}]}}}})", said, text);
      lines += "\n";
    }
    lines += R"({"type":"result","subtype":"success","is_error":false,"result":"done"})";
    folder_.write("flood.jsonl", lines + "\n");
    return folder_ / "flood.jsonl";
  }

  os::TestFolder folder_;
};

}  // namespace

std::unique_ptr<DriverUnderTest> make_command_driver() { return std::make_unique<CommandSubject>(); }
std::unique_ptr<DriverUnderTest> make_claude_driver() { return std::make_unique<ClaudeSubject>(); }

}  // namespace stint::conformance
