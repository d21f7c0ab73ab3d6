/// The garage of `stint demo`: real workers that wait for a real semaphore, on any executor. The picture shows the
/// semaphore's own state (holders, line); the totals are counted by the workers themselves.
///
/// Executor's thread only. Must outlive the scope that runs it.
#pragma once

#include "cli/demo_script.hpp"
#include "cli/demo_view.hpp"
#include "stint/scope.hpp"
#include "stint/semaphore.hpp"
#include "wire/demo_event.hpp"

#include <functional>
#include <map>
#include <string>

namespace stint::cli {

class Garage {
 public:
  using Listener = std::function<void(const wire::DemoEvent&)>;

  /// Everything takes 1/`speed` of its scripted time. Calls `listener` for every event, on the executor's thread.
  Garage(Executor& executor, const DemoOptions& options, double speed, Listener listener);

  /// Runs the whole demo. Ends when the last worker has left.
  Task<> run();

  [[nodiscard]] GarageView look() const;
  [[nodiscard]] wire::DemoSummary summary() const;

 private:
  class Inside;
  class Known;
  enum class Where : std::uint8_t { line, inside, gone };
  /// What the semaphore does not know of a guest.
  struct Guest {
    Where where = Where::line;
    Scope* scope = nullptr;  // while it can be cancelled
    Visit visit;
    TimePoint arrived;
    TimePoint entered;
    Deadline deadline;
  };

  Task<> open(Scope& scope);
  Task<> work(std::uint32_t worker);
  Task<> come(std::string who, Visit visit);
  Task<Result<>> park(std::string who, Guest& guest);
  Task<> direct(Scope& scope);
  Task<> perform(Scope& scope, const Act& act);
  Task<> cancel_one(Where where);
  Task<> cancel_as_head(std::string who);
  Task<> resize(std::uint32_t capacity);

  bool cancel(const std::string& who, Where where);
  void tell_end(const std::string& who, const Guest& guest, const Error& error);
  void tell(wire::DemoEventKind kind, const std::string& who, const Guest& guest, Duration took);
  void tell(wire::DemoEventKind kind);
  void tell(wire::DemoEvent event);
  Duration real(Duration scripted) const noexcept;
  Duration scripted(Duration real) const noexcept;
  Duration since(TimePoint then) const noexcept { return scripted(executor_.now() - then); }

  Executor& executor_;
  const DemoOptions options_;
  const double speed_;
  const Listener listener_;
  const TimePoint begin_;
  Semaphore semaphore_;
  CancelToken closing_time_;
  std::map<std::string, Guest> guests_;
  std::string caption_;
  std::uint32_t inside_ = 0;  // units, counted by the workers that are inside
  std::uint32_t limit_;       // the limit that holds for a grant delivered now; see resize()
  wire::DemoSummary sums_;
};

}  // namespace stint::cli
