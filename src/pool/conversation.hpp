/// The conversation of a run in the store: by it the next attempt continues, on this node or another.
#pragma once

#include "pool/carried.hpp"
#include "pool/recorder.hpp"
#include "pool/run_codec.hpp"
#include "pool/store_health.hpp"

#include <string>
#include <string_view>

namespace stint::pool {

class ConversationRecord {
 public:
  ConversationRecord(store::Store& store, StoreHealth& health, const RunCodec& run_codec)
      : store_(store), health_(health), run_codec_(run_codec) {}

  /// Reads what earlier attempts left, into `carried`. Repeated until the store answers or the run is stopped.
  Task<Result<>> recall(const store::Claim& claim, domain::OnCrash on_crash, Carried& carried);
  /// Makes sure that a run that shall be resumed can be: where the id of its conversation can be chosen, the store has
  /// it before anything starts; else its effects are marked unknown until the agent has named it. False: another node
  /// has the run.
  Task<Result<bool>> make_resumable(Carried& carried, std::string chosen, domain::WorkOrder& order, Recorder& recorder);
  /// Stores the id of the conversation; empty: there is none any more. Whether the store has it now: from then on a
  /// loss of this node does no harm. Repeated until the run was fenced.
  Task<bool> keep(const Carried& carried, std::string_view conversation);

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
