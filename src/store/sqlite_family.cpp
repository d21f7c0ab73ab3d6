// Members of SqliteRows: families, and removal of what dead nodes left.
#include "store/sqlite_rows.hpp"
#include "store_sql_sqlite.hpp"

#include <charconv>
#include <filesystem>

namespace stint::store {
namespace {

namespace query = sqlite::query;

constexpr int kSweptMax = 1000;  // lock files checked in one sweep

FamilyRow read_family(const Query& query) {
  return {.number = FamilyNumber{query.number(0)},
          .sum = {.head = query.text(1), .used = {.tokens = query.number(2), .cost_micros = query.number(3)}}};
}

/// The node of a lock file; none: not a lock file.
std::optional<NodeNumber> node_of(const std::filesystem::path& path) {
  if (path.extension() != ".lock") return std::nullopt;
  const std::string stem = path.stem().string();
  NodeNumber number{};
  const auto [end, error] = std::from_chars(stem.data(), stem.data() + stem.size(), number.value);
  if (error != std::errc() || end != stem.data() + stem.size()) return std::nullopt;
  return number;
}

}  // namespace

Result<std::optional<FamilyRow>> SqliteRows::family(std::string_view head) {
  Query query(database_, query::family);
  query.bind(1, head);
  std::optional<FamilyRow> found;
  if (query.next()) found = read_family(query);
  STINT_CHECK(query.end());
  return found;
}

Result<FamilyRow> SqliteRows::make_family(const FamilyUse& sum) {
  Query query(database_, query::make_family);
  query.bind(1, sum.head).bind(2, sum.used.tokens).bind(3, sum.used.cost_micros);
  FamilyRow made{.sum = sum};
  if (query.next()) made.number = FamilyNumber{query.number(0)};
  STINT_CHECK(query.run());
  return made;
}

Result<> SqliteRows::join(FamilyNumber family, RunNumber run) {
  Query query(database_, query::join_family);
  return query.bind(1, family).bind(2, run).run();
}

Result<std::vector<FamilyRow>> SqliteRows::families_of(RunNumber run) {
  Query query(database_, query::families_of);
  query.bind(1, run);
  std::vector<FamilyRow> found;
  while (query.next()) found.push_back(read_family(query));
  STINT_CHECK(query.end());
  return found;
}

Result<> SqliteRows::add_use(FamilyNumber family, const Use& more) {
  Query query(database_, query::add_use);
  return query.bind(1, family).bind(2, more.tokens).bind(3, more.cost_micros).run();
}

Result<std::optional<WallTime>> SqliteRows::pruned_at() {
  Query query(database_, query::pruned_at);
  std::optional<WallTime> at;
  if (query.next()) at = query.time(0);
  STINT_CHECK(query.end());
  return at;
}

Result<> SqliteRows::put_pruned_at(WallTime at) {
  Query query(database_, query::put_pruned_at);
  return query.bind(1, at).run();
}

/// In a transaction, so that no node is added meanwhile: a lock file without a row belongs to no node, or to one
/// whose row was never committed.
Result<> SqliteRows::sweep_nodes() {
  {
    Query query(database_, query::remove_dead_nodes);
    STINT_CHECK(query.run());
  }
  STINT_TRY(const std::vector<NodeRow> alive, nodes());
  std::set<NodeNumber> known;
  for (const NodeRow& node : alive) known.insert(node.number);
  std::error_code error;
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(leases_, error)) {
    if (++seen > kSweptMax) break;
    const std::optional<NodeNumber> node = node_of(entry.path());
    if (!node || known.contains(*node) || own_.contains(*node)) continue;
    std::filesystem::remove(entry.path(), error);  // failing to remove one does no harm
  }
  return {};
}

}  // namespace stint::store
