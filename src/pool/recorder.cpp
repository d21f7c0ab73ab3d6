#include "pool/recorder.hpp"

#include "pool/persist.hpp"

#include <optional>
#include <utility>

namespace stint::pool {

Recorder::Recorder(store::Store& store, const Scribe& scribe, events::Changes& changes, store::WorkerNumber owner,
                   const store::Claim& claim)
    : store_(store),
      scribe_(scribe),
      changes_(changes),
      owner_(owner),
      run_(claim.run),
      fence_(claim.fence),
      id_(claim.id) {}

void Recorder::hear(const domain::WorkNews& news) {
  using Kind = domain::WorkNews::Kind;
  switch (news.kind) {
    case Kind::text:
      text_ += news.text;
      if (text_.size() >= kTextFull && !std::exchange(full_, true)) {
        filled_.ring();
        if (on_full_) on_full_(true);
      }
      break;
    case Kind::tool: add_note(kNoteTool, news.text); break;
    case Kind::note: add_note(kNoteText, news.text); break;
    case Kind::conversation:
      if (news.text == conversation_) return;
      conversation_ = news.text;
      add_note(kNoteConversation, news.text);
      break;
    case Kind::usage:
    case Kind::life: return;
  }
  heard_.ring();
}

void Recorder::add_note(std::string_view cause, std::string_view text) {
  const bool must = cause == kNoteConversation;  // without it nothing can be resumed
  if (!must && (notes_.size() >= kNotesMax || ++notes_seen_ > kNotesPerAttemptMax)) {
    ++notes_left_out_;
    return;
  }
  notes_.push_back({std::string(cause), scribe_.write_note(text.substr(0, kNoteTextMax))});
}

std::string Recorder::take_text() {
  std::string text = std::exchange(text_, {});
  if (std::exchange(full_, false) && on_full_) on_full_(false);
  return text;
}

Task<> Recorder::run() {
  while (true) {
    const std::uint64_t seen = heard_.rings(), filled = filled_.rings();
    if (text_.empty() && notes_.empty()) co_await heard_.hear(seen);
    if (notes_.empty() && !full_) co_await filled_.hear(filled, kGather);
    co_await flush();
  }
}

Task<> Recorder::flush() {
  while (writing_) co_await written_.hear(written_.rings());  // the other one writes all of it
  struct Writing {
    Recorder& recorder;
    explicit Writing(Recorder& owner) : recorder(owner) { recorder.writing_ = true; }
    ~Writing() {
      recorder.writing_ = false;
      recorder.written_.ring();
    }
  };
  const Writing writing(*this);
  bool more = !text_.empty() || !notes_.empty();
  while (more) more = co_await write_some();
}

/// True: there is more.
Task<bool> Recorder::write_some() {
  if (over_) {
    (void)take_text();
    notes_.clear();
    co_return false;
  }
  std::optional<Note> note;
  std::string text;
  if (notes_.empty()) {
    text = take_text();
  } else {
    note = std::move(notes_.front());
    notes_.erase(notes_.begin());
  }
  Patience patience;
  while (true) {
    Result<bool> counts = false;
    if (note) {
      counts = co_await store_.note(owner_, run_, fence_, note->cause, note->data);
    } else {
      counts = co_await store_.append_output(owner_, run_, fence_, text);
    }
    if (!counts && Patience::may_ask_again(counts.error())) {
      co_await patience.wait();
      continue;
    }
    over_ = !counts || !*counts;  // others have the run, or the store will never take it
    break;
  }
  changes_.tell(id_, events::Changes::Kind::on_its_way);
  if (!over_ && note && note->cause == kNoteConversation && on_conversation_kept_) co_await on_conversation_kept_();
  co_return !text_.empty() || !notes_.empty();
}

}  // namespace stint::pool
