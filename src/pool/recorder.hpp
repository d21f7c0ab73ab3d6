/// What an attempt says, on its way into the store: text in pieces that have gathered, notes one by one, all in order
/// and bounded. Text is never left out as long as the store takes it: who says more than it takes is asked to wait. Of
/// notes, what does not fit any more is left out, and counted. What the store refuses for good is left out alone, and a
/// note says so.
///
/// A store that refuses everything (a full disk) is asked again for kRefusedMax, at the end of a run that was told to
/// stop for kRefusedAtStopMax. What could not be stored by then is dropped and counted, so that neither the agent nor
/// its end hangs on the store; a note says how much is missing when the store can be used again.
#pragma once

#include "domain/driver.hpp"
#include "events/changes.hpp"
#include "pool/run_codec.hpp"
#include "pool/store_health.hpp"
#include "stint/notification.hpp"
#include "store/store.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace stint::pool {

inline constexpr std::string_view kNoteTool = "tool", kNoteConversation = "conversation", kNoteText = "note",
                                  kNoteSpan = "span";
/// A conversation whose id was chosen before anything was started: it may never have begun.
inline constexpr std::string_view kNoteChosen = "chosen_conversation";

class Recorder {
 public:
  static constexpr Duration kGather = std::chrono::milliseconds(200);  // a person reads no faster
  /// Gathered: from here on it is full. As much again may be on its way into the store, and what is said before who
  /// says it has stopped: a pipe's content.
  static constexpr std::size_t kTextFull = 1 << 20;
  static constexpr std::size_t kNotesMax = 200;               // not yet in the store
  static constexpr std::uint32_t kNotesPerAttemptMax = 4000;  // a tool makes two
  static constexpr std::size_t kNoteTextMax = 4 << 10;
  /// Names of conversations that the store is told of in an attempt. Only the newest is of use: one that waits for the
  /// store is replaced by the next. A longer name is none that a CLI could be given.
  static constexpr std::uint32_t kConversationsMax = 200;
  static constexpr std::size_t kConversationMax = 512;
  static constexpr Duration kRefusedMax = std::chrono::seconds(30), kRefusedAtStopMax = std::chrono::seconds(2);
  static constexpr Duration kRefusedPause = std::chrono::seconds(1);  // between two tries, when it drops

  /// `is_fenced`: whether the owner was told that others have its runs; from then on nothing is asked again.
  Recorder(store::Store& store, StoreHealth& health, const RunCodec& run_codec, events::Changes& changes,
           store::NodeNumber owner, const store::Claim& claim, std::function<bool()> is_fenced);

  void hear(const domain::WorkNews& news);
  /// Is called when the store knows the conversation: from then on the run can be taken up again by others.
  void on_conversation_kept(std::function<Task<>()> callback) { on_conversation_kept_ = std::move(callback); }
  /// The store shall know at the first sign that the provider of the run's account answers: so it widens a ramp long
  /// before the run has ended.
  void watch_for_answer() { watches_for_answer_ = true; }
  /// Is told when too much has gathered, and when there is room again.
  void on_full(std::function<void(bool)> callback) { on_full_ = std::move(callback); }
  /// Writes, until it is stopped.
  Task<> run();
  /// All that was heard so far is in the store, was dropped, or counts for nothing any more.
  Task<> flush();
  /// The run was told to stop: its end does not wait long for the store.
  void hurry();
  [[nodiscard]] const std::string& conversation() const noexcept { return conversation_; }
  [[nodiscard]] std::uint64_t notes_left_out() const noexcept { return notes_left_out_; }
  /// Of the output, because the store refused it for too long.
  [[nodiscard]] std::uint64_t bytes_dropped() const noexcept { return bytes_dropped_; }

 private:
  struct Note {
    std::string cause, data;  // no cause: the provider has answered
  };
  Task<bool> write_some();
  Task<Result<bool>> write(const std::optional<Note>& note, const std::string& text);
  [[nodiscard]] bool is_refused_too_long(TimePoint now) const;
  void drop(std::optional<Note> note, const std::string& text);
  [[nodiscard]] bool has_more() const;
  void leave_out(const std::optional<Note>& note, std::size_t bytes, const Error& refusal);
  void hear_answer();
  void hear_conversation(const std::string& name);
  void add_note(std::string_view cause, std::string_view text);
  void add_span(domain::Span span);
  [[nodiscard]] bool may_add_note();
  std::string take_text();

  store::Store& store_;
  StoreHealth& health_;
  const RunCodec& run_codec_;
  events::Changes& changes_;
  const store::NodeNumber owner_;
  const store::RunNumber run_;
  const std::int64_t fence_;
  const std::string id_;
  std::string text_;
  std::vector<Note> notes_;
  std::uint32_t notes_seen_ = 0, conversations_seen_ = 0;
  std::string conversation_;
  std::uint64_t notes_left_out_ = 0, bytes_dropped_ = 0, bytes_told_ = 0;
  std::optional<TimePoint> refused_since_, hurried_at_;  // the store takes nothing since; the run was told to stop
  std::function<bool()> is_fenced_;
  std::function<void(bool)> on_full_;
  std::function<Task<>()> on_conversation_kept_;
  bool full_ = false, writing_ = false, over_ = false;
  bool refusal_said_ = false, watches_for_answer_ = false;
  Notification heard_, filled_, written_, hurried_;
};

}  // namespace stint::pool
