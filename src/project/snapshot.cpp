#include "project/snapshot.hpp"

#include "agent/trust.hpp"
#include "domain/budget_core.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stint::project {
namespace {

using domain::DriverDescriptor;
using domain::OnCrash;

constexpr std::size_t kGoneMax = 1000;  // agents without a file; runs of further ones wait for their file

std::optional<FoundModel> find_model(const SnapshotPorts& ports, const agent::Settings& settings,
                                     const std::string& model) {
  return ports.find_model ? ports.find_model(settings, model) : std::nullopt;
}

std::string account_of(const domain::Agent& agent, const DriverDescriptor& driver, const agent::Settings& settings,
                       const SnapshotPorts& ports) {
  if (driver.calls_in_process) return find_model(ports, settings, agent.model).value_or(FoundModel()).account;
  const auto model = settings.models.find(agent.model);
  if (model != settings.models.end() && !model->second.account.empty()) return "account:" + model->second.account;
  return std::string(driver.account);
}

/// Of a run that chooses this driver, which is not its agent's.
std::string account_of_driver(const domain::Agent& agent, const DriverDescriptor& driver,
                              const agent::Settings& settings, const SnapshotPorts& ports) {
  return driver.calls_in_process ? account_of(agent, driver, settings, ports) : std::string(driver.account);
}

/// Adds the accounts of runs that choose another driver or model, and their variants in the store.
void add_variants(AgentSpec& spec, const agent::Settings& settings, const SnapshotPorts& ports) {
  for (const DriverDescriptor& driver : domain::kDrivers) {
    spec.driver_accounts[std::string(driver.name)] =
        &driver == spec.agent.driver ? spec.account : account_of_driver(spec.agent, driver, settings, ports);
  }
  for (const auto& [name, model] : settings.models) {
    if (!model.account.empty()) spec.model_accounts[name] = "account:" + model.account;
    if (!spec.agent.driver->calls_in_process || !model.account.empty()) continue;
    if (const auto found = find_model(ports, settings, name)) spec.model_accounts[name] = found->account;
  }
  const auto add = [&spec](const std::string& account) {
    if (account == spec.account) return;
    AccountVariant variant{.entry = spec.entry, .account = account};
    variant.entry.name = variant_name(spec.agent.name, account);
    std::erase_if(variant.entry.limits, [&](const domain::LimitUse& use) { return use.limit == spec.account; });
    const bool known =
        std::ranges::find(variant.entry.limits, account, &domain::LimitUse::limit) != variant.entry.limits.end();
    if (!account.empty() && !known) variant.entry.limits.push_back({account, 1});
    spec.variants.emplace(variant.entry.name, std::move(variant));
  };
  for (const auto& [driver, account] : spec.driver_accounts) add(account);
  for (const auto& [model, account] : spec.model_accounts) add(account);
}

/// Fills in one agent.
class AgentReader {
 public:
  AgentReader(Snapshot& snapshot, const SnapshotPorts& ports, bool cluster)
      : snapshot_(snapshot),
        ports_(ports),
        cluster_(cluster),
        trusted_(snapshot.trusted),
        git_things_(agent::blocking_find_git_things(snapshot.checkout.project)) {}

  void blocking_read(const domain::Agent& agent, bool gone = false) {
    AgentSpec spec;
    spec.gone = gone;
    const agent::Settings& settings = snapshot_.checkout.settings;
    const DriverDescriptor& driver = agent.driver != nullptr ? *agent.driver : *settings.driver;
    spec.agent = agent;
    spec.agent.driver = &driver;
    spec.entry.name = agent.name;
    spec.entry.queued_max = settings.pool.queue;
    spec.entry.attempts_max = domain::kAttemptsMax;  // the worker counts them, by the run's own budget
    if (agent.retry.base) spec.backoff.base = *agent.retry.base;
    if (agent.retry.cap) spec.backoff.cap = *agent.retry.cap;
    spec.account = account_of(agent, driver, settings, ports_);
    spec.budget = agent.budget.or_else(settings.budget);
    for (const auto& [name, model] : settings.models) {
      if (model.price.known()) spec.prices.emplace(name, model.price);
    }
    if (driver.calls_in_process) {
      const auto model = find_model(ports_, settings, agent.model);  // the agent may name it by a word of its name
      if (model && model->price.known()) spec.prices.emplace(agent.model, model->price);
    }
    spec.on_crash = agent.on_crash.value_or(driver.resumes ? OnCrash::resume : OnCrash::doubt);
    spec.refused = why_refused(spec.agent);
    for (const DriverDescriptor& other : domain::kDrivers) {
      if (const Result<> kept = check_tools(spec.agent, other); !kept) {
        spec.refused_drivers.emplace(other.name, kept.error());
      }
    }
    for (const DriverDescriptor& other : domain::kDrivers) {
      if (!other.always_reads_checkout) continue;
      const auto things = agent::things_that_need_trust(spec.agent, other);
      if (trusted_ || things.empty()) continue;
      spec.refused_drivers.emplace(other.name, agent::untrusted(snapshot_.checkout.project, things.front()));
    }
    uses_.clear();
    // Also without a capacity, so that an agent or an account can be paused.
    add_to_store(spec, domain::agent_limit(agent.name), 1);
    if (!spec.account.empty()) add_to_store(spec, spec.account, 1);
    if (agent.max_concurrency) blocking_add(spec, domain::agent_limit(agent.name), 1, *agent.max_concurrency, cluster_);
    for (const domain::LimitRequest& request : agent.limits) {
      const auto capacity = configured_capacity(settings, request.name);
      if (capacity && counts_calls(settings, request.name)) {
        check_call_limit(spec, request, *capacity);
      } else if (capacity) {
        blocking_add(spec, request.name, request.weight, *capacity, counts_in_store(request.name));
      } else if (!spec.refused) {
        spec.refused =
            Error(Errc::invalid,
                  fmt::format("{}:{}: the limit '{}' is defined nowhere; set its capacity in [limits] of stint.toml",
                              agent.file, request.line, request.name));
      }
    }
    if (const auto capacity = configured_capacity(settings, "host")) blocking_add(spec, "host", 1, *capacity, false);
    if (!uses_.empty()) snapshot_.host_limits[agent.name] = uses_;
    add_variants(spec, settings, ports_);
    snapshot_.registry[agent.name] = std::move(spec);
  }

 private:
  [[nodiscard]] bool counts_in_store(const std::string& name) const {
    const auto found = snapshot_.checkout.settings.limits.find(name);
    const auto reach = found == snapshot_.checkout.settings.limits.end() ? std::nullopt : found->second.reach;
    return cluster_ && reach != agent::Reach::host;
  }
  /// Refuses a limit of calls for a driver that makes none in this process: the limit would never be counted.
  static void check_call_limit(AgentSpec& spec, const domain::LimitRequest& request, std::uint32_t capacity) {
    if (spec.refused) return;
    if (!spec.agent.driver->calls_in_process) {
      spec.refused =
          Error(Errc::invalid,
                fmt::format(
                    "{}:{}: the limit '{}' counts calls within one process (reach = \"process\"), and the driver '{}' "
                    "makes none there; give it reach = \"host\" or \"cluster\" in [limits] of stint.toml",
                    spec.agent.file, request.line, request.name, spec.agent.driver->name));
    } else if (request.weight > capacity) {
      spec.refused = Error(Errc::invalid, fmt::format("{}: weight {} is more than its capacity, {}", request.name,
                                                      request.weight, capacity));
    }
  }
  [[nodiscard]] std::optional<Error> why_refused(const domain::Agent& agent) const {
    if (agent.driver->runs_command && agent.command.empty()) {
      return Error(Errc::invalid,
                   fmt::format("{}: the driver '{}' needs a command: in its file", agent.name, agent.driver->name));
    }
    if (const Result<> kept = check_tools(agent, *agent.driver); !kept) return kept.error();
    if (trusted_) return std::nullopt;
    const auto things = agent::things_that_need_trust(agent, *agent.driver);
    const auto& project = snapshot_.checkout.project;
    if (!things.empty()) return agent::untrusted(project, things.front());
    if (!git_things_.empty()) return agent::untrusted(project, git_things_.front());
    if (!agent.driver->calls_in_process) return std::nullopt;
    if (const auto sent = agent::endpoint_that_needs_trust(snapshot_.checkout.settings)) {
      return agent::untrusted(project, *sent);
    }
    return std::nullopt;
  }
  /// Fails if the driver can't enforce the tool rules of the agent file.
  [[nodiscard]] Result<> check_tools(const domain::Agent& agent, const DriverDescriptor& driver) const {
    const Result<> kept = ports_.check_tools(driver, agent);
    if (kept) return {};
    return fail(Errc::invalid, agent.file + ": " + std::string(kept.error().what()));
  }
  static void add_to_store(AgentSpec& spec, const std::string& limit, std::uint32_t weight) {
    const auto known = std::ranges::find(spec.entry.limits, limit, &domain::LimitUse::limit);
    if (known == spec.entry.limits.end()) {
      spec.entry.limits.push_back({limit, weight});
    } else {
      known->weight = std::max(known->weight, weight);
    }
  }
  void blocking_add(AgentSpec& spec, const std::string& name, std::uint32_t weight, std::uint32_t capacity,
                    bool in_store) {
    if (in_store) {
      add_to_store(spec, name, weight);
      snapshot_.cluster_limits[name] = capacity;
    }
    HostLimitUse use{name, weight, capacity};
    const Result<HostLimitState> limit = ports_.blocking_look_at_limit(snapshot_.limit_directories, use);
    const std::uint32_t now = in_store || !limit ? capacity : limit->capacity;
    if (!limit && !spec.refused) spec.refused = limit.error();
    if (limit && !in_store && !spec.refused && limit->unusable) {
      spec.refused = limit->unusable;
      snapshot_.unusable.push_back(use);
    }
    if (weight > now && !spec.refused) {
      spec.refused =
          Error(Errc::invalid, fmt::format("{}: weight {} is more than its capacity, {}", name, weight, now));
    }
    if (in_store || !limit) return;
    add_to_store(spec, name, weight);  // without a capacity, so that it can be paused
    uses_.push_back(std::move(use));
  }

  Snapshot& snapshot_;
  const SnapshotPorts& ports_;
  const bool cluster_, trusted_;
  const std::vector<agent::TrustedThing> git_things_;
  std::vector<HostLimitUse> uses_;
};

}  // namespace

Result<std::shared_ptr<const Snapshot>> blocking_read_snapshot(const Location& location, const SnapshotPorts& ports,
                                                               SnapshotOptions options) {
  auto snapshot = std::make_shared<Snapshot>();
  STINT_TRY(snapshot->checkout, blocking_read_checkout(location));
  const agent::Project& project = snapshot->checkout.project;
  STINT_TRY(snapshot->limit_directories,
            blocking_find_limit_directories(project, snapshot->checkout.settings, location.variables));
  snapshot->catalogue = agent::blocking_discover(project.root);
  STINT_TRY(const agent::UserPlaces places, agent::user_places(location.variables));
  STINT_TRY(snapshot->trusted, agent::blocking_is_trusted(places.state, project));
  snapshot->state = places.state;
  for (const auto& [name, limit] : snapshot->checkout.settings.limits) {
    if (!counts_calls(snapshot->checkout.settings, name)) continue;
    snapshot->process_limits[name] = *configured_capacity(snapshot->checkout.settings, name);
  }
  AgentReader reader(*snapshot, ports, options.cluster);
  for (const domain::Agent& agent : snapshot->catalogue.agents) reader.blocking_read(agent);
  domain::Agent prompt;  // of runs without an agent file
  prompt.name = domain::kPromptAgent;
  prompt.description = "A prompt without an agent's file";
  reader.blocking_read(prompt);  // no file has its name
  if (options.before == nullptr) return snapshot;
  std::size_t gone = 0;
  for (const auto& [name, spec] : options.before->registry) {
    if (snapshot->registry.contains(name)) continue;
    const bool broken = std::ranges::find(snapshot->catalogue.broken, name) != snapshot->catalogue.broken.end();
    if (broken || ++gone <= kGoneMax) reader.blocking_read(spec.agent, !broken);
  }
  return snapshot;
}

const DriverDescriptor& driver_of(const domain::Agent& agent, std::string_view chosen) {
  const DriverDescriptor* const driver = domain::find_driver(chosen);
  return driver != nullptr ? *driver : *agent.driver;
}

std::vector<std::string> names_in_store(const Snapshot& snapshot) {
  std::vector<std::string> names;
  for (const auto& [name, spec] : snapshot.registry) {
    names.push_back(name);
    for (const auto& [variant, entry] : spec.variants) names.push_back(variant);
  }
  return names;
}

std::vector<agent::Problem> problems_of(const std::string& agent, const agent::Catalogue& catalogue,
                                        const std::vector<agent::Problem>& settings) {
  std::vector<agent::Problem> out = settings;
  const domain::Agent* const found = catalogue.find(agent);
  const bool broken = std::ranges::find(catalogue.broken, agent) != catalogue.broken.end();
  for (const agent::Problem& problem : catalogue.problems) {
    const bool of_broken = broken && problem.file.ends_with("/" + agent + ".md");
    if (of_broken || (found != nullptr && problem.file == found->file)) out.push_back(problem);
  }
  return out;
}

bool blocking_trust_changed(const Location& location, const Snapshot& snapshot) {
  const auto places = agent::user_places(location.variables);
  if (!places) return false;
  const auto trusted = agent::blocking_is_trusted(places->state, snapshot.checkout.project);
  return trusted && *trusted != snapshot.trusted;
}

}  // namespace stint::project
