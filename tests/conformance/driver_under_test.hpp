/// What the driver suite needs of an implementation: a driver, an order for each scenario, and a way to advance time.
/// To add a driver to the suite, write one such class and one line in driver_suite_test.cpp.
#pragma once

#include "domain/driver.hpp"
#include "stint/executor.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace stint::conformance {

/// What the agent of an attempt does.
enum class Scenario : std::uint8_t {
  answers,        ///< prints kAnswer and succeeds
  fails,          ///< gives up by itself
  breaks_off,     ///< ends without a result
  hangs,          ///< prints something, then nothing more; ends on the first end()
  hangs_on,       ///< the same, but ends only on the second end()
  floods,         ///< prints kFloodBytes, and succeeds
  uses_tool,      ///< calls a tool, and succeeds
  hangs_in_tool,  ///< calls a tool whose effects must not be repeated, and that does not return
  is_denied,      ///< tries to call a tool that it may not call
  never_resumes,  ///< does not have the conversation to continue
};
inline constexpr std::size_t kFloodBytes = 3U << 20;

/// Optional abilities: the suite checks them only for drivers that claim them.
struct Abilities {
  bool conversations = false;         ///< names a conversation, and continues one
  bool chooses_conversation = false;  ///< its id can be chosen before the attempt begins
  bool keeps_messages = false;        ///< keeps its conversation in the store, message by message
  bool usage = false;                 ///< reports tokens
  bool tools = false;                 ///< reports tools, and refused ones
  bool marks_effects = false;         ///< announces calls whose effects must not be repeated
  bool tool_spans = false;            ///< reports the span of a tool when it ends
  bool model_spans = false;           ///< reports the span of a model call, with its usage
  bool virtual_time = false;          ///< runs under the simulator
};

class DriverUnderTest {
 public:
  DriverUnderTest() = default;
  virtual ~DriverUnderTest() = default;
  DriverUnderTest(const DriverUnderTest&) = delete;
  DriverUnderTest& operator=(const DriverUnderTest&) = delete;

  [[nodiscard]] virtual Abilities abilities() const = 0;
  [[nodiscard]] virtual Executor& executor() = 0;
  [[nodiscard]] virtual domain::Driver& driver() = 0;
  [[nodiscard]] virtual domain::WorkOrder order(Scenario scenario) = 0;
  /// Runs until `done`. False: nothing is left to run, or it took too long.
  [[nodiscard]] virtual bool run_until(const std::function<bool()>& done) = 0;
  /// What is still alive of the works, for people; empty: nothing.
  [[nodiscard]] virtual std::string leftovers() = 0;
};

using MakeDriver = std::unique_ptr<DriverUnderTest> (*)();

std::unique_ptr<DriverUnderTest> make_command_driver();
std::unique_ptr<DriverUnderTest> make_claude_driver();
std::unique_ptr<DriverUnderTest> make_codex_driver();
std::unique_ptr<DriverUnderTest> make_gemini_driver();
std::unique_ptr<DriverUnderTest> make_llm_driver();
std::unique_ptr<DriverUnderTest> make_scripted_llm();

}  // namespace stint::conformance
