/// What an attempt says, on its way into the store: text in pieces that have gathered, notes one by one, all in order
/// and bounded. Text is never left out: who says more than the store takes is asked to wait. Of notes, what does not
/// fit any more is left out, and counted.
#pragma once

#include "domain/driver.hpp"
#include "events/changes.hpp"
#include "pool/scribe.hpp"
#include "stint/bell.hpp"
#include "store/store.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace stint::pool {

inline constexpr std::string_view kNoteTool = "tool", kNoteConversation = "conversation", kNoteText = "note";

class Recorder {
 public:
  static constexpr Duration kGather = std::chrono::milliseconds(200);  // a person reads no faster
  /// Gathered: from here on it is full. As much again may be on its way into the store, and what is said before who
  /// says it has stopped: a pipe's content.
  static constexpr std::size_t kTextFull = 1 << 20;
  static constexpr std::size_t kNotesMax = 200;  // not yet in the store
  static constexpr std::uint32_t kNotesPerAttemptMax = 2000;
  static constexpr std::size_t kNoteTextMax = 4 << 10;

  Recorder(store::Store& store, const Scribe& scribe, events::Changes& changes, store::WorkerNumber owner,
           const store::Claim& claim);

  void hear(const domain::WorkNews& news);
  /// Is called when the store knows the conversation: from then on the run can be taken up again by others.
  void on_conversation_kept(std::function<Task<>()> callback) { on_conversation_kept_ = std::move(callback); }
  /// Is told when too much has gathered, and when there is room again.
  void on_full(std::function<void(bool)> callback) { on_full_ = std::move(callback); }
  /// Writes, until it is stopped.
  Task<> run();
  /// All that was heard so far is in the store, or counts for nothing any more.
  Task<> flush();
  [[nodiscard]] const std::string& conversation() const noexcept { return conversation_; }
  [[nodiscard]] std::uint64_t notes_left_out() const noexcept { return notes_left_out_; }

 private:
  struct Note {
    std::string cause, data;
  };
  Task<bool> write_some();
  void add_note(std::string_view cause, std::string_view text);
  std::string take_text();

  store::Store& store_;
  const Scribe& scribe_;
  events::Changes& changes_;
  const store::WorkerNumber owner_;
  const store::RunNumber run_;
  const std::int64_t fence_;
  const std::string id_;
  std::string text_;
  std::vector<Note> notes_;
  std::uint32_t notes_seen_ = 0;
  std::string conversation_;
  std::uint64_t notes_left_out_ = 0;
  std::function<void(bool)> on_full_;
  std::function<Task<>()> on_conversation_kept_;
  bool full_ = false, writing_ = false, over_ = false;
  Bell heard_, filled_, written_;
};

}  // namespace stint::pool
