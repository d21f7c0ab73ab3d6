/// What an attempt says, on its way into the store: text in pieces that have gathered, notes one by one, all in order
/// and bounded. A store that is slow holds up nobody: what does not fit any more is left out, and counted.
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
  static constexpr std::size_t kTextMax = 1 << 20;                     // not yet in the store
  static constexpr std::size_t kNotesMax = 200;                        // not yet in the store
  static constexpr std::uint32_t kNotesPerAttemptMax = 2000;
  static constexpr std::size_t kNoteTextMax = 4 << 10;

  Recorder(store::Store& store, const Scribe& scribe, events::Changes& changes, store::WorkerNumber owner,
           const store::Claim& claim);

  void hear(const domain::WorkNews& news);
  /// Is called when the store knows the conversation: from then on the run can be taken up again by others.
  void on_conversation_kept(std::function<Task<>()> callback) { on_conversation_kept_ = std::move(callback); }
  /// Writes, until it is stopped.
  Task<> run();
  /// All that was heard so far is in the store, or counts for nothing any more.
  Task<> flush();
  [[nodiscard]] const std::string& conversation() const noexcept { return conversation_; }
  [[nodiscard]] std::uint64_t left_out() const noexcept { return left_out_; }

 private:
  struct Note {
    std::string cause, data;
  };
  Task<bool> write_some();
  void add_note(std::string_view cause, std::string_view text);

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
  std::uint64_t left_out_ = 0;
  std::function<Task<>()> on_conversation_kept_;
  bool writing_ = false, over_ = false;
  Bell heard_, written_;
};

}  // namespace stint::pool
