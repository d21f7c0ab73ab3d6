#include "driver/llm_driver.hpp"

#include <utility>

namespace stint::driver {
namespace {

/// The tools of one attempt, with the limit that they share.
class LimitedTools final : public ToolBox {
 public:
  LimitedTools(Wardens& wardens, net::HttpClient& http, ToolRunner::Options options)
      : limit_("tools", kToolsAtOnce), runner_({wardens, http, limit_}, std::move(options)) {}

  Task<> run() override { return runner_.run(); }
  Task<Result<>> open() override { return runner_.open(); }
  [[nodiscard]] const std::vector<ToolOffer>& offers() const noexcept override { return runner_.offers(); }
  [[nodiscard]] const std::vector<std::string>& notes() const noexcept override { return runner_.notes(); }
  Task<ToolResult> call(std::string name, std::string call_id, std::string arguments) override {
    return runner_.call(std::move(name), std::move(call_id), std::move(arguments));
  }
  void close() override { runner_.close(); }

 private:
  Semaphore limit_;
  ToolRunner runner_;
};

}  // namespace

Result<std::unique_ptr<domain::Work>> LlmDriver::begin(domain::WorkOrder order, domain::WorkContext& context) {
  auto work =
      std::make_unique<LlmWork>(LlmWork::Parts{parts_.executor, parts_.caller, parts_.upstreams, parts_.make_tools,
                                               parts_.survivors, context, works_, options_.mask, options_.on_output},
                                std::move(order));
  if (held_) work->hold(true);
  return work;
}

std::string LlmDriver::choose_conversation(const domain::WorkOrder& order) { return LlmWork::conversation_of(order); }

void LlmDriver::hold(bool held) {
  held_ = held;
  for (domain::Work* const work : works_) work->hold(held);
}

MakeTools make_tool_runners(Wardens& wardens, net::HttpClient& http) {
  return [&wardens, &http](ToolRunner::Options options) -> std::unique_ptr<ToolBox> {
    return std::make_unique<LimitedTools>(wardens, http, std::move(options));
  };
}

}  // namespace stint::driver
