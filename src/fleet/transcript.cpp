#include "fleet/transcript.hpp"

namespace stint::fleet {

Task<Result<engine::Transcript>> read_transcript(Fleet& fleet, const pool::RunCodec& run_codec, const store::Run& run,
                                                 engine::TranscriptPlace from) {
  constexpr std::uint32_t kEvents = engine::Transcript::kEventsMax;
  STINT_CO_TRY(std::vector<store::Event> events, co_await fleet.events(run.id, from.seq, kEvents));
  engine::TranscriptInput input;
  STINT_CO_TRY(input.output, co_await fleet.output(run.id));
  input.complete = events.size() < kEvents;
  input.ended = domain::is_finished(run.state);
  for (store::Event& event : events) {
    engine::TranscriptFact& fact = input.facts.emplace_back();
    const bool noted = event.cause == "tool" || event.cause == "note";
    if (noted) fact.note = run_codec.read_note(event.data);
    if (noted) fact.output_at = run_codec.read_output_at(event.data);
    if (event.cause == "span") fact.span = run_codec.read_span(event.data);
    if (fact.span) fact.output_at = fact.span->output_at;
    fact.event = std::move(event);
  }
  co_return engine::make_transcript(input, from);
}

}  // namespace stint::fleet
