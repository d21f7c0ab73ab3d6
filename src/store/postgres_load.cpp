#include "store/postgres_load.hpp"

#include "store/column_codec.hpp"
#include "store/search_text.hpp"

namespace stint::store {
void PostgresLoad::add(const RunRecord& record) {
  const Run& run = record.run;
  const Event& last = record.events.back();
  ids_.push_back(run.id);
  agents_.push_back(run.agent);
  sessions_.push_back(run.session);
  parents_.push_back(run.parent);
  keys_.push_back(run.key);
  on_crash_.emplace_back(to_string(run.on_crash));
  states_.emplace_back(to_string(run.state));
  holds_.emplace_back(to_string(run.hold));
  stops_.emplace_back(to_string(run.stop));
  errors_.push_back(run.error);
  parked_on_.push_back(record.parked_on);
  inputs_.push_back(run.input);
  search_.push_back(search_text(run.agent, run.input));
  results_.push_back(run.result);
  causes_.push_back(last.cause);
  ranks_.emplace_back(record.rank);
  created_.emplace_back(domain::to_unix_ms(run.created_at));
  not_before_.push_back(maybe_unix_ms(run.not_before));
  deadlines_.push_back(maybe_unix_ms(run.deadline));
  budgets_.push_back(maybe_ms(record.budget));
  left_.push_back(maybe_ms(record.budget_left));
  until_.push_back(maybe_unix_ms(record.budget_until));
  started_.push_back(maybe_unix_ms(run.started_at));
  finished_.push_back(maybe_unix_ms(run.finished_at));
  changed_.emplace_back(domain::to_unix_ms(last.at));
  attempts_.emplace_back(run.attempt);
  lost_.emplace_back(run.lost);
  fences_.emplace_back(run.fence.value);
  seqs_.emplace_back(run.seq);
  unsafe_.emplace_back(run.unsafe ? 1 : 0);
  tokens_.emplace_back(run.tokens);
  cost_.emplace_back(run.cost_micros);
  for (const FamilyUse& family : record.families) {
    family_ids_.push_back(run.id);
    family_heads_.push_back(family.head);
    family_tokens_.emplace_back(family.used.tokens);
    family_cost_.emplace_back(family.used.cost_micros);
  }
  for (const Event& event : record.events) add(run.id, event);
  std::int64_t at = 0, end = 0;
  for (const std::string& message : record.conversation) {
    message_ids_.push_back(run.id);
    message_at_.emplace_back(at++);
    message_ends_.emplace_back(end += std::ssize(message));
    message_bodies_.push_back(to_hex(message));
  }
  const Output& output = record.output;
  add_chunk(run.id, output, 0, output.head);
  add_chunk(run.id, output, output.bytes - output.tail.size(), output.tail);
}

Parameters PostgresLoad::parameters() const {
  Parameters all;
  for (const Texts* const texts : {&ids_, &agents_, &sessions_, &parents_, &keys_, &on_crash_, &states_, &holds_,
                                   &stops_, &errors_, &parked_on_, &inputs_, &results_, &causes_}) {
    all.texts(*texts);
  }
  for (const Numbers* const numbers :
       {&ranks_, &created_, &not_before_, &deadlines_, &budgets_, &left_, &until_, &started_, &finished_, &changed_,
        &attempts_, &lost_, &fences_, &seqs_, &unsafe_}) {
    all.numbers(*numbers);
  }
  all.texts(event_ids_).numbers(event_seqs_).numbers(event_fences_).numbers(event_nodes_).texts(event_causes_);
  all.texts(event_states_).texts(event_holds_).texts(event_errors_).texts(event_data_).numbers(event_at_);
  all.texts(chunk_ids_).numbers(chunk_bytes_).numbers(chunk_at_).texts(chunk_bodies_);
  all.numbers(tokens_).numbers(cost_);
  all.texts(family_ids_).texts(family_heads_).numbers(family_tokens_).numbers(family_cost_);
  all.texts(message_ids_).numbers(message_at_).numbers(message_ends_).texts(message_bodies_);
  all.texts(search_);
  return all;
}

void PostgresLoad::add(const std::string& id, const Event& event) {
  event_ids_.push_back(id);
  event_seqs_.emplace_back(event.seq);
  event_fences_.emplace_back(event.fence.value);
  event_nodes_.push_back(domain::value_of(event.node));
  event_causes_.push_back(event.cause);
  event_states_.emplace_back(event.state ? to_string(*event.state) : std::string_view());
  event_holds_.emplace_back(to_string(event.hold));
  event_errors_.push_back(event.error);
  event_data_.push_back(event.data);
  event_at_.emplace_back(domain::to_unix_ms(event.at));
}

void PostgresLoad::add_chunk(const std::string& id, const Output& output, std::uint64_t at, const std::string& body) {
  if (body.empty()) return;
  chunk_ids_.push_back(id);
  chunk_bytes_.emplace_back(static_cast<std::int64_t>(output.bytes));
  chunk_at_.emplace_back(static_cast<std::int64_t>(at));
  chunk_bodies_.push_back(to_hex(body));
}

}  // namespace stint::store
