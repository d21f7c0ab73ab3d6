#include "cli/book.hpp"

#include "agent/trust.hpp"
#include "driver/dialect.hpp"
#include "driver/tool_rules.hpp"
#include "engine/local_fleet.hpp"
#include "limit/host_limit.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stint::cli {
namespace {

using domain::DriverKind;
using domain::OnCrash;

constexpr std::size_t kGoneMax = 1000;        // agents without a file; runs of more wait for theirs
constexpr std::uint32_t kAttemptsMax = 1000;  // the engine counts them, by the run's own budget

std::string account_of(DriverKind driver) {
  switch (driver) {
    case DriverKind::claude: return "account:anthropic";
    case DriverKind::codex: return "account:openai";
    case DriverKind::gemini: return "account:google";
    case DriverKind::llm:
    case DriverKind::command: break;
  }
  return {};
}
std::string account_of(const domain::Agent& agent, DriverKind driver, const agent::Settings& settings) {
  const auto model = settings.models.find(agent.model);
  if (model != settings.models.end() && !model->second.account.empty()) return "account:" + model->second.account;
  return account_of(driver);
}

/// Which account a run uses whose driver or model is chosen for it, and how the store then sees it.
void add_lanes(engine::AgentSpec& spec, const agent::Settings& settings) {
  for (const DriverKind driver : {DriverKind::claude, DriverKind::codex, DriverKind::gemini, DriverKind::command}) {
    spec.driver_accounts[std::string(to_string(driver))] =
        driver == *spec.agent.driver ? spec.account : account_of(driver);
  }
  for (const auto& [name, model] : settings.models) {
    if (!model.account.empty()) spec.model_accounts[name] = "account:" + model.account;
  }
  const auto add = [&spec](const std::string& account) {
    if (account == spec.account) return;
    engine::Lane lane{.entry = spec.entry, .account = account};
    lane.entry.name = engine::lane_name(spec.agent.name, account);
    std::erase_if(lane.entry.limits, [&](const store::LimitUse& use) { return use.limit == spec.account; });
    const bool known =
        std::ranges::find(lane.entry.limits, account, &store::LimitUse::limit) != lane.entry.limits.end();
    if (!account.empty() && !known) lane.entry.limits.push_back({account, 1});
    spec.lanes.emplace(lane.entry.name, std::move(lane));
  };
  for (const auto& [driver, account] : spec.driver_accounts) add(account);
  for (const auto& [model, account] : spec.model_accounts) add(account);
}

/// Fills in one agent.
class AgentReader {
 public:
  AgentReader(Reading& reading, bool cluster, bool trusted)
      : reading_(reading),
        cluster_(cluster),
        trusted_(trusted),
        git_things_(agent::blocking_find_git_things(reading.place.project)) {}

  void read(const domain::Agent& agent, bool gone = false) {
    engine::AgentSpec spec;
    spec.gone = gone;
    const agent::Settings& settings = reading_.place.settings;
    const DriverKind driver = agent.driver.value_or(settings.driver);
    spec.agent = agent;
    spec.agent.driver = driver;
    spec.entry.name = agent.name;
    spec.entry.queued_max = settings.pool.queue;
    spec.entry.attempts_max = kAttemptsMax;
    if (agent.retry.base) spec.entry.backoff_base = *agent.retry.base;
    if (agent.retry.cap) spec.entry.backoff_cap = *agent.retry.cap;
    spec.account = account_of(agent, driver, settings);
    spec.budget = agent.budget.or_else(settings.budget);
    for (const auto& [name, model] : settings.models) {
      if (model.price.known()) spec.prices.emplace(name, model.price);
    }
    const bool talks = driver != DriverKind::command;
    spec.on_crash = agent.on_crash.value_or(talks ? OnCrash::resume : OnCrash::doubt);
    spec.refused = why_refused(spec.agent);
    for (const DriverKind other : {DriverKind::claude, DriverKind::codex, DriverKind::gemini, DriverKind::command}) {
      if (const Result<> kept = check_tools(spec.agent, other); !kept) {
        spec.refused_drivers.emplace(to_string(other), kept.error());
      }
    }
    for (const DriverKind other : {DriverKind::codex, DriverKind::gemini}) {
      const auto things = agent::things_that_need_trust(spec.agent, other);
      if (trusted_ || things.empty()) continue;
      spec.refused_drivers.emplace(to_string(other), agent::untrusted(reading_.place.project, things.front()));
    }
    requests_.clear();
    // Also without a number: so that an agent, or an account, can be paused.
    add_to_store(spec, domain::agent_limit(agent.name), 1);
    if (!spec.account.empty()) add_to_store(spec, spec.account, 1);
    if (agent.max_concurrency) add(spec, domain::agent_limit(agent.name), 1, *agent.max_concurrency, cluster_);
    for (const domain::LimitRequest& request : agent.limits) {
      const auto capacity = configured_capacity(settings, request.name);
      if (capacity) {
        add(spec, request.name, request.weight, *capacity, counts_in_store(request.name));
      } else if (!spec.refused) {
        spec.refused =
            Error(Errc::invalid,
                  fmt::format("{}:{}: the limit '{}' is defined nowhere; give it a number in [limits] of stint.toml",
                              agent.file, request.line, request.name));
      }
    }
    if (const auto capacity = configured_capacity(settings, "host")) add(spec, "host", 1, *capacity, false);
    if (!requests_.empty()) reading_.permits[agent.name] = requests_;
    add_lanes(spec, settings);
    reading_.book[agent.name] = std::move(spec);
  }

 private:
  [[nodiscard]] bool counts_in_store(const std::string& name) const {
    const auto found = reading_.place.settings.limits.find(name);
    const auto reach = found == reading_.place.settings.limits.end() ? std::nullopt : found->second.reach;
    return cluster_ && reach != agent::Reach::host && reach != agent::Reach::process;
  }
  [[nodiscard]] std::optional<Error> why_refused(const domain::Agent& agent) const {
    if (*agent.driver == DriverKind::llm) {
      return Error(Errc::invalid,
                   agent.name + ": the driver 'llm' is not built yet; use claude, codex, gemini or command");
    }
    if (*agent.driver == DriverKind::command && agent.command.empty()) {
      return Error(Errc::invalid, agent.name + ": the driver 'command' needs a command: in its file");
    }
    if (const Result<> kept = check_tools(agent, *agent.driver); !kept) return kept.error();
    if (trusted_) return std::nullopt;
    const auto things = agent::things_that_need_trust(agent, *agent.driver);
    const auto& project = reading_.place.project;
    if (!things.empty()) return agent::untrusted(project, things.front());
    if (!git_things_.empty()) return agent::untrusted(project, git_things_.front());
    return std::nullopt;
  }
  /// Fails if the driver can't keep what the agent's file says about tools.
  static Result<> check_tools(const domain::Agent& agent, DriverKind driver) {
    const auto permissions = agent.permissions.value_or(domain::Permissions::edit);
    const Result<> kept = driver::check_rules(driver, {permissions, agent.tool_names, agent.tool_names_denied});
    if (kept) return {};
    return fail(Errc::invalid, agent.file + ": " + std::string(kept.error().what()));
  }
  static void add_to_store(engine::AgentSpec& spec, const std::string& limit, std::uint32_t weight) {
    const auto known = std::ranges::find(spec.entry.limits, limit, &store::LimitUse::limit);
    if (known == spec.entry.limits.end()) {
      spec.entry.limits.push_back({limit, weight});
    } else {
      known->weight = std::max(known->weight, weight);
    }
  }
  void add(engine::AgentSpec& spec, const std::string& name, std::uint32_t weight, std::uint32_t capacity,
           bool in_store) {
    if (in_store) {
      add_to_store(spec, name, weight);
      reading_.cluster_limits[name] = capacity;
    }
    auto limit = reading_.place.homes.find(name, capacity);
    const std::uint32_t now = in_store || !limit ? capacity : limit::capacity_now(*limit);
    if (!limit && !spec.refused) spec.refused = limit.error();
    if (limit && !in_store && !spec.refused) {
      if (const Result<> usable = limit::check_usable(*limit); !usable) {
        spec.refused = usable.error();
        reading_.unusable.push_back(*limit);
      }
    }
    if (weight > now && !spec.refused) {
      spec.refused =
          Error(Errc::invalid, fmt::format("{}: weight {} is more than its capacity, {}", name, weight, now));
    }
    if (in_store || !limit) return;
    add_to_store(spec, name, weight);  // without a number, so that it can be paused
    requests_.push_back({std::move(*limit), weight});
  }

  Reading& reading_;
  const bool cluster_, trusted_;
  const std::vector<agent::TrustedThing> git_things_;
  std::vector<limit::HostRequest> requests_;
};

}  // namespace

Result<std::shared_ptr<const Reading>> blocking_read_project(const Surroundings& around, bool cluster,
                                                             const Reading* before) {
  auto reading = std::make_shared<Reading>();
  STINT_TRY(reading->place, blocking_find_host_place(around));
  reading->catalogue = agent::blocking_discover(reading->place.project.root);
  STINT_TRY(const agent::UserPlaces places, agent::user_places(around.environment));
  STINT_TRY(reading->trusted, agent::blocking_is_trusted(places.state, reading->place.project));
  reading->state = places.state;
  AgentReader reader(*reading, cluster, reading->trusted);
  for (const domain::Agent& agent : reading->catalogue.agents) reader.read(agent);
  domain::Agent prompt;  // of runs without a file
  prompt.name = engine::kPromptAgent;
  prompt.description = "A prompt without an agent's file";
  reader.read(prompt);  // no file has its name
  if (before == nullptr) return reading;
  std::size_t gone = 0;
  for (const auto& [name, spec] : before->book) {
    if (reading->book.contains(name)) continue;
    const bool broken = std::ranges::find(reading->catalogue.broken, name) != reading->catalogue.broken.end();
    if (broken || ++gone <= kGoneMax) reader.read(spec.agent, !broken);
  }
  return reading;
}

DriverKind driver_of(const domain::Agent& agent, std::string_view chosen) {
  for (const DriverKind kind :
       {DriverKind::claude, DriverKind::codex, DriverKind::gemini, DriverKind::command, DriverKind::llm}) {
    if (chosen == to_string(kind)) return kind;
  }
  return *agent.driver;
}

std::vector<std::string> agent_names(const Reading& reading) {
  std::vector<std::string> names;
  for (const auto& [name, spec] : reading.book) {
    names.push_back(name);
    for (const auto& [lane, entry] : spec.lanes) names.push_back(lane);
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

bool blocking_limits_mended(const Reading& reading) {
  return std::ranges::any_of(reading.unusable,
                             [](const limit::HostLimit& each) { return limit::check_usable(each).has_value(); });
}

bool blocking_trust_changed(const Surroundings& around, const Reading& reading) {
  const auto places = agent::user_places(around.environment);
  if (!places) return false;
  const auto trusted = agent::blocking_is_trusted(places->state, reading.place.project);
  return trusted && *trusted != reading.trusted;
}

}  // namespace stint::cli
