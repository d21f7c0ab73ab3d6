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
      run_(claim.run),
      fence_(claim.fence),
      id_(claim.id),
      is_fenced_(std::move(is_fenced)) {}

void Recorder::hear(const domain::WorkNews& news) {
  using Kind = domain::WorkNews::Kind;
  switch (news.kind) {
    case Kind::text:
      text_ += news.text;
      if (text_.size() >= kTextFull && !std::exchange(full_, true)) {
        filled_.notify();
        if (on_full_) on_full_(true);
      }
      break;
    case Kind::tool:
      hear_answer();
      add_note(kNoteTool, news.text);
      break;
    case Kind::note: add_note(kNoteText, news.text); break;
    case Kind::span: add_span(*news.span); break;
    case Kind::conversation:
      if (news.text == conversation_) return;
      hear_conversation(news.text);
      break;
    case Kind::usage:
      if (!watches_for_answer_ || news.usage.out == 0) return;  // none: the call was refused
      hear_answer();
      break;
    case Kind::life: return;
  }
  heard_.notify();
}

/// Text proves nothing: it may be the program's own, about a call that was refused.
void Recorder::hear_answer() {
  if (std::exchange(watches_for_answer_, false)) notes_.push_back({});
}

void Recorder::hear_conversation(const std::string& name) {
  if (name.size() > kConversationMax || ++conversations_seen_ > kConversationsMax) {
    ++notes_left_out_;
    return;
  }
  conversation_ = name;
  std::erase_if(notes_, [](const Note& each) { return each.cause == kNoteConversation; });
  add_note(kNoteConversation, name);
}

void Recorder::add_note(std::string_view cause, std::string_view text) {
  const bool must = cause == kNoteConversation;  // without it nothing can be resumed
  if (!must && !may_add_note()) return;
  notes_.push_back({std::string(cause), run_codec_.write_note(text.substr(0, kNoteTextMax))});
}

void Recorder::add_span(domain::Span span) {
  span.name.resize(std::min(span.name.size(), domain::Span::kNameMax));
  if (may_add_note()) notes_.push_back({std::string(kNoteSpan), run_codec_.write_span(span)});
}

bool Recorder::may_add_note() {
  if (notes_.size() < kNotesMax && ++notes_seen_ <= kNotesPerAttemptMax) return true;
  ++notes_left_out_;
  return false;
}

std::string Recorder::take_text() {
  std::string text = std::exchange(text_, {});
  if (std::exchange(full_, false) && on_full_) on_full_(false);
  return text;
}

Task<> Recorder::run() {
  while (true) {
    const std::uint64_t seen = heard_.count(), filled = filled_.count();
    if (text_.empty() && notes_.empty()) co_await heard_.wait(seen);
    const Duration gather = refused_since_ ? kRefusedPause : notes_.empty() ? kGather : Duration::zero();
    if (gather > Duration::zero() && !full_) (void)co_await filled_.wait(filled, gather);
    co_await flush();
  }
}

Task<> Recorder::flush() {
  while (writing_) co_await written_.wait(written_.count());  // the other one writes all of it
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

bool Recorder::has_more() const { return !text_.empty() || !notes_.empty() || bytes_told_ != bytes_dropped_; }

/// True: there is more.
Task<bool> Recorder::write_some() {
  if (over_) {
    (void)take_text();
    notes_.clear();
    co_return false;
  }
  std::optional<Note> note;
  std::string text;
  std::uint64_t told = 0;
  if (!notes_.empty()) {
    note = std::move(notes_.front());
    notes_.erase(notes_.begin());
  } else if (!text_.empty()) {
    text = take_text();
  } else {
    told = bytes_dropped_ - bytes_told_;
    note = {std::string(kNoteText),
            run_codec_.write_note(std::to_string(told) +
                                  " bytes of its output are missing here: " + "the store took nothing for too long")};
  }
  const Result<bool> counts = co_await write(note, text);
  if (!counts && StoreBackoff::may_ask_again(counts.error())) {
    if (told == 0) drop(std::move(note), text);
    co_return false;
  }
  over_ = counts ? !*counts : is_fenced_();  // others have the run
  if (!counts && !over_ && told == 0) leave_out(note, text.size(), counts.error());
  bytes_told_ += told;
  changes_.notify(id_, events::Changes::Kind::progress);
  const bool kept = counts && *counts && note && note->cause == kNoteConversation;
  if (kept && on_conversation_kept_) co_await on_conversation_kept_();
  co_return has_more();
}

/// Asks again, as long as it may. Fails for good if the store refuses it for good, or the owner was fenced.
Task<Result<bool>> Recorder::write(const std::optional<Note>& note, const std::string& text) {
  StoreBackoff backoff;
  while (true) {
    Result<bool> counts = false;
    if (!note) {
      counts = co_await store_.append_output(owner_, run_, fence_, text);
    } else if (note->cause.empty()) {
      counts = co_await store_.answered(owner_, run_, fence_);
    } else {
      counts = co_await store_.note(owner_, run_, fence_, note->cause, note->data);
    }
    const bool again = !counts && StoreBackoff::may_ask_again(counts.error());
    const bool before_a_beat = !counts && StoreBackoff::is_before_a_beat(counts.error()) && !is_fenced_();
    if (counts || again) health_.heard(StoreHealth::Call::write, counts);
    if (!again && !before_a_beat) {
      refused_since_.reset();
      co_return counts;
    }
    if (!refused_since_) refused_since_ = health_.now();
    if (health_.gave_up() || is_refused_too_long(health_.now())) co_return counts;
    (void)co_await race(backoff.wait(health_), hurried_.wait(hurried_.count()));
  }
}

bool Recorder::is_refused_too_long(TimePoint now) const {
  return now - *refused_since_ >= kRefusedMax || (hurried_at_ && now - *hurried_at_ >= kRefusedAtStopMax);
}

/// And all that has gathered behind it, but what the run is continued by: that is tried again with what comes next.
void Recorder::drop(std::optional<Note> note, const std::string& text) {
  if (note) notes_.insert(notes_.begin(), std::move(*note));
  const bool last = hurried_at_ || health_.gave_up();
  notes_left_out_ += std::erase_if(notes_, [&](const Note& each) { return last || each.cause != kNoteConversation; });
  bytes_dropped_ += text.size() + take_text().size();
}

void Recorder::hurry() {
  if (!hurried_at_) hurried_at_ = health_.now();
  hurried_.notify();
}

void Recorder::leave_out(const std::optional<Note>& note, std::size_t bytes, const Error& refusal) {
  if (note) {
    ++notes_left_out_;
  } else if (!std::exchange(refusal_said_, true)) {
    add_note(kNoteText, std::to_string(bytes) + " bytes of its output are missing here: the store refused them (" +
                            plain_words(refusal) + ")");
  }
}

}  // namespace stint::pool
