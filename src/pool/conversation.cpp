#include "pool/conversation.hpp"

#include "pool/store_backoff.hpp"

#include <utility>

namespace stint::pool {
namespace {

constexpr std::uint32_t kNotesPage = 500;

}  // namespace

Task<Result<>> ConversationRecord::recall(const store::Claim& claim, domain::OnCrash on_crash, Carried& carried) {
  StoreBackoff backoff;
  while (true) {
    Result<> recalled = co_await recall_once(claim, on_crash, carried);
    if (recalled || !StoreBackoff::may_retry(recalled.error()) || carried.is_stopped()) co_return recalled;
    if (!co_await backoff.wait(health_)) co_return recalled;
  }
}

Task<Result<>> ConversationRecord::recall_once(const store::Claim& claim, domain::OnCrash on_crash, Carried& carried) {
  carried.before = std::make_unique<domain::RunMemo>();
  domain::RunMemo& memo = *carried.before;
  STINT_CO_TRY(const auto run, co_await store_.find(claim.id));
  if (run) carried.error_before = run->error;
  if (run && !run->result.empty()) {
    STINT_CO_TRY(memo, run_codec_.read_memo(run->result));
  }
  const bool may_resume = memo.resumes || claim.lost > 0;
  if (!may_resume || on_crash == domain::OnCrash::rerun) co_return Result<>();
  co_return co_await find_last(claim, carried);
}

/// Only the notes have the conversation of an attempt whose node died.
Task<Result<>> ConversationRecord::find_last(const store::Claim& claim, Carried& carried) {
  domain::RunMemo& memo = *carried.before;
  std::int64_t after = 0;
  while (true) {
    STINT_CO_TRY(const auto page, co_await store_.events(claim.id, after, kNotesPage));
    for (const store::Event& event : page) {
      if (event.cause == kNoteConversation || event.cause == kNoteChosen) {
        memo.conversation = run_codec_.read_note(event.data);
        carried.conversation_may_not_exist = event.cause == kNoteChosen;
      }
      after = event.seq;
    }
    if (page.size() < kNotesPage) break;
  }
  memo.resumes = !memo.conversation.empty();
  co_return Result<>();
}

Task<Result<bool>> ConversationRecord::make_resumable(Carried& carried, std::string chosen, domain::WorkOrder& order,
                                                      Recorder& recorder) {
  if (!chosen.empty()) {
    carried.resumable = co_await keep_note(carried, kNoteChosen, chosen, &Carried::is_stopped);
    if (carried.resumable) order.new_conversation = std::move(chosen);
    if (carried.resumable || carried.is_stopped()) co_return true;
  }
  const Result<bool> ours = co_await carried.effects.begin_without_conversation();
  if (!ours || !*ours) co_return ours;
  auto kept = [&carried]() -> Task<> {
    carried.resumable = true;
    (void)co_await carried.effects.conversation_kept();
  };
  recorder.on_conversation_kept(kept);
  co_return true;
}

Task<bool> ConversationRecord::keep(const Carried& carried, std::string_view conversation) {
  co_return co_await keep_note(carried, kNoteConversation, conversation, &Carried::is_fenced);
}

Task<Result<bool>> ConversationRecord::keep_message(const Carried& carried, store::Message message) {
  StoreBackoff backoff;
  while (!carried.is_stopped()) {
    Result<bool> kept = co_await store_.put_message(carried.owner, carried.attempt_key(), message);
    if (kept) co_return kept;
    if (!StoreBackoff::may_retry(kept.error()) && !StoreBackoff::awaits_heartbeat(kept.error())) co_return kept;
    if (!co_await backoff.wait(health_)) co_return kept;
  }
  co_return false;
}

Task<Result<std::vector<std::string>>> ConversationRecord::messages(const Carried& carried, std::uint32_t from) {
  StoreBackoff backoff;
  while (true) {
    Result<std::vector<std::string>> page = co_await store_.messages(carried.id, from, store::kMessagesPageMax);
    if (page || !StoreBackoff::may_retry(page.error()) || carried.is_stopped()) co_return page;
    if (!co_await backoff.wait(health_)) co_return page;
  }
}

Task<bool> ConversationRecord::keep_note(const Carried& carried, std::string_view cause, std::string_view conversation,
                                         bool (Carried::*gives_up)() const noexcept) {
  const std::string data = run_codec_.write_note(conversation);
  StoreBackoff backoff;
  while (!(carried.*gives_up)()) {
    const auto kept = co_await store_.note(carried.owner, carried.attempt_key(), std::string(cause), data);
    if (kept) co_return *kept;
    if (!StoreBackoff::may_retry(kept.error()) && !StoreBackoff::awaits_heartbeat(kept.error())) break;
    if (!co_await backoff.wait(health_)) break;
  }
  co_return false;
}

}  // namespace stint::pool
