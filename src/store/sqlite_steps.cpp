// Members of SqliteRows: buffer the writes of a step until the step or its group ends.
#include "store/column_codec.hpp"
#include "store/sqlite_rows.hpp"
#include "store_sql_sqlite.hpp"

#include <span>
#include <unistd.h>

namespace stint::store {
namespace {

namespace query = sqlite::query;

constexpr std::size_t kEventsAtOnce = 16;  // the size of `add_events`

}  // namespace

Result<> SqliteRows::add_event(EventRow&& event) {
  events_.push_back(std::move(event));
  return {};
}

Result<> SqliteRows::write_events(std::size_t from, std::size_t count) {
  Query query(database_, count == kEventsAtOnce ? query::add_events : query::add_event);
  int at = 0;
  for (const EventRow& event : std::span(events_).subspan(from, count)) {
    query.bind(++at, event.run.value == 0 ? std::nullopt : std::optional(event.run)).bind(++at, event.seq);
    query.bind(++at, event.fence).bind(++at, event.node).bind(++at, event.cause);
    query.bind_some(++at, event.state ? to_string(*event.state) : std::string_view());
    query.bind_some(++at, hold_text(event.hold)).bind_some(++at, event.error).bind_some(++at, event.data);
    query.bind(++at, event.at);
  }
  return query.run();
}

Result<> SqliteRows::add_day_use(AgentNumber agent, WallTime now, const Use& more) {
  Spent& spent = spent_[{hour_of(now), agent}];
  spent.runs += more.attempts;
  spent.tokens += more.tokens;
  spent.cost_micros += more.cost_micros;
  return {};
}

Result<> SqliteRows::write_spent() {
  for (const auto& [key, spent] : spent_) {
    Query query(database_, query::add_spent);
    query.bind(1, key.first).bind(2, key.second).bind(3, spent.runs).bind(4, spent.tokens).bind(5, spent.cost_micros);
    STINT_CHECK(query.run());
  }
  spent_.clear();
  return {};
}

Result<> SqliteRows::flush() {
  STINT_CHECK(write_spent());
  for (std::size_t done = 0; done < events_.size();) {
    const std::size_t count = events_.size() - done >= kEventsAtOnce ? kEventsAtOnce : 1;
    STINT_CHECK(write_events(done, count));
    done += count;
  }
  events_.clear();
  return {};
}

void SqliteRows::begin_group() {
  clear_cache();  // other processes may have written since
  enrolled_.clear();
  buried_.clear();
  begin_step();
}

void SqliteRows::begin_step() {
  enrolled_before_ = enrolled_.size();
  buried_before_ = buried_.size();
}

void SqliteRows::undo_step() {
  clear_cache();
  agent_names_.clear();  // the number of a rolled-back agent is reused
  give_up_leases(enrolled_before_);
  buried_.resize(buried_before_);
}

void SqliteRows::end_group(bool committed) {
  if (!committed) {
    enrolled_before_ = buried_before_ = 0;
    undo_step();
    return;
  }
  for (const NodeNumber node : buried_) {
    ::unlink(lease_path(node).c_str());  // numbers are never reused
    own_.erase(node);
  }
}

/// Under the write lock: the number of a rolled-back node goes to the next node, of any process.
void SqliteRows::give_up_leases(std::size_t from) {
  for (std::size_t i = from; i < enrolled_.size(); ++i) {
    ::unlink(lease_path(enrolled_[i]).c_str());
    own_.erase(enrolled_[i]);
  }
  enrolled_.resize(from);
}

void SqliteRows::clear_cache() {
  events_.clear();
  spent_.clear();
  agents_.clear();
  steady_.clear();
}

}  // namespace stint::store
