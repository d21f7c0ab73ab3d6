/// The array parameters of the function load() of a PostgreSQL store, in order.
#pragma once

#include "store/postgres_connection.hpp"
#include "store/store.hpp"

namespace stint::store {

class PostgresLoad {
 public:
  /// The record must have passed check_record().
  void add(const RunRecord& record);
  [[nodiscard]] Parameters parameters() const;

 private:
  using Texts = std::vector<std::string>;
  using Numbers = std::vector<std::optional<std::int64_t>>;

  void add(const std::string& id, const Event& event);
  void add_chunk(const std::string& id, const Output& output, std::uint64_t at, const std::string& body);

  Texts ids_, agents_, sessions_, parents_, keys_, on_crash_, states_, holds_, stops_, errors_, parked_on_, inputs_,
      results_, causes_, search_;
  Numbers ranks_, created_, not_before_, deadlines_, budgets_, left_, until_, started_, finished_, changed_, attempts_,
      lost_, fences_, seqs_, unsafe_, tokens_, cost_;
  Texts event_ids_, event_causes_, event_states_, event_holds_, event_errors_, event_data_;
  Numbers event_seqs_, event_fences_, event_nodes_, event_at_;
  Texts chunk_ids_, chunk_bodies_;
  Numbers chunk_bytes_, chunk_at_;
  Texts message_ids_, message_bodies_;
  Numbers message_at_, message_ends_;
  Texts family_ids_, family_heads_;
  Numbers family_tokens_, family_cost_;
};

}  // namespace stint::store
