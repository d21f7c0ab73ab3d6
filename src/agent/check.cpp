#include "agent/check.hpp"

#include "agent/text.hpp"

#include <fmt/format.h>

#include <array>

namespace stint::agent {
namespace {

using domain::Agent;

constexpr std::string_view kAgentPrefix = "agent:";
/// Names that the loop adds to those of the agents.
constexpr std::array<std::string_view, 2> kLoopWords{"land", "sleep"};

class Check {
 public:
  Check(const Catalogue& catalogue, const Settings& settings) : catalogue_(catalogue), settings_(settings) {}

  std::vector<Problem> run() {
    for (const Agent& agent : catalogue_.agents) {
      for (const domain::LimitRequest& request : agent.limits) check_limit(agent, request);
      check_own_limit(agent);
      check_next(agent);
    }
    check_settings();
    return std::move(problems_);
  }

 private:
  bool exists(std::string_view agent) const {
    return catalogue_.find(agent) != nullptr || contains(catalogue_.broken, agent);
  }

  void report(Severity severity, const std::string& file, int line, std::string field, std::string message,
              std::string suggestion = {}) {
    problems_.push_back({severity, file, line, 0, std::move(field), std::move(message), std::move(suggestion)});
  }

  /// Nothing if the limit has no fixed capacity.
  std::optional<std::uint32_t> capacity_of(std::string_view name, bool& defined) const {
    const auto found = settings_.limits.find(name);
    defined = found != settings_.limits.end();
    if (defined) return found->second.capacity;
    if (!name.starts_with(kAgentPrefix)) return std::nullopt;
    const Agent* const other = catalogue_.find(name.substr(kAgentPrefix.size()));
    defined = other != nullptr && other->max_concurrency.has_value();
    return defined ? other->max_concurrency : std::nullopt;
  }

  void check_limit(const Agent& agent, const domain::LimitRequest& request) {
    bool defined = false;
    const std::optional<std::uint32_t> capacity = capacity_of(request.name, defined);
    if (!defined) {
      std::vector<std::string> names;
      for (const auto& [name, limit] : settings_.limits) names.push_back(name);
      std::string suggestion = did_you_mean(request.name, names);
      if (suggestion.empty()) suggestion = fmt::format("add \"{}\" = 1 to [limits] of stint.toml", request.name);
      report(Severity::error, agent.file, request.line, "limits",
             fmt::format("the limit '{}' is defined nowhere", request.name), std::move(suggestion));
    } else if (capacity && request.weight > *capacity) {
      report(Severity::error, agent.file, request.line, "limits",
             fmt::format("requests {} units of '{}', whose capacity is {}: it can never be granted", request.weight,
                         request.name, *capacity));
    }
  }

  /// The capacity of a limit is set in one place.
  void check_own_limit(const Agent& agent) {
    const auto found = settings_.limits.find(domain::agent_limit(agent.name));
    if (found == settings_.limits.end() || !agent.max_concurrency) return;
    report(Severity::error, agent.file, 0, "max_concurrency",
           fmt::format("is {}, but {} sets {} as well", *agent.max_concurrency, describe(found->second.origin),
                       found->first),
           "remove one of the two");
  }

  void check_next(const Agent& agent) {
    for (const std::string& name : agent.next) {
      if (exists(name) || contains(kLoopWords, name)) continue;
      report(Severity::warning, agent.file, 0, "next", fmt::format("there is no agent '{}'", name),
             catalogue_.did_you_mean(name));
    }
  }

  void check_settings() {
    const auto check_agent = [&](std::string_view key, const std::string& name) {
      const Setting* const setting = settings_.find(key);
      if (setting == nullptr || setting->origin.kind == OriginKind::fallback || exists(name)) return;
      // The user's file applies to all projects, and not every project has every agent.
      report(Severity::warning, setting->origin.where, setting->origin.line, std::string(key),
             fmt::format("there is no agent '{}' here", name), catalogue_.did_you_mean(name));
    };
    check_agent("default_agent", settings_.default_agent);
    check_agent("entry_agent", settings_.entry_agent);
    for (const auto& [name, limit] : settings_.limits) {
      if (!name.starts_with(kAgentPrefix)) continue;
      const std::string_view agent = std::string_view(name).substr(kAgentPrefix.size());
      if (agent == domain::kPromptAgent || exists(agent)) continue;
      report(Severity::warning, limit.origin.where, limit.origin.line, "limits",
             fmt::format("'{}' limits an agent that does not exist", name));
    }
    for (const auto& [name, model] : settings_.models) {
      if (model.account.empty() || settings_.accounts.contains(model.account)) continue;
      const Setting* const setting = settings_.find(fmt::format("models.{}.account", name));
      report(Severity::error, setting == nullptr ? "settings" : setting->origin.where,
             setting == nullptr ? 0 : setting->origin.line, fmt::format("models.\"{}\".account", name),
             fmt::format("there is no account '{}'", model.account), fmt::format("add [accounts.{}]", model.account));
    }
  }

  const Catalogue& catalogue_;
  const Settings& settings_;
  std::vector<Problem> problems_;
};

}  // namespace

std::vector<Problem> check_whole(const Catalogue& catalogue, const Settings& settings) {
  return Check(catalogue, settings).run();
}

}  // namespace stint::agent
