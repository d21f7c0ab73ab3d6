/// Stores the conversation of a run, with which the next attempt continues, on this node or another. One executor.
#pragma once

#include "pool/carried.hpp"
#include "pool/recorder.hpp"
#include "pool/run_codec.hpp"
#include "pool/store_health.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace stint::pool {

class ConversationRecord {
 public:
  ConversationRecord(store::Store& store, StoreHealth& health, const RunCodec& run_codec)
      : store_(store), health_(health), run_codec_(run_codec) {}

  /// Reads what earlier attempts left, into `carried`. Retries until the store answers or the run is stopped.
  Task<Result<>> recall(const store::Claim& claim, domain::OnCrash on_crash, Carried& carried);
  /// Makes the attempt resumable by another node. If the driver can choose the id of the conversation, the store has
  /// the id before anything starts. Otherwise the effects are marked as unknown until the agent has named its
  /// conversation and the store has it. False: another node owns the run.
  Task<Result<bool>> make_resumable(Carried& carried, std::string chosen, domain::WorkOrder& order, Recorder& recorder);
  /// Stores the id of the conversation; empty: there is none any more. True: the store has it, and another node can
  /// continue if this one dies. Retries until the run is fenced.
  Task<bool> keep(const Carried& carried, std::string_view conversation);
  /// Stores a message. False: the run was stopped, or another node owns it. Retries while the store can't be reached.
  Task<Result<bool>> keep_message(const Carried& carried, store::Message message);
  /// A page of the messages that were stored. Retries while the store can't be reached.
  Task<Result<std::vector<std::string>>> messages(const Carried& carried, std::uint32_t from);

 private:
  Task<Result<>> recall_once(const store::Claim& claim, domain::OnCrash on_crash, Carried& carried);
  Task<Result<>> find_last(const store::Claim& claim, Carried& carried);
  Task<bool> keep_note(const Carried& carried, std::string_view cause, std::string_view conversation,
                       bool (Carried::*gives_up)() const noexcept);

  store::Store& store_;
  StoreHealth& health_;
  const RunCodec& run_codec_;
};

}  // namespace stint::pool
