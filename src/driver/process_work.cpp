#include "driver/process_work.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace stint::driver {
namespace {

using Kind = domain::WorkUpdate::Kind;

Kind update_kind_of(ProgressKind kind) {
  switch (kind) {
    case ProgressKind::text: return Kind::text;
    case ProgressKind::tool_start: return Kind::tool;
    case ProgressKind::note:
    case ProgressKind::rate_info: return Kind::note;
    case ProgressKind::conversation: return Kind::conversation;
    case ProgressKind::usage: return Kind::usage;
    case ProgressKind::thinking:
    case ProgressKind::tool_end:
    case ProgressKind::model_start:
    case ProgressKind::model_end:
    case ProgressKind::heartbeat: break;
  }
  return Kind::life;
}

}  // namespace

ProcessWork::ProcessWork(Parts parts, Options options)
    : parts_(parts),
      price_(options.invocation.price),
      lost_(std::move(options.lost)),
      conversation_may_not_exist_(options.conversation_may_not_exist),
      note_(std::move(options.note)),
      own_mask_(std::move(options.mask)),
      pieces_(parts_.mask, own_mask_),
      dialect_(std::move(options.dialect)),
      invocation_(std::make_unique<Invocation>(std::move(options.invocation))),
      process_(parts_.wardens, *dialect_, std::move(options.process), events()) {
  parts_.all.insert(this);
}

ProcessWork::~ProcessWork() { parts_.all.erase(this); }

Task<Result<std::unique_ptr<domain::WorkReport>>> ProcessWork::run() {
  if (lost_) {
    STINT_CO_CHECK(co_await end_leftovers());
  }
  if (!note_.empty()) {
    domain::WorkUpdate update;
    update.kind = Kind::note;
    update.text = std::exchange(note_, {});
    parts_.context.publish(update);
  }
  STINT_CO_TRY(auto ended, co_await process_.run(std::move(invocation_)));
  end_message();
  publish_text(pieces_.finish());
  if (process_.ending()) publish_ending(ended->ending);
  co_return report_of(std::move(*ended));
}

Task<Result<>> ProcessWork::end_leftovers() {
  std::vector<domain::Survivors::Leftover> leftovers{*lost_};
  ends_leftovers_ = true;
  const auto ending = co_await parts_.survivors.end(std::move(leftovers), [this] { return process_.ending(); });
  ends_leftovers_ = false;
  if (ending.left.empty()) co_return Result<>();
  // The run is parked and retried: it may begin when they are gone.
  co_return fail(Error(Errc::exhausted, Retry::safe,
                       "processes of an earlier attempt did not end, even after SIGKILL: " + ending.left));
}

std::optional<domain::WaitReason> ProcessWork::waits_for() const {
  if (ends_leftovers_) return domain::WaitReason{.cause = domain::WaitCause::leftovers};
  return process_.waits_for();
}

ProcessEvents ProcessWork::events() {
  ProcessEvents events;
  events.progress = [this](const Progress& progress) { translate(progress); };
  return events;
}

void ProcessWork::translate(const Progress& progress) {
  domain::WorkUpdate update;
  update.kind = update_kind_of(progress.kind);
  if (update.kind == Kind::text && progress.is_part) return publish_delta(progress.text);
  if (update.kind != Kind::life && update.kind != Kind::usage) end_message();
  if (update.kind == Kind::text) return publish_text(masked_message(progress.text));
  update.text = progress.text;
  if (update.kind != Kind::conversation) mask_secrets(update.text);
  update.usage = priced(progress.usage);
  using enum ProgressKind;
  if (progress.kind == tool_start || progress.kind == model_start) begin_call(progress);
  if (progress.kind == tool_end || progress.kind == model_end) update.span = end_call(progress);
  if (update.span) update.kind = Kind::span;
  parts_.context.publish(update);
}

void ProcessWork::begin_call(const Progress& progress) {
  if (progress.call.empty() || calls_.size() >= kCallsMax) return;
  const bool is_model = progress.kind == ProgressKind::model_start;
  calls_.push_back({is_model ? domain::SpanKind::model_call : domain::SpanKind::tool, progress.call, progress.tool,
                    parts_.wardens.reactor().now()});
  mask_secrets(calls_.back().name);
}

/// Returns none if the start of the call was not seen.
std::optional<domain::Span> ProcessWork::end_call(const Progress& progress) {
  const auto call = std::ranges::find(calls_, progress.call, &OpenCall::call);
  if (call == calls_.end()) return std::nullopt;
  domain::Span span{.kind = call->kind,
                    .name = std::move(call->name),
                    .length = parts_.wardens.reactor().now() - call->since,
                    .usage = priced(progress.usage),
                    .text = progress.text};
  calls_.erase(call);
  mask_secrets(span.text);
  return span;
}

/// How long an attempt that had to be ended took to end.
void ProcessWork::publish_ending(Duration length) {
  domain::WorkUpdate update;
  update.kind = Kind::span;
  update.span = domain::Span{.kind = domain::SpanKind::ending, .name = {}, .length = length, .usage = {}};
  parts_.context.publish(update);
}

/// A dialect with lines emits whole messages, each ended by a newline; one without emits pieces of a stream.
std::string ProcessWork::masked_message(std::string text) {
  if (!dialect_->has_lines()) return pieces_.add(text);
  mask_secrets(text);
  if (!text.ends_with('\n')) text += '\n';
  return text;
}

/// Publishes a delta as it was sent; a newline follows the last delta of a message.
void ProcessWork::publish_delta(std::string_view text) {
  if (!text.empty()) in_line_ = !text.ends_with('\n');
  publish_text(pieces_.add(text));
}

void ProcessWork::end_message() {
  if (std::exchange(in_line_, false)) publish_text(pieces_.finish() + "\n");
}

void ProcessWork::publish_text(std::string text) {
  if (parts_.on_output && !text.empty()) parts_.on_output(text);
  domain::WorkUpdate update;
  update.kind = text.empty() ? Kind::life : Kind::text;
  update.text = std::move(text);
  parts_.context.publish(update);
}

/// Adds the cost if the CLI reports only tokens and the settings have a price.
Usage ProcessWork::priced(Usage usage) const {
  if (usage.cost_micros == 0 && price_.known()) usage.cost_micros = price_.of(usage);
  return usage;
}

std::unique_ptr<domain::WorkReport> ProcessWork::report_of(ProcessReport seen) const {
  auto report = std::make_unique<domain::WorkReport>();
  report->outcome = std::move(seen.outcome);
  report->outcome.usage = priced(report->outcome.usage);
  if (conversation_may_not_exist_ && seen.conversation_unknown) {
    report->conversation_missing = true;
    report->outcome.message = "its conversation had not begun when its node was lost: it starts from the beginning";
  }
  mask_secrets(report->outcome.text);
  mask_secrets(report->outcome.message);
  for (Denial& denial : report->outcome.denials) {
    mask_secrets(denial.call);
    mask_secrets(denial.allow);  // contains parts of the call
  }
  report->tools_used = seen.tools_used;
  report->processes_ended = seen.processes_ended;
  report->ending = seen.ending;
  report->left = !seen.left.empty();
  return report;
}

void ProcessWork::mask_secrets(std::string& text) const {
  own_mask_.apply(text);
  parts_.mask.apply(text);
}

}  // namespace stint::driver
