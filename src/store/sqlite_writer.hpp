/// The only writer of a SQLite store, on its own thread. Group commit: steps that arrive together share one commit
/// and so one sync. A step is answered only when it is durable in the file to which the path leads.
#pragma once

#include "stint/detail/intrusive_list.hpp"
#include "stint/scope.hpp"
#include "store/ledger.hpp"
#include "store/sqlite_files.hpp"
#include "store/sqlite_rows.hpp"

#include <atomic>
#include <optional>

namespace stint::store {

/// Takes the write lock; fails if it is still held after `patience`, by a process that does not run.
[[nodiscard]] Result<> blocking_lock_writes(const os::Fd& write_lock, Duration patience);

class SqliteWriter {
 public:
  static constexpr std::uint32_t kGroupMax = 256;  // steps of one commit
  static constexpr Duration kGroupTime = std::chrono::milliseconds(2);

  /// `write_lock`: a file that all processes with this database lock before they write, so that none starves. `files`
  /// must outlive the writer.
  SqliteWriter(Executor& executor, Database database, const SqliteFiles& files, std::string leases, os::Fd write_lock,
               const domain::System& system, StoreClock clock, Duration patience);
  SqliteWriter(const SqliteWriter&) = delete;
  SqliteWriter& operator=(const SqliteWriter&) = delete;

  /// Calls `step` with the ledger, on the writer's thread. If it fails, its writes are rolled back.
  template <class Step>
  auto write(Step step) -> Task<std::invoke_result_t<Step&, Ledger&>> {
    STINT_CO_CHECK(begin());
    auto result = run(step);
    ++steps_;
    STINT_CO_CHECK(co_await Committed(*this));
    co_return result;
  }
  /// The same for many items, each of which may fail alone; the step may move from its item. One answer per item, in
  /// order.
  template <class Item, class Step>
  auto write_each(std::vector<Item> items, Step step)
      -> Task<Result<std::vector<std::invoke_result_t<Step&, Ledger&, Item&>>>> {
    STINT_CO_CHECK(begin());
    std::vector<std::invoke_result_t<Step&, Ledger&, Item&>> results;
    for (Item& item : items) {
      auto one = [&](Ledger& ledger) { return step(ledger, item); };
      results.push_back(run(one));
      ++steps_;
    }
    STINT_CO_CHECK(co_await Committed(*this));
    co_return results;
  }
  SqliteRows& rows() noexcept { return rows_; }
  [[nodiscard]] const StoreClock& clock() const noexcept { return ledger_.clock(); }
  /// Any thread.
  [[nodiscard]] std::uint64_t commits() const noexcept { return commits_; }

 private:
  /// Waits for the commit of the group. Not cancellable: the step has been done.
  class Committed final : public Leaf, public stint::detail::Link<Committed> {
   public:
    explicit Committed(SqliteWriter& writer) noexcept : writer_(writer) {}
    void await_suspend(std::coroutine_handle<>);
    Result<> await_resume() { return std::move(outcome_); }

   private:
    friend class SqliteWriter;
    void cancel() noexcept override {}
    SqliteWriter& writer_;
    Result<> outcome_;
  };
  struct Closer final : Runnable {
    explicit Closer(SqliteWriter& owner) noexcept : writer(owner) {}
    void run() noexcept override { writer.close_in_turn(); }
    SqliteWriter& writer;
  };

  template <class Step>
  auto run(Step& step) -> std::invoke_result_t<Step&, Ledger&> {
    STINT_CHECK(begin_step());
    auto result = step(ledger_);
    STINT_CHECK(end_step(result ? nullptr : &result.error()));
    return result;
  }
  Result<> begin();
  Result<> begin_step();
  /// `failed`: why the step is rolled back; null: it is kept.
  Result<> end_step(const Error* failed);
  Result<> savepoint(std::string_view statement);
  std::unexpected<Error> break_off(const Error& why);
  Result<> commit() noexcept;
  void close_in_turn() noexcept;
  void close() noexcept;

  Executor& executor_;
  Database database_;
  const SqliteFiles& files_;
  os::Fd write_lock_;
  Duration patience_;
  SqliteRows rows_;
  Ledger ledger_;
  Closer closer_{*this};
  bool open_ = false;
  std::optional<Error> broken_;         // why the group will be rolled back, if known before its end
  std::uint32_t steps_ = 0, seen_ = 0;  // of the group; at the closer's last check
  TimePoint since_;
  std::atomic<std::uint64_t> commits_ = 0;
  stint::detail::List<Committed> waiting_;
};

}  // namespace stint::store
