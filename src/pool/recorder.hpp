/// Buffers the output and notes of an attempt and writes them to the store: text in gathered pieces, notes one by one,
/// all in order and bounded. No text is dropped while the store accepts writes: on_full() is the back-pressure. Notes
/// beyond the bounds are dropped and counted. A piece that the store refuses for good is dropped alone, and a note
/// reports it.
///
/// If the store refuses every write (a full disk), the recorder retries for kRefusedMax, and for kRefusedAtStopMax when
/// the run was stopped. Then it drops and counts what could not be stored, so that neither the agent nor its end waits
/// for the store. A note reports how much is missing when the store accepts writes again. One executor.
#pragma once

#include "domain/driver.hpp"
#include "events/changes.hpp"
#include "pool/run_codec.hpp"
#include "pool/store_health.hpp"
#include "stint/notification.hpp"
#include "store/store.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace stint::pool {

inline constexpr std::string_view kNoteTool = "tool", kNoteConversation = "conversation", kNoteText = "note",
                                  kNoteSpan = "span";
/// A conversation whose id was chosen before the work started: it may never have begun.
inline constexpr std::string_view kNoteChosen = "chosen_conversation";
/// All causes of the events that an owner adds.
inline constexpr std::array kNoteCauses{kNoteTool, kNoteConversation, kNoteText, kNoteSpan, kNoteChosen};

class Recorder {
 public:
  static constexpr Duration kGather = std::chrono::milliseconds(200);  // as fast as a person reads
  /// From this size on the buffer is full. As much again may be in flight to the store, besides what arrives before the
  /// work has paused: the content of a pipe.
  static constexpr std::size_t kTextFull = 1 << 20;
  static constexpr std::size_t kNotesMax = 200;               // not yet in the store
  static constexpr std::uint32_t kNotesPerAttemptMax = 4000;  // a tool makes two
  static constexpr std::size_t kNoteTextMax = 4 << 10;
  /// Conversation names written per attempt. Only the newest is useful: it replaces one that still waits for the store.
  /// A name above kConversationMax could not be passed to a CLI.
  static constexpr std::uint32_t kConversationsMax = 200;
  static constexpr std::size_t kConversationMax = 512;
  static constexpr Duration kRefusedMax = std::chrono::seconds(30), kRefusedAtStopMax = std::chrono::seconds(2);
  static constexpr Duration kRefusedPause = std::chrono::seconds(1);  // between writes while the store refuses them

  /// `is_fenced`: whether the owner was fenced; from then on the recorder does not retry.
  Recorder(store::Store& store, StoreHealth& health, const RunCodec& run_codec, events::Changes& changes,
           store::NodeNumber owner, const store::Claim& claim, std::function<bool()> is_fenced);

  void record(const domain::WorkUpdate& update);
  /// Called when the store has the conversation: from then on another node can continue the run.
  void on_conversation_kept(std::function<Task<>()> callback) { on_conversation_kept_ = std::move(callback); }
  /// Reports the first answer of the provider of the run's account to the store, which can then widen the account's
  /// ramp long before the run has ended.
  void watch_for_answer() { watches_for_answer_ = true; }
  /// Back-pressure: called with true when the text buffer is full, and with false when it has room again.
  void on_full(std::function<void(bool)> callback) { on_full_ = std::move(callback); }
  /// Called before the work of a further attempt: notes have their place in the output of the whole run.
  Task<> continue_output();
  /// Writes until it is cancelled.
  Task<> run();
  /// Returns when everything recorded so far is in the store, was dropped, or is stale because another node owns the
  /// run.
  Task<> flush();
  /// The run was stopped: from now on kRefusedAtStopMax bounds the retries.
  void hurry();
  [[nodiscard]] const std::string& conversation() const noexcept { return conversation_; }
  [[nodiscard]] std::uint64_t notes_left_out() const noexcept { return notes_left_out_; }
  /// Bytes of output dropped because the store refused writes for too long.
  [[nodiscard]] std::uint64_t bytes_dropped() const noexcept { return bytes_dropped_; }

 private:
  struct Note {
    std::string cause, data;  // empty cause: the provider has answered
  };
  Task<bool> write_some();
  Task<Result<bool>> write(const std::optional<Note>& note, const std::string& text);
  [[nodiscard]] bool is_refused_too_long(TimePoint now) const;
  void drop(std::optional<Note> note, const std::string& text);
  [[nodiscard]] bool has_more() const;
  void leave_out(const std::optional<Note>& note, std::size_t bytes, const Error& refusal);
  void record_answer();
  void record_conversation(const std::string& name);
  void add_note(std::string_view cause, std::string_view text);
  void add_note_here(std::string_view cause, std::string_view text);
  void add_span(domain::Span span);
  [[nodiscard]] bool may_add_note();
  std::string take_text();

  store::Store& store_;
  StoreHealth& health_;
  const RunCodec& run_codec_;
  events::Changes& changes_;
  const store::NodeNumber owner_;
  const store::AttemptKey attempt_;
  const std::string id_;
  std::string text_;
  std::uint64_t output_at_ = 0;  // output of the run so far, with what is not yet written
  std::vector<Note> notes_;
  std::uint32_t notes_seen_ = 0, conversations_seen_ = 0;
  std::string conversation_;
  std::uint64_t notes_left_out_ = 0, bytes_dropped_ = 0, bytes_reported_ = 0;
  std::optional<TimePoint> refused_since_;  // the store has refused every write since
  std::optional<TimePoint> hurried_at_;     // the run was stopped
  std::function<bool()> is_fenced_;
  std::function<void(bool)> on_full_;
  std::function<Task<>()> on_conversation_kept_;
  bool full_ = false, writing_ = false, over_ = false;
  bool refusal_noted_ = false, watches_for_answer_ = false;
  Notification arrived_, filled_, written_, hurried_;
};

}  // namespace stint::pool
