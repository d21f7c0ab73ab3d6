/// What an attempt's work may use of its worker: it passes updates to the recorder and the budgets, marks of unknown
/// effects to the store, and calls through the limits of this process. One executor; outlives the work.
#pragma once

#include "domain/driver.hpp"
#include "pool/call_limits.hpp"
#include "pool/carried.hpp"
#include "pool/conversation.hpp"
#include "pool/recorder.hpp"
#include "stint/notification.hpp"
#include "stint/worker_pool.hpp"

#include <string>

namespace stint::pool {

class AttemptContext final : public domain::WorkContext {
 public:
  struct Parts {
    Carried& carried;
    Recorder& recorder;
    CallLimits& call_limits;
    const domain::BudgetSpec& budget;
    JobContext& job;
    ConversationRecord& conversations;
  };
  explicit AttemptContext(Parts parts) : parts_(parts) {}

  void publish(const domain::WorkUpdate& update) override;
  Task<Result<>> effects_unknown() override;
  Task<Result<>> effects_known() override;
  Task<Result<>> keep_message(std::uint32_t at, std::string body) override;
  Task<Result<std::vector<std::string>>> messages(std::uint32_t from) override;
  Task<Result<Permit>> acquire(std::string limit, std::uint32_t weight) override;

  /// Notified when the attempt has reported usage.
  [[nodiscard]] Notification& used() noexcept { return used_; }

 private:
  [[nodiscard]] Error stopped() const;

  const Parts parts_;
  Notification used_;
};

}  // namespace stint::pool
