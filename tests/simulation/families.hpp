/// Families of runs in the simulated world: they draw on budgets above them, request sessions across generations, and
/// have idempotency keys while the definitions of their agents change. Tracks the real usage.
///
/// Promises: a family uses no more than its budget, plus what each of its running attempts uses between two reports; no
/// usage is counted twice; no run is accepted into the session of a run above it; an idempotency key stands for one
/// run.
#pragma once

#include "domain/driver.hpp"
#include "project/agent_registry.hpp"
#include "stint/executor.hpp"
#include "stint/task.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace stint::fleet {
class LocalFleet;
}
namespace stint::engine {
struct Submission;
}  // namespace stint::engine

namespace stint::pool {
class RunCodec;
}

namespace stint::simulation {

struct LiveWork;
struct Process;
class World;

class Families {
 public:
  // An attempt that draws on a budget uses up to kUseMax tokens every kStepLeast to kStepLeast + kStepMore.
  static constexpr std::int64_t kUseMax = 10;
  static constexpr Duration kStepLeast = std::chrono::milliseconds(300), kStepMore = std::chrono::milliseconds(700);
  /// A worker reports the first usage at once, and further usage within a second.
  static constexpr Duration kBetweenReports = std::chrono::milliseconds(1100);
  static constexpr std::int64_t kUseBetweenReports = kUseMax * (kBetweenReports / kStepLeast + 1);

  static constexpr std::int64_t kSharedTokens = 300;
  static constexpr Duration kTimeBudget = std::chrono::minutes(20);

  explicit Families(World& world);
  ~Families();

  /// One random action of a family: a submission, or a change of a definition.
  void act();
  void check_end();

  // For the parts of processes.
  [[nodiscard]] std::string keep(const domain::RunInput& input);
  [[nodiscard]] domain::RunInput kept(std::string_view text) const;
  [[nodiscard]] bool spends(const domain::WorkOrder& order) const;
  [[nodiscard]] std::int64_t draw_use();
  /// Called before the worker gets the update.
  Task<> hear_use(LiveWork& work, const Process& process, const domain::WorkOrder& order, std::int64_t tokens);

 private:
  struct Budget {
    std::int64_t tokens = 0;
    std::int64_t used = 0;                    // the real usage
    std::int64_t unheard = 0;                 // of that, by attempts whose process could not reach the store
    std::map<std::string, TimePoint> active;  // attempts that used something, and when they did last
    std::set<std::string> late;               // attempts that used something after it was used up
    bool over = false;
  };
  struct Member {
    std::string parent, session;
  };
  struct Keyed {
    std::string id;
    domain::ArgumentValues args;
  };

  void submit_member();
  void share_budget(engine::Submission& submission);
  void check_days();
  void submit_keyed();
  void change_definition();
  /// A run that is above a child of `parent` and holds the session; empty: none.
  [[nodiscard]] std::string holder_above(std::string parent, const std::string& session);
  [[nodiscard]] std::map<std::string, std::int64_t> budgets_of(const domain::WorkOrder& order) const;
  void end_use(Budget& budget, const std::string& attempt, TimePoint now);

  World& world_;
  std::unique_ptr<pool::RunCodec> run_codec_;
  project::AgentRegistry registry_;  // of the submitters
  std::unique_ptr<fleet::LocalFleet> fleet_;
  std::vector<domain::RunInput> inputs_;
  std::map<std::string, Budget> budgets_;  // by the run that has it, or the id that submissions share
  std::map<std::string, Member> members_;  // all runs that were submitted here; their parent may be a shared budget
  std::string shared_;                     // the budget that submissions share now
  std::map<std::pair<std::string, std::string>, Keyed> keys_;
};

}  // namespace stint::simulation
