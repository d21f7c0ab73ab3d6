/// A world in which engines are tried: one store, hosts with limits, processes that crash, freeze, are cut off and
/// drained, agents that do what a seed says, and an auditor who sees everything. Virtual time, one thread.
#pragma once

#include "engine/engine.hpp"
#include "shaky_store.hpp"
#include "stint/semaphore.hpp"
#include "stint/testing.hpp"
#include "store/memory_store.hpp"

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stint::simulation {

/// What is changed on purpose, so that a known defect must be found.
enum class Sabotage : std::uint8_t {
  none,
  late_fence,      ///< a process believes in its lease for longer than the store does
  early_release,   ///< permits are given back while the work still ends
  forgets_doubt,   ///< what may not be repeated is taken for repeatable
  forgets_resume,  ///< conversations are not taken up again
  loses_claims,    ///< an answer that did not come is taken for a no
};
inline constexpr std::array kSabotages = {Sabotage::late_fence, Sabotage::early_release, Sabotage::forgets_doubt,
                                          Sabotage::forgets_resume, Sabotage::loses_claims};
[[nodiscard]] std::string_view to_string(Sabotage sabotage) noexcept;

struct SimAgent {
  std::string name;
  domain::OnCrash on_crash = domain::OnCrash::doubt;
  std::optional<std::uint32_t> host_cap;     ///< permits on each host
  std::optional<std::uint32_t> cluster_cap;  ///< counted by the store
  std::string account;
};

/// Work that is alive somewhere, whoever knows of it.
struct LiveWork {
  std::string run, agent, session;
  std::int64_t fence = 0;
  std::size_t process = 0, host = 0;
  bool effects = false;  ///< it has done something
  bool told_to_end = false;
  bool by_lease = false;           ///< ended by its warden
  std::shared_ptr<Permit> permit;  ///< shared with the process that took it: the slot lives as long as either
  Bell end;
};

/// What is known of a run besides the store.
struct RunStory {
  std::string agent, session;
  std::int64_t fence = 0;
  bool unclean = false;  ///< the last attempt had effects, and how it ended is not known to be harmless
  bool person_says_again = false;
};

struct Process;

class World {
 public:
  World(std::uint64_t seed, Sabotage sabotage);
  ~World();

  /// Everything that happens from the first submit to the last run's end. What went wrong, if anything did.
  std::vector<std::string> live();
  /// What the store has of the runs that are named in `text`, for who looks for the cause.
  std::vector<std::string> events_of(const std::string& text);

  // For the parts of processes.
  Simulator& sim() { return sim_; }
  std::mt19937_64& random() { return random_; }
  store::MemoryStore& store() { return store_; }
  const domain::Ambient& ambient() const { return ambient_; }
  const std::vector<SimAgent>& agents() const { return agents_; }
  const SimAgent& agent(std::string_view name) const;
  Semaphore& host_limit(std::size_t host, const std::string& agent);
  Sabotage sabotage() const { return sabotage_; }
  [[nodiscard]] bool chance(double share) { return std::uniform_real_distribution<>(0, 1)(random_) < share; }
  [[nodiscard]] Duration up_to(Duration most) {
    return Duration(std::uniform_int_distribution<Duration::rep>(0, most.count())(random_));
  }
  std::shared_ptr<LiveWork> begin_work(const domain::WorkOrder& order, Process& process,
                                       std::shared_ptr<Permit> permit);
  void end_work(const std::shared_ptr<LiveWork>& work);
  RunStory& story(const std::string& run) { return stories_[run]; }
  void draw_outcome(Outcome& outcome, bool talks);
  void hear_report(const std::string& run, const domain::WorkReport& report);
  engine::Book book() const;
  void find_fault(std::string what);
  [[nodiscard]] bool faulty() const { return !faults_.empty(); }

 private:
  void make_agents();
  std::size_t count(const std::string& agent, std::optional<std::size_t> host) const;
  void start_process();
  void act();
  void submit();
  void crash(Process& process);
  void freeze(Process& process);
  void settle_doubts(double share);
  void check_ends();
  void finish();
  void check_end();
  Task<> end_orphans(Process& process, Duration after, std::uint64_t frozen_times);
  template <class T>
  Result<T> ask(Task<Result<T>> task);
  Process* some_process();

  const Sabotage sabotage_;
  std::mt19937_64 random_;
  Simulator sim_;
  domain::Ambient ambient_;
  store::MemoryStore store_;
  std::vector<SimAgent> agents_;
  std::map<std::pair<std::size_t, std::string>, std::unique_ptr<Semaphore>> host_limits_;
  std::vector<std::shared_ptr<LiveWork>> works_;
  std::map<std::string, RunStory> stories_;
  std::vector<std::string> runs_;
  std::deque<std::unique_ptr<Process>> processes_;
  std::unique_ptr<RootScope> scope_;  // of what happens by itself
  std::vector<std::string> faults_;
  bool calm_ = false;  // nothing goes wrong any more, so that everything can end
};

}  // namespace stint::simulation
