// One attempt: reserve() ─▶ admit() ─▶ send() ─▶ read() ─▶ end_attempt().
//
// Invariants
// 1. What an attempt holds stands in ModelCall, not in the frames that may be destroyed within it: end_attempt()
// returns
//    all of it, once, on every way out: first the connection, then the budget, then the place at the upstream.
// 2. A request that was sent has one span, with usage.
// 3. Nothing is held during a back-off, but the turn.
#include "model/caller.hpp"

#include "model/answer_reader.hpp"
#include "model/call_budget.hpp"
#include "stint/combinators.hpp"

#include <algorithm>
#include <utility>

namespace stint::model {
namespace {

constexpr int kStatusOk = 200, kStatusOkEnd = 300;
constexpr int kOverloadFactor = 4;  // a provider without room gets more time than one that throttles this account
constexpr Duration kErrorBodyTimeMax = std::chrono::seconds(10);

/// Reports a stretch when it ends, also if the frame that holds it is destroyed.
class Stretch {
 public:
  Stretch(CallSink& sink, const Executor& executor, domain::SpanKind kind, std::string name)
      : sink_(sink), executor_(executor), begun_(executor.now()) {
    span_.kind = kind;
    span_.name = std::move(name);
  }
  ~Stretch() {
    span_.length = executor_.now() - begun_;
    if (span_.length > Duration::zero() || span_.kind == domain::SpanKind::model_call) sink_.on_span(span_);
  }
  Stretch(const Stretch&) = delete;
  Stretch& operator=(const Stretch&) = delete;

  void set(const Usage& usage, std::string text) {
    span_.usage = usage;
    span_.text = std::move(text);
  }

 private:
  CallSink& sink_;
  const Executor& executor_;
  const TimePoint begun_;
  domain::Span span_;
};

bool is_output(const StreamEvent& event) {
  return std::holds_alternative<TextDelta>(event) || std::holds_alternative<CallBegun>(event);
}

/// The way to the provider failed, or took longer than a limit of ours (`limit` says which).
Failure transport_failure(const Error& error, const char* limit) {
  const bool is_limit = error == Errc::timed_out;
  Failure failure = broken_answer(is_limit ? limit : error.describe().substr(0, Failure::kMessageMax));
  if (error.retry() == Retry::safe && !is_limit) failure.kind = FailureKind::retry;  // nothing was sent
  failure.repeat = is_limit ? Retry::unknown : error.retry();
  return failure;
}

/// Whether the provider can't have seen the request.
bool was_not_sent(const Error& error) {
  return error.retry() == Retry::safe || error == Errc::denied || error == Errc::invalid;
}

class ModelCall {
 public:
  struct Parts {
    Transport& transport;
    const domain::System& system;
    CallSink& sink;
    Executor& executor;
  };
  ModelCall(Parts parts, ModelRequest request, CallTarget target, const CallOptions& options)
      : parts_(parts), request_(std::move(request)), target_(std::move(target)), options_(options) {
    wanted_ = request_.output_tokens_max.value_or(kOutputTokensUsual);
  }
  ~ModelCall() { end_attempt(nullptr); }
  ModelCall(const ModelCall&) = delete;
  ModelCall& operator=(const ModelCall&) = delete;

  [[nodiscard]] Task<Result<>> attempt();
  void end_attempt(const Failure* failure) noexcept;
  [[nodiscard]] Deadline deadline(Deadline scope) const;
  [[nodiscard]] Result<TimePoint> next_attempt(const Error& error, Deadline deadline);
  [[nodiscard]] Result<ModelAnswer> answer(std::optional<Error> error);
  void stopped_at_deadline();
  /// The attempt that has just failed was sent, and gave no output.
  [[nodiscard]] bool may_repeat() const noexcept { return attempt_failed_ && !has_output_; }

  [[nodiscard]] Upstream& upstream() const noexcept { return *target_.upstream; }
  [[nodiscard]] TimePoint now() const noexcept { return parts_.executor.now(); }
  void begin_backoff() { backoff_.emplace(parts_.sink, parts_.executor, domain::SpanKind::backoff, request_.model); }
  void end_backoff() { backoff_.reset(); }
  /// The right to the next attempt; used up when that begins.
  std::optional<RetryTokens::Token> token;

 private:
  [[nodiscard]] Result<> reserve();
  [[nodiscard]] Task<Result<>> admit();
  [[nodiscard]] Task<Result<>> send();
  [[nodiscard]] Task<Result<>> read();
  [[nodiscard]] Task<Failure> refused();
  [[nodiscard]] bool feed(std::string_view bytes);
  void publish(const std::vector<StreamEvent>& events);
  [[nodiscard]] Usage usage_now() const;
  [[nodiscard]] Result<> fail_with(Failure failure);

  const Parts parts_;
  ModelRequest request_;
  const CallTarget target_;
  const CallOptions options_;
  std::int64_t wanted_ = 0;  // output tokens
  std::uint64_t turn_ = 0;

  // Of the attempt.
  HttpRequest http_;
  CallPlan plan_;
  std::optional<Admission> admission_;
  Reservation reservation_;
  std::optional<Stretch> span_;
  std::unique_ptr<Exchange> exchange_;
  std::optional<AnswerReader> reader_;
  enum class Sent : std::uint8_t { no, yes, refused } sent_ = Sent::no;
  bool attempt_failed_ = false;
  bool has_output_ = false;
  bool cut_ = false;

  // Of the call.
  std::optional<Failure> failure_;  // the last one
  std::optional<Stretch> backoff_;
  Usage usage_;
  std::uint32_t attempts_ = 0;
};

Deadline ModelCall::deadline(Deadline scope) const {
  const Deadline own = options_.deadline.sooner(scope);
  return options_.budget == nullptr ? own : own.sooner(options_.budget->deadline(now()));
}

Task<Result<>> ModelCall::attempt() {
  sent_ = Sent::no;
  attempt_failed_ = has_output_ = cut_ = false;
  reader_.reset();
  STINT_CO_CHECK(reserve());
  STINT_CO_CHECK(co_await admit());
  co_return co_await send();
}

/// Writes the request with no more output than the budget allows, and reserves for it.
Result<> ModelCall::reserve() {
  STINT_TRY(http_, write_request(target_.dialect, request_));
  const CallNeed need{.request_bytes = http_.body.size(),
                      .output_tokens_max = wanted_,
                      .output_tokens_min = options_.output_tokens_min};
  const Allowance left = options_.budget == nullptr ? Allowance() : options_.budget->remaining(now());
  STINT_TRY(plan_, plan_call(need, target_.price, left));
  const auto output = static_cast<std::uint32_t>(plan_.estimate.output_tokens);
  if (plan_.is_lowered && request_.output_tokens_max != output) {
    request_.output_tokens_max = output;
    STINT_TRY(http_, write_request(target_.dialect, request_));
  }
  if (options_.budget == nullptr) return {};
  STINT_TRY(reservation_, options_.budget->reserve(plan_.amount));
  return {};
}

Task<Result<>> ModelCall::admit() {
  const Stretch wait(parts_.sink, parts_.executor, domain::SpanKind::limit, upstream().key().account);
  auto admission = co_await upstream().admit(plan_.estimate,
                                             {.deadline = options_.deadline, .turn = turn_, .watch = options_.watch});
  if (!admission) {
    // The failure that paused the account says to the driver what the run waits for.
    if (const std::optional<Pause> pause = upstream().pause()) failure_ = pause->failure;
    co_return std::unexpected(std::move(admission).error());
  }
  admission_.emplace(std::move(*admission));
  turn_ = admission_->turn();
  co_return Result<>();
}

Task<Result<>> ModelCall::send() {
  WireRequest wire{.url = request_url(target_.endpoint, http_.path),
                   .headers = http_.headers,
                   .body = http_.body,
                   .connect_time_max = options_.connect_time_max};
  if (!target_.key.empty()) wire.headers.push_back(credential(target_.dialect, target_.key.reveal()));
  span_.emplace(parts_.sink, parts_.executor, domain::SpanKind::model_call, request_.model);
  sent_ = Sent::yes;
  ++attempts_;
  auto opened = co_await with_timeout(options_.first_byte_time_max, parts_.transport.open(std::move(wire)));
  if (!opened) {
    if (was_not_sent(opened.error())) sent_ = Sent::refused;
    co_return fail_with(transport_failure(opened.error(), "no answer within the limit for its first byte"));
  }
  exchange_ = std::move(*opened);
  admission_->report(read_rate_limits(target_.dialect, exchange_->headers(), parts_.system.wall_now()));
  if (exchange_->status() < kStatusOk || exchange_->status() >= kStatusOkEnd) {
    sent_ = Sent::refused;
    co_return fail_with(co_await refused());
  }
  admission_->accepted();
  co_return co_await read();
}

/// Reads the body of an error: best effort, since the status alone says most.
Task<Failure> ModelCall::refused() {
  std::string body;
  const Deadline most = Deadline::after(now(), kErrorBodyTimeMax);
  while (body.size() < kErrorBodyMax) {
    const auto piece = co_await with_deadline(most, exchange_->next());
    if (!piece || piece->empty()) break;
    body += *piece;
  }
  co_return classify_response(target_.dialect, exchange_->status(), exchange_->headers(), body,
                              parts_.system.wall_now());
}

Task<Result<>> ModelCall::read() {
  reader_.emplace(target_.dialect, ReaderOptions{.now = parts_.system.wall_now()});
  while (!reader_->ended()) {
    while (parts_.sink.is_held()) co_await parts_.sink.released();
    const auto piece = co_await with_timeout(options_.idle_time_max, exchange_->next());
    if (!piece) {
      publish(reader_->finish());
      if (reader_->completed()) break;
      co_return fail_with(transport_failure(piece.error(), "the answer's stream was idle for longer than its limit"));
    }
    if (piece->empty()) {
      publish(reader_->finish());
      break;
    }
    if (feed(*piece)) continue;
    cut_ = true;
    end_attempt(nullptr);
    co_return Result<>();
  }
  if (reader_->failure()) co_return fail_with(*reader_->failure());
  end_attempt(nullptr);
  co_return Result<>();
}

/// False: what is left of the budget is used up.
bool ModelCall::feed(std::string_view bytes) {
  publish(reader_->feed(bytes));
  if (options_.budget == nullptr || reader_->ended()) return true;
  return !exceeds(usage_now(), reservation_.amount(), options_.budget->remaining(now()));
}

void ModelCall::publish(const std::vector<StreamEvent>& events) {
  for (const StreamEvent& event : events) {
    has_output_ = has_output_ || is_output(event);
    parts_.sink.on_event(event);
  }
}

Result<> ModelCall::fail_with(Failure failure) {
  failure.after_output = failure.after_output || has_output_;
  failure_ = std::move(failure);
  attempt_failed_ = true;
  end_attempt(&*failure_);
  return std::unexpected(failure_->error());
}

/// Of the attempt so far. What the provider did not report is estimated from the bytes.
Usage ModelCall::usage_now() const {
  if (sent_ != Sent::yes) return {};
  if (reader_) return priced(reader_->settled_usage(http_.body.size()), target_.price);
  return priced({.fresh_in = estimated_tokens(http_.body.size()), .estimated = true}, target_.price);
}

void ModelCall::end_attempt(const Failure* failure) noexcept {
  exchange_.reset();
  const Usage usage = usage_now();
  if (span_) {
    usage_ += usage;
    span_->set(usage, failure != nullptr ? std::string(to_string(failure->kind)) : std::string());
    span_.reset();
  }
  reservation_.settle(spend_of(usage));
  if (!admission_) return;
  if (sent_ == Sent::no) admission_->not_sent();
  if (sent_ == Sent::yes && reader_) admission_->settle(usage);
  if (failure != nullptr) {
    admission_->failed(*failure);
  } else if (reader_ && (reader_->completed() || cut_)) {
    admission_->succeeded();
  }
  admission_.reset();
}

/// When the next attempt begins, or the error to give up with.
Result<TimePoint> ModelCall::next_attempt(const Error& error, Deadline deadline) {
  const FailedAttempt facts{.number = attempts_, .now = now(), .deadline = deadline, .random = parts_.system.random()};
  RetryPolicy policy = options_.retry;
  if (failure_->kind == FailureKind::overload) policy.base *= kOverloadFactor;
  const RetryDecision decision = decide_retry(policy, error, facts);
  if (!decision) return fail(gave_up(error, decision.error(), facts));
  token = upstream().retries().take();
  if (!token) return fail(gave_up(error, GiveUp::no_token, facts));
  return *decision;
}

void ModelCall::stopped_at_deadline() {
  if (!span_) return end_attempt(nullptr);  // it was not sent, or had ended
  failure_ = broken_answer("stopped at the deadline");
  failure_->after_output = has_output_;
  failure_->repeat = Retry::never;
  end_attempt(&*failure_);
}

/// No error: the last attempt went well.
Result<ModelAnswer> ModelCall::answer(std::optional<Error> error) {
  if (!error) failure_.reset();
  if (attempts_ == 0 && !failure_) return std::unexpected(std::move(*error));
  ModelAnswer answer;
  answer.usage = usage_;
  answer.attempts = attempts_;
  answer.output_lowered = plan_.is_lowered;
  answer.failure = failure_;
  answer.end = error ? (has_output_ ? CallEnd::broken : CallEnd::failed) : (cut_ ? CallEnd::cut : CallEnd::completed);
  answer.error = std::move(error);
  if (!reader_ || answer.end == CallEnd::failed) return answer;
  answer.message = reader_->message();
  answer.text = reader_->answer_text();
  answer.model = reader_->model();
  if (reader_->stopped()) answer.stop = reader_->stopped()->reason;
  return answer;
}

}  // namespace

std::string_view to_string(CallEnd end) noexcept {
  switch (end) {
    case CallEnd::completed: return "completed";
    case CallEnd::cut: return "cut";
    case CallEnd::broken: return "broken";
    case CallEnd::failed: return "failed";
  }
  return "unknown";
}

Task<Result<ModelAnswer>> Caller::call(ModelRequest request, CallTarget target, CallOptions options, CallSink& sink) {
  CancelToken& scope = co_await current_token();
  ModelCall call({transport_, system_, sink, scope.executor()}, std::move(request), std::move(target), options);
  std::optional<Error> last;  // real
  while (true) {
    if (call.token) call.token->spend();
    call.token.reset();
    const Deadline deadline = call.deadline(scope.deadline());
    const Result<> attempt = co_await with_deadline(deadline, call.attempt());
    if (attempt) {
      call.upstream().retries().succeeded();
      co_return call.answer(std::nullopt);
    }
    Error error = attempt.error();
    const bool is_late = error == Errc::timed_out && deadline.passed(call.now());
    if (is_late) call.stopped_at_deadline();
    if (is_late || !call.may_repeat()) {
      if (last && error.cause() == nullptr) error = std::move(error).because(*last);
      co_return call.answer(std::move(error));
    }
    last = std::move(error);
    const Result<TimePoint> next = call.next_attempt(*last, deadline);
    if (!next) co_return call.answer(next.error());
    call.begin_backoff();
    co_await sleep_until(*next);
    call.end_backoff();
  }
}

}  // namespace stint::model
