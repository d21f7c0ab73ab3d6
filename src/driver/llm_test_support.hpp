/// For tests of the driver `llm`: a provider in virtual time, replies that call tools, and tools as functions.
#pragma once

#include "driver/llm_driver.hpp"
#include "model/scripted_transport.hpp"
#include "stint/testing.hpp"

#include <boost/json/serialize.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace stint::driver {

/// One call that a scripted reply makes.
struct ScriptedCall {
  std::string id, name, arguments = "{}";
};

/// A reply of the `chat` dialect that says a text and calls tools.
inline model::ScriptedReply reply_with_calls(const std::string& text, const std::vector<ScriptedCall>& calls) {
  constexpr Duration kPieceTime = std::chrono::milliseconds(10);
  const std::string head =
      R"(data: {"id":"c1","object":"chat.completion.chunk","model":"test-1","choices":[{"index":0,)";
  model::ScriptedReply reply;
  if (!text.empty()) reply.pieces.push_back({kPieceTime, model::script_text(text)});
  for (std::size_t i = 0; i < calls.size(); ++i) {
    reply.pieces.push_back({kPieceTime, head + R"("delta":{"tool_calls":[{"index":)" + std::to_string(i) +
                                            R"(,"id":")" + calls[i].id + R"(","type":"function","function":{"name":")" +
                                            calls[i].name + R"(","arguments":)" +
                                            json::serialize(json::value(calls[i].arguments)) +
                                            R"(}}]},"finish_reason":null}]})"
                                            "\n\n"});
  }
  std::string end = model::script_end(100, 10);
  if (!calls.empty()) end.replace(end.find(R"("stop")"), 6, R"("tool_calls")");
  reply.pieces.push_back({kPieceTime, std::move(end)});
  return reply;
}

inline model::ScriptedReply reply_text(const std::vector<std::string>& pieces,
                                       Duration between = std::chrono::milliseconds(10)) {
  model::ScriptedReply reply;
  for (const std::string& piece : pieces) reply.pieces.push_back({between, model::script_text(piece)});
  reply.pieces.push_back({between, model::script_end(100, 10)});
  return reply;
}

/// What the tools of a test are, and which calls were made.
struct ScriptedToolbox {
  struct Tool {
    domain::ToolClass tool_class = domain::ToolClass::read;
    Duration time = std::chrono::milliseconds(10);
    bool hangs = false;
    ToolResult result{.text = "fine"};
  };
  std::map<std::string, Tool> tools;
  std::vector<std::string> begun;  ///< name and id of each call that was made
  int active = 0, active_most = 0;
};

/// Tools in virtual time, with the marks of ToolRunner.
class ScriptedTools final : public ToolBox {
 public:
  ScriptedTools(ScriptedToolbox& box, ToolRunner::Options options) : box_(box), options_(std::move(options)) {
    for (const auto& [name, tool] : box_.tools) {
      offers_.push_back(
          {.name = name, .description = "a tool", .input = {{"type", "object"}}, .tool_class = tool.tool_class});
    }
  }

  Task<> run() override {
    while (!closed_) co_await changed_.wait(changed_.count());
  }
  Task<Result<>> open() override { co_return Result<>(); }
  [[nodiscard]] const std::vector<ToolOffer>& offers() const noexcept override { return offers_; }
  [[nodiscard]] const std::vector<std::string>& notes() const noexcept override { return notes_; }
  Task<ToolResult> call(std::string name, std::string call_id, std::string) override {
    const ScriptedToolbox::Tool tool = box_.tools.at(name);
    const bool is_once = tool.tool_class == domain::ToolClass::once;
    if (is_once) {
      const Result<> marked = co_await options_.effects_unknown();
      if (!marked) co_return ToolResult{.text = "not run", .is_error = true, .state = ToolResult::State::not_started};
    }
    options_.on_start(call_id);
    const Active active(box_);
    box_.begun.push_back(name + " " + call_id);
    co_await sleep_for(tool.time);
    while (tool.hangs) co_await changed_.wait(changed_.count());
    if (is_once && tool.result.state != ToolResult::State::unknown) (void)co_await options_.effects_known();
    co_return tool.result;
  }
  void close() override {
    closed_ = true;
    changed_.notify();
  }

 private:
  struct Active {
    explicit Active(ScriptedToolbox& of) : box(of) { box.active_most = std::max(box.active_most, ++box.active); }
    ~Active() { --box.active; }
    Active(const Active&) = delete;
    Active& operator=(const Active&) = delete;
    ScriptedToolbox& box;
  };

  ScriptedToolbox& box_;
  const ToolRunner::Options options_;
  std::vector<ToolOffer> offers_;
  std::vector<std::string> notes_;
  Notification changed_;
  bool closed_ = false;
};

/// A driver with a scripted provider and scripted tools, under the simulator.
struct LlmWorld {
  explicit LlmWorld(model::ScriptedTransport::Script script) : transport(world.sim, std::move(script)) {}

  [[nodiscard]] domain::WorkOrder order(const std::string& run) const {
    domain::WorkOrder order;
    order.run = run;
    order.fence = domain::Fence{1};
    order.agent = "suite";
    order.spec.driver = "llm";
    order.spec.invocation.prompt = "do it";
    order.spec.endpoint.dialect = "chat";
    order.spec.endpoint.provider = "local";
    order.spec.endpoint.account = "account:local";
    order.spec.endpoint.model = "test-1";
    order.spec.endpoint.url = "http://localhost/" + run;
    order.spec.tools.resize(toolbox.tools.empty() ? 0 : 1);  // the toolbox has the real ones
    return order;
  }

  model::SimulatedSystem world{7};
  model::ScriptedTransport transport;
  model::Caller caller{transport, world.system};
  model::Upstreams upstreams{world.sim, world.system};
  ScriptedToolbox toolbox;
  LlmDriver driver{{.executor = world.sim,
                    .caller = caller,
                    .upstreams = upstreams,
                    .make_tools = [this](ToolRunner::Options options) -> std::unique_ptr<ToolBox> {
                      return std::make_unique<ScriptedTools>(toolbox, std::move(options));
                    }},
                   {}};
};

}  // namespace stint::driver
