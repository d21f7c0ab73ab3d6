/// The driver whose agents are conversations that Stint itself carries with a model: no CLI, no process but those of
/// tools. Own thread only; outlives the works that it began.
#pragma once

#include "domain/driver.hpp"
#include "driver/llm_work.hpp"
#include "driver/secret_mask.hpp"
#include "driver/tool_call.hpp"
#include "model/caller.hpp"
#include "model/upstreams.hpp"

#include <functional>
#include <memory>
#include <set>
#include <string>

namespace stint::driver {

class LlmDriver final : public domain::Driver {
 public:
  static constexpr std::string_view kName = "llm";

  struct Parts {
    Executor& executor;
    model::Caller& caller;
    model::Upstreams& upstreams;
    MakeTools make_tools;
    domain::Survivors* survivors = nullptr;  ///< null: attempts leave no processes
  };
  struct Options {
    SecretMask mask;                                    ///< of secrets that no output may show
    std::function<void(const std::string&)> on_output;  ///< called with the masked text of all works, as it arrives
  };
  LlmDriver(Parts parts, Options options) : parts_(std::move(parts)), options_(std::move(options)) {}

  Result<std::unique_ptr<domain::Work>> begin(domain::WorkOrder order, domain::WorkContext& context) override;
  [[nodiscard]] std::string choose_conversation(const domain::WorkOrder& order) override;
  /// Back-pressure on all works: true pauses their output, false resumes it.
  void hold(bool held);

 private:
  Parts parts_;
  Options options_;
  std::set<domain::Work*> works_;
  bool held_ = false;
};

/// Tools as processes, requests and MCP sessions, at most kToolsAtOnce of an attempt at a time. Both must outlive them.
[[nodiscard]] MakeTools make_tool_runners(Wardens& wardens, net::HttpClient& http);

}  // namespace stint::driver
