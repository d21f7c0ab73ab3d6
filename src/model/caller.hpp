/// One model call: what fits into the budget is reserved, the call waits for its upstream, is sent, read as it comes,
/// and settled.
///
/// A call that failed before any output (text or a tool call) is repeated as DESIGN section 9 says: after max(the
/// server's delay, full jitter of min(cap, base·2ⁱ)), never past the deadline, with a retry token of its upstream, and
/// without its place there meanwhile. After output it is not repeated: the answer is returned as far as it came, and
/// its reader decides. Stopped anywhere, it closes its connection, then returns its place and settles its budget.
#pragma once

#include "domain/price.hpp"
#include "domain/span.hpp"
#include "domain/system.hpp"
#include "model/conversation.hpp"
#include "model/secret.hpp"
#include "model/stream_event.hpp"
#include "model/transport.hpp"
#include "model/upstream.hpp"
#include "stint/budget.hpp"
#include "stint/retry_core.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace stint::model {

/// Where a call goes.
struct CallTarget {
  Dialect dialect = Dialect::anthropic;
  std::string endpoint;  ///< base URL
  Secret key{};
  Price price{};
  std::shared_ptr<Upstream> upstream{};  ///< its other owners: the registry, and other calls
};

struct CallOptions {
  Deadline deadline{};       ///< besides the one of the caller's scope and the budget's
  Budget* budget = nullptr;  ///< null: unlimited; must outlive the call
  RetryPolicy retry{.attempts_max = 4, .idempotent = true};
  Duration connect_time_max = std::chrono::seconds(10);
  Duration first_byte_time_max = std::chrono::seconds(120);  ///< until the head of the answer, connecting included
  Duration idle_time_max = std::chrono::seconds(60);         ///< between two pieces of it
  std::uint32_t output_tokens_min = 64;                      ///< if less fits into the budget, nothing is sent
  AdmitWatch* watch = nullptr;                               ///< what the call waits for
};

/// How a call ended.
enum class CallEnd : std::uint8_t {
  completed,  ///< the answer is whole
  cut,        ///< the budget ended within the answer, which was closed
  broken,     ///< it failed after output: `failure`; `message` has what came
  failed,     ///< it failed before output, for good: `failure`
};
[[nodiscard]] std::string_view to_string(CallEnd end) noexcept;

struct ModelAnswer {
  CallEnd end = CallEnd::failed;
  Message message;   ///< to send back: without calls that are not complete
  std::string text;  ///< for people
  StopReason stop = StopReason::other;
  std::string model;            ///< as the provider names it
  Usage usage;                  ///< of all attempts, with cost; `estimated` if any part had to be
  std::uint32_t attempts = 0;   ///< requests that were sent
  bool output_lowered = false;  ///< less output than asked for fitted into the budget
  std::optional<Failure> failure;
  std::optional<Error> error;  ///< with `failure`: why it was not repeated, and the last real error
};

/// Follows a call. Own thread only; must outlive it.
class CallSink {
 public:
  CallSink() = default;
  virtual ~CallSink() = default;
  CallSink(const CallSink&) = delete;
  CallSink& operator=(const CallSink&) = delete;

  /// Every event as it comes. After a failure without output the call may be repeated: MessageStarted begins anew.
  virtual void on_event(const StreamEvent& event) = 0;
  /// A stretch that is over: a wait in line (`limit`), a back-off, and for each attempt that was sent exactly one
  /// `model_call` with its usage, also if it failed or was cancelled.
  virtual void on_span(const domain::Span& span) noexcept = 0;
  /// Back-pressure: while true, the answer is not read further.
  [[nodiscard]] virtual bool is_held() const noexcept { return false; }
  /// Awaited while it is held; no limit of the call but its deadline runs meanwhile.
  [[nodiscard]] virtual Task<> released() { co_return; }
};

class Caller {
 public:
  Caller(Transport& transport, const domain::System& system) noexcept : transport_(transport), system_(system) {}

  /// Fails if nothing was sent: `exhausted` (it can't fit into the budget), `invalid` (the request can't be written),
  /// `timed_out` (not admitted before the deadline). Everything else is an answer, whatever its end.
  [[nodiscard]] Task<Result<ModelAnswer>> call(ModelRequest request, CallTarget target, CallOptions options,
                                               CallSink& sink);

 private:
  Transport& transport_;
  const domain::System& system_;
};

}  // namespace stint::model
