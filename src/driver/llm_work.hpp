/// One attempt of the driver `llm`: calls the model, streams its output, runs its tools in parallel, and keeps each
/// message of the conversation in the store before the next step, so that another attempt goes on from there.
///
/// end() stops all of it at once: the connection is closed, processes of tools are ended. A call of class `once` that
/// was under way stays unknown, and puts the run in doubt. Own thread only.
#pragma once

#include "domain/driver.hpp"
#include "driver/llm_core.hpp"
#include "driver/secret_mask.hpp"
#include "driver/tool_call.hpp"
#include "model/caller.hpp"
#include "model/upstreams.hpp"
#include "stint/budget.hpp"
#include "stint/notification.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace stint::driver {

/// Makes the tools of one attempt.
using MakeTools = std::function<std::unique_ptr<ToolBox>(ToolRunner::Options)>;

class LlmWork final : public domain::Work, private model::CallSink {
 public:
  /// An attempt makes at most so many model calls, unless its agent sets another bound: a model that never ends its
  /// work would only be stopped by a budget.
  static constexpr int kTurnsMax = 1000;

  struct Parts {
    Executor& executor;
    model::Caller& caller;
    model::Upstreams& upstreams;
    const MakeTools& make_tools;
    domain::Survivors* survivors;  ///< null: attempts leave no processes
    domain::WorkContext& context;
    std::set<domain::Work*>& all;  ///< contains this work as long as it exists
    const SecretMask& mask;        ///< of secrets of every run
    const std::function<void(const std::string&)>& on_output;
  };
  LlmWork(Parts parts, domain::WorkOrder order);
  ~LlmWork() override;

  Task<Result<std::unique_ptr<domain::WorkReport>>> run() override;
  void end(OutcomeKind kind, std::string why) override;
  void hold(bool held) override;
  [[nodiscard]] bool is_ending() const override { return ends_leftovers_ || ended_.has_value(); }
  [[nodiscard]] std::optional<domain::WaitReason> waits_for() const override;

  /// The id of the conversation that an order begins.
  [[nodiscard]] static std::string conversation_of(const domain::WorkOrder& order);

 private:
  class ToolSpan;

  Task<> until_ended();
  Task<> carry();
  Task<Result<>> end_leftovers();
  Task<Result<>> attempt();
  Task<Result<>> with_tools();
  [[nodiscard]] Result<> prepare();
  Task<Result<>> recall();
  Task<Result<>> converse();
  Task<Result<>> ask();
  Task<Result<std::vector<Permit>>> take_call_permits();
  [[nodiscard]] Result<model::ModelRequest> request();
  [[nodiscard]] Result<model::CallTarget> target();
  Task<Result<>> answer_calls();
  Task<ToolResult> answer_call(std::size_t index);
  [[nodiscard]] std::optional<ToolResult> refusal_of(const model::ToolCall& call, bool is_recalled);
  Task<Result<>> finish();
  Task<Result<>> keep(model::Message message);
  Task<Result<>> announce();
  void begin_tool(const std::string& id);
  [[nodiscard]] ToolRunner::Options tool_options();

  // CallSink
  void on_event(const model::StreamEvent& event) override;
  void on_span(const domain::Span& span) noexcept override;
  [[nodiscard]] bool is_held() const noexcept override { return holds_ > 0; }
  [[nodiscard]] Task<> released() override { return changed_.wait(changed_.count()); }

  void conclude(Outcome outcome);
  void conclude(OutcomeKind kind, std::string why);
  void publish(domain::WorkUpdate::Kind kind, std::string text);
  void publish_span(domain::Span span);
  void publish_text(std::string text);
  void end_message();
  void set_text(std::string text);
  void mask_secrets(std::string& text) const;
  [[nodiscard]] std::unique_ptr<domain::WorkReport> report();

  const Parts parts_;
  const domain::WorkOrder order_;
  SecretMask own_mask_;
  MaskedPieces pieces_;
  Budget budget_;
  model::Dialect dialect_ = model::Dialect::chat;
  std::optional<JsonSchema> schema_;
  std::unique_ptr<ToolBox> tools_;
  model::AdmitWatch watch_;

  std::vector<model::Message> messages_;
  std::size_t recalled_ = 0;                      // messages of earlier attempts
  std::map<std::string, std::string> malformed_;  // by the id of the call, what the model wrote
  std::vector<model::ToolCall> calls_;            // that are being answered
  std::map<std::string, ToolSpan*> open_tools_;   // by our id of the call
  std::size_t results_left_out_ = 0;
  int turns_ = 0;

  Outcome outcome_;
  bool concluded_ = false;  // the outcome is decided
  bool conversation_missing_ = false;
  std::optional<Error> mark_error_;  // the store refused a mark
  std::string in_doubt_;             // why the effects of a tool are unknown
  bool tools_used_ = false;
  bool in_line_ = false;  // of a message that comes in deltas
  bool ends_leftovers_ = false;

  std::optional<OutcomeKind> ended_;
  std::string why_ended_;
  TimePoint ended_at_;
  std::uint32_t processes_ended_ = 0, streams_closed_ = 0;
  int holds_ = 0;
  Notification changed_;
};

}  // namespace stint::driver
