/// Reads a page of a run's transcript from any fleet.
#pragma once

#include "fleet/fleet.hpp"
#include "pool/run_codec.hpp"

namespace stint::fleet {

/// `run`: as it was found just before. Awaited at once.
Task<Result<engine::Transcript>> read_transcript(Fleet& fleet, const pool::RunCodec& run_codec, const store::Run& run,
                                                 engine::TranscriptPlace from);

}  // namespace stint::fleet
