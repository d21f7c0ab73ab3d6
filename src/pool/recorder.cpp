#include "pool/recorder.hpp"

#include "pool/store_backoff.hpp"
#include "stint/combinators.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace stint::pool {

Recorder::Recorder(store::Store& store, StoreHealth& health, const RunCodec& run_codec, events::Changes& changes,
                   store::NodeNumber owner, const store::Claim& claim, std::function<bool()> is_fenced)
    : store_(store),
      health_(health),
      run_codec_(run_codec),
      changes_(changes),
      owner_(owner),
      attempt_(claim.attempt_key()),
      id_(claim.id),
      is_fenced_(std::move(is_fenced)) {}

void Recorder::record(const domain::WorkUpdate& update) {
  using Kind = domain::WorkUpdate::Kind;
  switch (update.kind) {
    case Kind::text:
      text_ += update.text;
      output_at_ += update.text.size();
      if (text_.size() >= kTextFull && !std::exchange(full_, true)) {
        filled_.notify();
        if (on_full_) on_full_(true);
      }
      break;
    case Kind::tool:
      record_answer();
      add_note_here(kNoteTool, update.text);
      break;
    case Kind::note: add_note_here(kNoteText, update.text); break;
    case Kind::span: add_span(*update.span); break;
    case Kind::conversation:
      if (update.text == conversation_) return;
      record_conversation(update.text);
      break;
    case Kind::usage:
      if (!watches_for_answer_ || update.usage.out == 0) return;  // no output: the provider refused the call
      record_answer();
      break;
    case Kind::life: return;
  }
  arrived_.notify();
}

/// Text is not an answer of the provider: it may be the program's own, about a call that was refused.
void Recorder::record_answer() {
  if (std::exchange(watches_for_answer_, false)) notes_.push_back({});
}

void Recorder::record_conversation(const std::string& name) {
  if (name.size() > kConversationMax || ++conversations_seen_ > kConversationsMax) {
    ++notes_left_out_;
    return;
  }
  conversation_ = name;
  std::erase_if(notes_, [](const Note& each) { return each.cause == kNoteConversation; });
  add_note(kNoteConversation, name);
}

void Recorder::add_note(std::string_view cause, std::string_view text) {
  const bool must = cause == kNoteConversation;  // without it the run can't be resumed
  if (!must && !may_add_note()) return;
  notes_.push_back({std::string(cause), run_codec_.write_note(text.substr(0, kNoteTextMax))});
}

void Recorder::add_note_here(std::string_view cause, std::string_view text) {
  if (!may_add_note()) return;
  notes_.push_back({std::string(cause), run_codec_.write_note_at(text.substr(0, kNoteTextMax), output_at_)});
}

void Recorder::add_span(domain::Span span) {
  span.name.resize(std::min(span.name.size(), domain::Span::kNameMax));
  span.text.resize(std::min(span.text.size(), domain::Span::kTextMax));
  span.output_at = output_at_;
  if (may_add_note()) notes_.push_back({std::string(kNoteSpan), run_codec_.write_span(span)});
}

bool Recorder::may_add_note() {
  if (notes_.size() < kNotesMax && ++notes_seen_ <= kNotesPerAttemptMax) return true;
  ++notes_left_out_;
  return false;
}

Task<> Recorder::continue_output() {
  const auto output = co_await store_.output(id_);
  if (output) output_at_ += output->bytes;
}

std::string Recorder::take_text() {
  std::string text = std::exchange(text_, {});
  if (std::exchange(full_, false) && on_full_) on_full_(false);
  return text;
}

Task<> Recorder::run() {
  while (true) {
    const std::uint64_t seen = arrived_.count(), filled = filled_.count();
    if (text_.empty() && notes_.empty()) co_await arrived_.wait(seen);
    const Duration gather = refused_since_ ? kRefusedPause : notes_.empty() ? kGather : Duration::zero();
    if (gather > Duration::zero() && !full_) (void)co_await filled_.wait(filled, gather);
    co_await flush();
  }
}

Task<> Recorder::flush() {
  while (writing_) co_await written_.wait(written_.count());
  struct Writing {
    Recorder& recorder;
    explicit Writing(Recorder& owner) : recorder(owner) { recorder.writing_ = true; }
    ~Writing() {
      recorder.writing_ = false;
      recorder.written_.notify();
    }
  };
  const Writing writing(*this);
  bool more = has_more();
  while (more) more = co_await write_some();
}

bool Recorder::has_more() const { return !text_.empty() || !notes_.empty() || bytes_reported_ != bytes_dropped_; }

/// Returns true if there is more to write.
Task<bool> Recorder::write_some() {
  if (over_) {
    (void)take_text();
    notes_.clear();
    co_return false;
  }
  std::optional<Note> note;
  std::string text;
  std::uint64_t missing = 0;
  if (!notes_.empty()) {
    note = std::move(notes_.front());
    notes_.erase(notes_.begin());
  } else if (!text_.empty()) {
    text = take_text();
  } else {
    missing = bytes_dropped_ - bytes_reported_;
    note = {std::string(kNoteText),
            run_codec_.write_note(std::to_string(missing) + " bytes of its output are missing here: " +
                                  "the store accepted no writes for too long")};
  }
  const Result<bool> accepted = co_await write(note, text);
  if (!accepted && StoreBackoff::may_retry(accepted.error())) {
    if (missing == 0) drop(std::move(note), text);
    co_return false;
  }
  over_ = accepted ? !*accepted : is_fenced_();  // another node owns the run
  if (!accepted && !over_ && missing == 0) leave_out(note, text.size(), accepted.error());
  bytes_reported_ += missing;
  changes_.notify(id_, events::Changes::Kind::progress);
  const bool kept = accepted && *accepted && note && note->cause == kNoteConversation;
  if (kept && on_conversation_kept_) co_await on_conversation_kept_();
  co_return has_more();
}

/// Retries within the bounds of the class comment. Fails if the store refuses for good or the owner was fenced. False:
/// the fence is stale.
Task<Result<bool>> Recorder::write(const std::optional<Note>& note, const std::string& text) {
  StoreBackoff backoff;
  while (true) {
    Result<bool> accepted = false;
    if (!note) {
      accepted = co_await store_.append_output(owner_, attempt_, text);
    } else if (note->cause.empty()) {
      accepted = co_await store_.provider_answered(owner_, attempt_);
    } else {
      accepted = co_await store_.note(owner_, attempt_, note->cause, note->data);
    }
    const bool again = !accepted && StoreBackoff::may_retry(accepted.error());
    const bool awaits_heartbeat = !accepted && StoreBackoff::awaits_heartbeat(accepted.error()) && !is_fenced_();
    if (accepted || again) health_.record(StoreHealth::Call::write, accepted);
    if (!again && !awaits_heartbeat) {
      refused_since_.reset();
      co_return accepted;
    }
    if (!refused_since_) refused_since_ = health_.now();
    if (health_.gave_up() || is_refused_too_long(health_.now())) co_return accepted;
    (void)co_await race(backoff.wait(health_), hurried_.wait(hurried_.count()));
  }
}

bool Recorder::is_refused_too_long(TimePoint now) const {
  return now - *refused_since_ >= kRefusedMax || (hurried_at_ && now - *hurried_at_ >= kRefusedAtStopMax);
}

/// Drops this write and everything gathered behind it, except the conversation: without it the run can't be continued,
/// so it is written again with what comes next.
void Recorder::drop(std::optional<Note> note, const std::string& text) {
  if (note) notes_.insert(notes_.begin(), std::move(*note));
  const bool last = hurried_at_ || health_.gave_up();
  notes_left_out_ += std::erase_if(notes_, [&](const Note& each) { return last || each.cause != kNoteConversation; });
  const std::size_t dropped = text.size() + take_text().size();
  bytes_dropped_ += dropped;
  output_at_ -= std::min<std::uint64_t>(dropped, output_at_);
}

void Recorder::hurry() {
  if (!hurried_at_) hurried_at_ = health_.now();
  hurried_.notify();
}

void Recorder::leave_out(const std::optional<Note>& note, std::size_t bytes, const Error& refusal) {
  if (!note) output_at_ -= std::min<std::uint64_t>(bytes, output_at_);
  if (note) {
    ++notes_left_out_;
  } else if (!std::exchange(refusal_noted_, true)) {
    add_note(kNoteText, std::to_string(bytes) + " bytes of its output are missing here: the store refused them (" +
                            printable_reason(refusal) + ")");
  }
}

}  // namespace stint::pool
