/// A simulated world for engines: one store, hosts with limits, processes that crash, freeze, are cut off and drained,
/// agents that follow a seed, and an auditor that sees everything. Virtual time, one thread.
#pragma once

#include "engine/engine.hpp"
#include "families.hpp"
#include "fleet_reader.hpp"
#include "shaky_store.hpp"
#include "stint/semaphore.hpp"
#include "stint/testing.hpp"
#include "time_audit.hpp"

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stint::simulation {

/// Defects that are planted on purpose: the simulation must find them.
enum class Sabotage : std::uint8_t {
  none,
  late_fence,       ///< a process fences itself after its lease has expired in the store
  early_release,    ///< permits are released while the work still ends
  forgets_doubt,    ///< an attempt with unknown effects is repeated
  forgets_resume,   ///< conversations are not continued
  loses_claims,     ///< a lost answer to a claim counts as no run
  forgets_turns,    ///< a heavy request that does not fit takes no turn
  forgets_orphans,  ///< runs that are owned and not carried are not looked for
  forgets_family,   ///< a worker does not know the budgets above its runs
  trusts_wall,      ///< the store measures time with the wall clock
  blames_run,       ///< a lack of descriptors counts as a failure of the run
};
inline constexpr std::array kSabotages = {Sabotage::late_fence,      Sabotage::early_release,  Sabotage::forgets_doubt,
                                          Sabotage::forgets_resume,  Sabotage::loses_claims,   Sabotage::forgets_turns,
                                          Sabotage::forgets_orphans, Sabotage::forgets_family, Sabotage::trusts_wall,
                                          Sabotage::blames_run};
[[nodiscard]] std::string_view to_string(Sabotage sabotage) noexcept;

/// Why a starved process can't begin an attempt.
inline constexpr std::string_view kStarvedText = "too many open files";

struct SimAgent {
  std::string name;
  domain::OnCrash on_crash = domain::OnCrash::doubt;
  std::optional<std::uint32_t> host_cap;     ///< permits on each host
  std::optional<std::uint32_t> cluster_cap;  ///< counted by the store
  std::optional<std::uint32_t> weight;       ///< of each run, in units of the shared limit
  std::string account;
};

/// Work that is alive in the world, whether or not a process knows of it.
struct LiveWork {
  std::string run, agent, session;
  domain::Fence fence{};
  std::size_t process = 0, host = 0;
  bool effects = false;  ///< it has had effects
  bool end_requested = false;
  bool by_lease = false;           ///< ended by its warden
  std::shared_ptr<Permit> permit;  ///< shared with the process that took it: the slot lives as long as either
  std::map<std::string, TimePoint> late_since;  ///< by run: its first usage after the budget of that run was used up
  Notification end;
};

/// What a run's conversation in the store must contain: the messages that were stored for sure, and one more write that
/// may have taken effect.
struct KeptMessages {
  using Messages = std::vector<std::string>;
  Messages sure;
  Messages maybe;         ///< with the write that has no answer yet; the same as `sure`: there is none
  domain::Fence fence{};  ///< of the attempt that writes

  void begin_write(std::size_t at, const std::string& body) {
    maybe = Messages(sure.begin(), sure.begin() + static_cast<std::ptrdiff_t>(at));
    maybe.push_back(body);
  }
};

/// What the auditor knows of a run independently of the store.
struct RunStory {
  std::string agent, session;
  domain::Fence fence{};
  KeptMessages kept;
  bool unclean = false;  ///< the last attempt may have had effects, and its end was not seen
  bool person_says_again = false;
  Duration budget{};
  bool has_deadline = false;
  std::optional<Duration> left_above;  ///< of its parent's budget, when it was accepted
};

struct Process;

class World {
 public:
  World(std::uint64_t seed, Sabotage sabotage);
  ~World();

  /// Runs everything from the first submission to the end of the last run. Returns the faults that it found.
  std::vector<std::string> live();
  /// The events of the runs that are named in `text`, to find the cause of a fault.
  std::vector<std::string> events_of(const std::string& text);

  // For the parts of processes.
  Simulator& sim() { return sim_; }
  const domain::System& system() const { return system_; }
  std::mt19937_64& random() { return random_; }
  store::MemoryStore& store() { return store_; }
  const SimClocks& clocks() const { return clocks_; }
  const std::vector<SimAgent>& agents() const { return agents_; }
  const SimAgent& agent(std::string_view name) const;
  Semaphore& host_limit(std::size_t host, const std::string& agent);
  Sabotage sabotage() const { return sabotage_; }
  Families& families() { return families_; }
  [[nodiscard]] bool chance(double share) { return std::uniform_real_distribution<>(0, 1)(random_) < share; }
  [[nodiscard]] Duration up_to(Duration most) {
    return Duration(std::uniform_int_distribution<Duration::rep>(0, most.count())(random_));
  }
  std::shared_ptr<LiveWork> begin_work(const domain::WorkOrder& order, Process& process,
                                       std::shared_ptr<Permit> permit);
  void end_work(const std::shared_ptr<LiveWork>& work);
  RunStory& story(const std::string& run) { return stories_[run]; }
  void draw_outcome(Outcome& outcome, bool talks);
  /// `usual`, or a text that the store refuses for good.
  std::string some_text(std::string usual);
  void record_report(const std::string& run, const domain::WorkReport& report);
  project::AgentRegistry registry() const;
  void find_fault(std::string what);
  /// Runs a task to its end. Not from within a task.
  template <class T>
  Result<T> ask(Task<Result<T>> task) {
    std::optional<Result<T>> answer;
    auto body = [&]() -> Task<> { answer.emplace(co_await std::move(task)); };
    scope_->spawn(body());
    if (!sim_.run_until([&] { return answer.has_value(); })) std::abort();
    return std::move(*answer);
  }
  /// Tells the auditor of an accepted run.
  void add_run(const std::string& id, const std::string& agent, const std::string& session);
  /// The id of a run whose work is alive; empty: there is none.
  [[nodiscard]] std::string some_live_run();
  [[nodiscard]] bool faulty() const { return !faults_.empty(); }

 private:
  void make_agents();
  std::size_t count(const std::string& agent, std::optional<std::size_t> host) const;
  [[nodiscard]] std::uint32_t units() const;
  void start_process();
  void act();
  void submit();
  void submit_one(const SimAgent& kind);
  void draw_parent(store::NewRun& run);
  void draw_weather(Weather& weather);
  void crash(Process& process);
  void freeze(Process& process);
  void starve(Process& process);
  void turn_clocks();
  void check_budgets();
  void settle_doubts(double share);
  void check_ends();
  void calm_down();
  void crowd();
  void finish();
  void check_end();
  Task<> end_orphans(Process& process, Duration after, std::uint64_t frozen_times);
  Process* some_process();

  const Sabotage sabotage_;
  std::mt19937_64 random_;
  Simulator sim_;
  SimClocks clocks_{sim_};
  domain::System system_;
  WatchedStore store_;
  std::vector<SimAgent> agents_;
  std::uint32_t shared_cap_ = 2;
  std::map<std::string, TimePoint> last_begun_;  // by agent
  std::map<std::pair<std::size_t, std::string>, std::unique_ptr<Semaphore>> host_limits_;
  std::vector<std::shared_ptr<LiveWork>> works_;
  std::map<std::string, RunStory> stories_;
  std::vector<std::string> runs_;
  std::deque<std::unique_ptr<Process>> processes_;
  std::unique_ptr<RootScope> scope_;  // of background actions
  std::vector<std::string> faults_;
  Families families_{*this};
  FleetReader reader_{*this};
  bool calm_ = false;  // no more faults, so that every run can end
};

}  // namespace stint::simulation
