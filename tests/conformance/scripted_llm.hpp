/// A driver without processes and without a network: a model with scripted replies, called and streamed in this
/// process, with functions as tools. It shows what the driver port demands of a driver that is only coroutines: it
/// ignores descriptors and marks, closes streams instead of ending processes, and marks unknown effects itself.
#pragma once

#include "domain/driver.hpp"
#include "stint/executor.hpp"
#include "stint/notification.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace stint::conformance {

/// One call of the model, and the tool that its reply asks for.
struct ModelTurn {
  std::vector<std::string> pieces;  ///< of the reply, kPieceTime apart
  Usage usage;
  std::string tool{};     ///< that the reply calls; empty: none
  bool tool_once = true;  ///< its effects can't be repeated
  bool tool_denied = false;
  bool tool_hangs = false;   ///< until the work is ended
  bool hangs = false;        ///< after its pieces the stream stays open
  bool ignores_end = false;  ///< the stream closes only on the second end()
  bool breaks = false;       ///< the stream breaks off
  bool refuses = false;      ///< the model gives up
};
using ModelScript = std::vector<ModelTurn>;

class ScriptedLlm final : public domain::Driver {
 public:
  static constexpr Duration kPieceTime = std::chrono::milliseconds(10);
  static constexpr Duration kCloseTime = std::chrono::hours(1);  ///< of a stream that ignores the end
  /// The script of an order.
  using Scripts = std::function<ModelScript(const domain::WorkOrder&)>;
  ScriptedLlm(Executor& executor, Scripts scripts) : executor_(executor), scripts_(std::move(scripts)) {}

  Result<std::unique_ptr<domain::Work>> begin(domain::WorkOrder order, domain::WorkContext& context) override;
  [[nodiscard]] std::string choose_conversation(const domain::WorkOrder& order) override;
  [[nodiscard]] int open_streams() const noexcept { return open_streams_; }

 private:
  class Conversation;
  Executor& executor_;
  Scripts scripts_;
  int open_streams_ = 0;
};

}  // namespace stint::conformance
