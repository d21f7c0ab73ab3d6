// The process drivers under the suite, through the router as in the program: a command, and stand-ins for the agent
// CLIs that play streams.
#include "driver/driver_router.hpp"
#include "driver_under_test.hpp"
#include "os/process.hpp"
#include "os/test_folder.hpp"
#include "stint/asio.hpp"
#include "stint/scope.hpp"

#include <fmt/format.h>

#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <unistd.h>

namespace stint::conformance {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPatience = 60s, kWardenExit = 10s, kLook = 2ms;

class ProcessSubject : public DriverUnderTest {
 public:
  ProcessSubject() {
    os::become_subreaper();
    driver::ProcessDriver::Options options;
    options.grace = 1h;  // a process that does not end by itself ends only by a second end() or a stopped chain
    driver_.emplace(reactor_, std::move(options));
  }
  [[nodiscard]] Executor& executor() override { return reactor_; }
  [[nodiscard]] domain::Driver& driver() override { return *driver_; }
  [[nodiscard]] bool run_until(const std::function<bool()>& done) override {
    look_until(done, kPatience);
    return done();
  }
  [[nodiscard]] std::string leftovers() override {
    // A warden that has sent its report may still be exiting, and its exit wakes no descriptor.
    look_until([] { return os::marked(mark()).empty(); }, kWardenExit);
    const auto alive = os::marked(mark());
    return alive.empty() ? "" : fmt::format("{} processes", alive.size());
  }

 protected:
  /// Looks every few milliseconds: not every change wakes the reactor.
  void look_until(const std::function<bool()>& done, Duration most) {
    const TimePoint last = reactor_.now() + most;
    auto look = [&]() -> Task<> {
      while (!done() && reactor_.now() < last) co_await sleep_for(kLook);
    };
    RootScope scope(reactor_);
    scope.spawn(look());
    reactor_.run_until([&] { return scope.idle(); });
  }
  [[nodiscard]] static std::string run_name() { return fmt::format("suite{}", ::getpid()); }
  [[nodiscard]] static std::string mark() { return run_name() + ":1"; }
  [[nodiscard]] static domain::WorkOrder marked_order(const std::string& stand_in) {
    domain::WorkOrder order;
    order.run = run_name();
    order.fence = domain::Fence{1};
    order.agent = "suite";
    order.spec.environment = {"STAND_IN=" + stand_in};
    return order;
  }

  Reactor reactor_;
  std::optional<driver::DriverRouter> driver_;
};

/// A command: its output is the answer; it has neither tools nor conversations nor tokens.
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

/// An agent CLI whose stand-in plays streams: recorded ones, and lines that its dialect can't have recorded.
class CliSubject : public ProcessSubject {
 public:
  explicit CliSubject(std::string_view name) : name_(name) {}
  [[nodiscard]] domain::WorkOrder order(Scenario scenario) override {
    domain::WorkOrder order = marked_order(settings(scenario));
    order.spec.driver = name_;
    order.spec.invocation.program = STINT_STAND_IN;
    order.spec.invocation.prompt = "do it";
    return order;
  }

 protected:
  static std::string play(std::string_view file, std::string_view more = "") {
    return fmt::format(R"({{"stream": "{}"{}}})", file, more);
  }
  [[nodiscard]] std::string recorded(std::string_view name) const {
    return fmt::format("{}/{}/{}.jsonl", STINT_STREAMS, name_, name);
  }
  /// A recorded stream up to its second line.
  [[nodiscard]] std::string half_of(std::string_view name) const {
    std::ifstream whole(recorded(name));
    std::string first, second;
    std::getline(whole, first);
    std::getline(whole, second);
    return written("half.jsonl", first + "\n" + second + "\n");
  }
  /// Messages of 32 KiB, each in a line that `make_line` writes, and the last line of a success.
  template <class MakeLine>
  [[nodiscard]] std::string flood(const MakeLine& make_line, std::string_view last) const {
    const std::string text(32 << 10, 'x');
    std::string lines;
    for (std::size_t said = 0; said < kFloodBytes; said += text.size()) lines += make_line(said, text) + "\n";
    return written("flood.jsonl", lines + std::string(last) + "\n");
  }
  [[nodiscard]] std::string written(const std::string& name, const std::string& text) const {
    folder_.write(name, text);
    return folder_ / name;
  }
  [[nodiscard]] virtual std::string settings(Scenario scenario) const = 0;

 private:
  const std::string name_;
  os::TestFolder folder_;
};

class ClaudeSubject final : public CliSubject {
 public:
  ClaudeSubject() : CliSubject("claude") {}
  [[nodiscard]] Abilities abilities() const override {
    return {.conversations = true, .chooses_conversation = true, .usage = true, .tools = true, .tool_spans = true};
  }

 private:
  [[nodiscard]] std::string settings(Scenario scenario) const override {
    constexpr std::string_view kDeaf = R"(, "hang_after": 2, "interrupt": "ignore", "ignore": ["TERM", "INT"])";
    switch (scenario) {
      case Scenario::fails: return play(recorded("max_turns"));
      case Scenario::breaks_off: return play(half_of("tool"), R"(, "signal": "KILL")");
      case Scenario::hangs:
      case Scenario::hangs_in_tool: return play(recorded("tool"), R"(, "hang_after": 2)");
      case Scenario::hangs_on: return play(recorded("tool"), kDeaf);
      case Scenario::floods: return play(flood(message, kDone));
      case Scenario::uses_tool: return play(recorded("tool"));
      case Scenario::is_denied: return play(recorded("denied"));
      case Scenario::never_resumes: return play(recorded("unknown_conversation"), R"(, "exit": 1)");
      case Scenario::answers: break;
    }
    return play(recorded("success"));
  }
  static constexpr std::string_view kDone = R"({"type":"result","subtype":"success","is_error":false,"result":"done"})";
  static std::string message(std::size_t id, const std::string& text) {
    return fmt::format(R"({{"type":"assistant","message":{{"id":"m{}","content":[{{"type":"text","text":"{}"}}]}}}})",
                       id, text);
  }
};

/// It chooses its conversations itself, and is asked to end by SIGINT.
class CodexSubject final : public CliSubject {
 public:
  CodexSubject() : CliSubject("codex") {}
  [[nodiscard]] Abilities abilities() const override {
    return {.conversations = true, .usage = true, .tools = true, .tool_spans = true};
  }

 private:
  [[nodiscard]] std::string settings(Scenario scenario) const override {
    switch (scenario) {
      case Scenario::fails:
        return play(written("fails.jsonl", fmt::format("{}\n{}\n", kBegun, kGaveUp)), R"(, "exit": 1)");
      case Scenario::breaks_off: return play(half_of("tool"), R"(, "signal": "KILL")");
      case Scenario::hangs:
      case Scenario::hangs_in_tool: return play(recorded("tool"), R"(, "hang_after": 3)");
      case Scenario::hangs_on: return play(recorded("tool"), R"(, "hang_after": 3, "ignore": ["TERM", "INT"])");
      case Scenario::floods: return play(flood(message, kDone));
      case Scenario::uses_tool: return play(recorded("tool"));
      case Scenario::is_denied:
        return play(written("denied.jsonl", fmt::format("{}\n{}\n{}\n", kBegun, kRefused, kDone)));
      case Scenario::never_resumes:
      case Scenario::answers: break;
    }
    return play(recorded("success"));
  }
  static constexpr std::string_view kBegun = R"({"type":"turn.started"})";
  static constexpr std::string_view kGaveUp = R"({"type":"turn.failed","error":{"message":"the model gave up"}})";
  static constexpr std::string_view kRefused =
      R"({"type":"item.completed","item":{"type":"command_execution","command":"touch x",)"
      R"("aggregated_output":"touch: Read-only file system","exit_code":1}})";
  static constexpr std::string_view kDone =
      R"({"type":"turn.completed","usage":{"input_tokens":10,"output_tokens":2}})";
  static std::string message(std::size_t id, const std::string& text) {
    return fmt::format(R"({{"type":"item.completed","item":{{"id":"i{}","type":"agent_message","text":"{}"}}}})", id,
                       text);
  }
};

/// The same, and its text comes in deltas.
class GeminiSubject final : public CliSubject {
 public:
  GeminiSubject() : CliSubject("gemini") {}
  [[nodiscard]] Abilities abilities() const override {
    return {.conversations = true, .usage = true, .tools = true, .tool_spans = true};
  }

 private:
  [[nodiscard]] std::string settings(Scenario scenario) const override {
    switch (scenario) {
      case Scenario::fails: return play(recorded("loop"));
      case Scenario::breaks_off: return play(half_of("tool"), R"(, "signal": "KILL")");
      case Scenario::hangs:
      case Scenario::hangs_in_tool: return play(recorded("tool"), R"(, "hang_after": 3)");
      case Scenario::hangs_on: return play(recorded("tool"), R"(, "hang_after": 3, "ignore": ["TERM", "INT"])");
      case Scenario::floods: return play(flood(message, kDone));
      case Scenario::uses_tool: return play(recorded("tool"));
      case Scenario::is_denied: return play(recorded("denied"));
      case Scenario::never_resumes:
      case Scenario::answers: break;
    }
    return play(recorded("success"));
  }
  static constexpr std::string_view kDone =
      R"({"type":"result","status":"success","stats":{"input_tokens":10,"output_tokens":2}})";
  static std::string message(std::size_t, const std::string& text) {
    return fmt::format(R"({{"type":"message","role":"assistant","content":"{}","delta":true}})", text);
  }
};

}  // namespace

std::unique_ptr<DriverUnderTest> make_command_driver() { return std::make_unique<CommandSubject>(); }
std::unique_ptr<DriverUnderTest> make_claude_driver() { return std::make_unique<ClaudeSubject>(); }
std::unique_ptr<DriverUnderTest> make_codex_driver() { return std::make_unique<CodexSubject>(); }
std::unique_ptr<DriverUnderTest> make_gemini_driver() { return std::make_unique<GeminiSubject>(); }

}  // namespace stint::conformance
