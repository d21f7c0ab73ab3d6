// The driver `llm` with a scripted provider and scripted tools, in virtual time.
#include "driver/llm_test_support.hpp"
#include "driver_under_test.hpp"

#include <map>
#include <string>

namespace stint::conformance {
namespace {

using driver::reply_text;
using driver::reply_with_calls;
using model::ScriptedReply;

constexpr Duration kHangs = std::chrono::seconds(50);  // less than the limit of an idle stream
constexpr int kFloodPieces = 48;

ScriptedReply hanging_reply() {
  ScriptedReply reply = reply_text({"hanging"});
  reply.pieces.back().wait = kHangs;
  return reply;
}

ScriptedReply broken_reply() {
  ScriptedReply reply = reply_text({"half of an"});
  reply.pieces.pop_back();
  reply.breaks = Error(Errc::unavailable, Retry::unknown, "connection reset");
  return reply;
}

ScriptedReply withheld_reply() {
  ScriptedReply reply = reply_text({"I can't"});
  std::string& end = reply.pieces.back().bytes;
  end.replace(end.find(R"("stop")"), 6, R"("content_filter")");
  return reply;
}

ScriptedReply reply_of(Scenario scenario, bool has_results) {
  switch (scenario) {
    case Scenario::fails: return withheld_reply();
    case Scenario::breaks_off: return broken_reply();
    case Scenario::hangs:
    case Scenario::hangs_on: return hanging_reply();
    case Scenario::floods:
      return reply_text(std::vector<std::string>(kFloodPieces, std::string(kFloodBytes / kFloodPieces + 1, 'x')));
    case Scenario::uses_tool:
    case Scenario::is_denied:
      if (!has_results)
        return reply_with_calls("I look.", {{"call_1", scenario == Scenario::uses_tool ? "shell" : "rm"}});
      break;
    case Scenario::hangs_in_tool: return reply_with_calls("I look.", {{"call_1", "deploy"}});
    case Scenario::never_resumes:
    case Scenario::answers: break;
  }
  return reply_text({"all ", "is ", "well"});
}

class LlmSubject final : public DriverUnderTest {
 public:
  LlmSubject() {
    world_.toolbox.tools["shell"].tool_class = domain::ToolClass::once;
    world_.toolbox.tools["deploy"] = {.tool_class = domain::ToolClass::once, .hangs = true};
  }
  [[nodiscard]] Abilities abilities() const override {
    return {.conversations = true,
            .chooses_conversation = true,
            .keeps_messages = true,
            .usage = true,
            .tools = true,
            .marks_effects = true,
            .tool_spans = true,
            .model_spans = true,
            .virtual_time = true};
  }
  [[nodiscard]] Executor& executor() override { return world_.world.sim; }
  [[nodiscard]] domain::Driver& driver() override { return world_.driver; }
  [[nodiscard]] domain::WorkOrder order(Scenario scenario) override {
    domain::WorkOrder order = world_.order("suite" + std::to_string(++orders_));
    scenarios_[order.spec.endpoint.url] = scenario;
    return order;
  }
  [[nodiscard]] bool run_until(const std::function<bool()>& done) override { return world_.world.sim.run_until(done); }
  [[nodiscard]] std::string leftovers() override {
    std::string out;
    if (world_.transport.active != 0) out += std::to_string(world_.transport.active) + " open streams ";
    if (world_.toolbox.active != 0) out += std::to_string(world_.toolbox.active) + " tools";
    return out;
  }

 private:
  ScriptedReply reply(const model::WireRequest& request) const {
    for (const auto& [url, scenario] : scenarios_) {
      if (!request.url.starts_with(url + "/")) continue;
      return reply_of(scenario, request.body.contains(R"("role":"tool")"));
    }
    return model::refusal_with(404);
  }

  int orders_ = 0;
  std::map<std::string, Scenario> scenarios_;
  driver::LlmWorld world_{[this](const model::WireRequest& request) { return reply(request); }};
};

}  // namespace

std::unique_ptr<DriverUnderTest> make_llm_driver() { return std::make_unique<LlmSubject>(); }

}  // namespace stint::conformance
