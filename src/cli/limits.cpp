#include "cli/limits.hpp"

#include "agent/discovery.hpp"
#include "agent/quantity.hpp"
#include "cli/environment.hpp"
#include "cli/print.hpp"
#include "cli/printable.hpp"
#include "limit/host_place.hpp"
#include "limit/listing.hpp"
#include "wire/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace stint::cli {
namespace {

std::string age(std::int64_t since_ms, WallTime now) {
  const auto seconds = std::max<std::int64_t>(0, domain::to_unix_ms(now) - since_ms) / 1000;
  return seconds == 0 ? "0s" : agent::format_duration(std::chrono::seconds(seconds));
}

std::string owner(const os::SlotRecord& record) {
  return printable(record.label.empty() ? "-" : record.label) + fmt::format("  pid {}", record.pid);
}

void print_limit(const limit::Listing& limit, const Environment& environment, WallTime now) {
  Line head;
  head.add(printable(limit.name), Style::bold);
  head.add(fmt::format("  {} of {} held", limit.holders.size(), limit.capacity));
  if (limit.waiters.empty()) {
    head.add(", none waiting");
  } else {
    head.add(fmt::format(", {} waiting", limit.waiters.size()));
  }
  if (limit.resized) head.add("  (resized by hand)", Style::dim);
  print_out("{}\n", head.str(environment.colour));
  for (const limit::Slots::Holder& holder : limit.holders) {
    const std::string who = holder.record ? owner(*holder.record) : "another tool, by flock";
    const std::string since = holder.record ? "  " + age(holder.record->since_ms, now) : "";
    const std::string ending = holder.swept ? "  killed; the next process that takes the slot ends what is left" : "";
    print_out("  slot {:<3} {}{}{}\n", holder.index, who, since, ending);
  }
  for (std::size_t i = 0; i < limit.waiters.size(); ++i) {
    const os::SlotRecord& waiter = limit.waiters[i];
    const std::string weight = waiter.weight == 1 ? "" : fmt::format("  wants {}", waiter.weight);
    print_out("  line {:<3} {}{}  {}\n", i + 1, owner(waiter), weight, age(waiter.since_ms, now));
  }
}

/// The capacity that the settings or, for `agent:NAME`, the agent's file set; none: neither does.
std::optional<std::uint32_t> number_of(const limit::HostPlace& place, const std::vector<domain::Agent>& agents,
                                       const std::string& name) {
  if (const auto configured = project::configured_capacity(place.settings, name)) return configured;
  const auto agent = std::ranges::find(agents, name, [](const auto& each) { return domain::agent_limit(each.name); });
  return agent == agents.end() ? std::nullopt : agent->max_concurrency;
}

/// A mistyped name must not create a new limit.
Result<> blocking_check_known(const limit::HostPlace& place, const limit::HostLimit& wanted) {
  for (const limit::HostLimit& each : limit::blocking_all_limits(place.homes, place.settings)) {
    if (each.stem() == wanted.stem()) return {};
  }
  for (const domain::Agent& agent : agent::blocking_discover(place.project.root).agents) {
    if (domain::agent_limit(agent.name) == wanted.name) return {};
  }
  return fail(Errc::invalid, "there is no limit '" + wanted.name +
                                 "'. `stint limits` lists them; [limits] in stint.toml defines new ones");
}

Result<> blocking_resize(const limit::HostPlace& place, const std::string& text) {
  const auto equals = text.find('=');
  const std::string name = text.substr(0, equals);
  auto number = agent::parse_integer(text.substr(equals + 1), 1, domain::kPermitsMax);
  if (!number) return fail(Errc::invalid, text + ": " + std::string(number.error().what()));
  STINT_TRY(const limit::HostLimit limit, place.homes.find(name, static_cast<std::uint32_t>(*number)));
  STINT_CHECK(blocking_check_known(place, limit));
  return limit::resize(limit, static_cast<std::uint32_t>(*number));
}

Result<> blocking_reset(const limit::HostPlace& place, const std::string& name) {
  STINT_TRY(const limit::HostLimit limit, place.homes.find(name, 1));
  STINT_CHECK(blocking_check_known(place, limit));
  STINT_TRY(const bool was, limit::reset_capacity(limit));
  if (!was) print_error("stint: {} was not resized by hand\n", printable(name));
  return {};
}

}  // namespace

LimitsCommand::LimitsCommand(CLI::App& app)
    : command_(app, "limits", "List host limits with holders and waiters, or resize them") {
  command_.footer(
      "Without names: every limit that was ever used on this host, and every configured one. NAME=N sets the capacity\n"
      "from now on, in every project that uses the limit: raising it wakes waiters, lowering it takes no permit from "
      "a\n"
      "holder. --reset restores the configured capacity; `stint config` shows the effective one.");
  command_.option("NAME", names_, "List only these; NAME=N resizes").value("[=N]…");
  command_.flag("--reset", reset_, "Restore the configured capacity of the named limits");
  command_.flag("--json", json_, "Print one JSON object");
}

bool LimitsCommand::chosen() const { return command_.chosen(); }

int LimitsCommand::run(const domain::System& system) {
  const Environment environment = blocking_read_environment();
  const auto place = limit::blocking_find_host_place(environment);
  if (!place) return complain(place.error());
  std::vector<std::string> wanted;
  if (reset_ && names_.empty()) {
    complain(Error(Errc::invalid, "--reset needs the name of a limit: `stint limits NAME --reset`"));
    return kExitUsage;
  }
  for (const std::string& name : names_) {
    if (reset_) {
      if (const auto done = blocking_reset(*place, name); !done) {
        complain(done.error());
        return done.error() == Errc::invalid ? kExitUsage : kExitFailed;
      }
    } else if (name.find('=') != std::string::npos) {
      if (const auto resized = blocking_resize(*place, name); !resized) {
        complain(resized.error());
        return resized.error() == Errc::invalid ? kExitUsage : kExitFailed;
      }
    } else if (const auto valid = limit::check_name(name); !valid) {
      return complain(valid.error());
    }
    wanted.push_back(name.substr(0, name.find('=')));
  }
  const std::vector<domain::Agent> agents = agent::blocking_discover(place->project.root).agents;
  std::vector<limit::HostLimit> limits = limit::blocking_all_limits(place->homes, place->settings);
  std::vector<limit::Listing> listings;
  for (const std::string& name : wanted) {
    const auto number = number_of(*place, agents, name);
    auto limit = place->homes.find(name, number.value_or(1));
    if (!limit) return complain(limit.error());
    if (const auto known = blocking_check_known(*place, *limit); !known) {
      complain(known.error());
      return kExitUsage;
    }
    if (!number) limit->capacity = 0;  // only its files have the capacity
    listings.push_back(limit::list(*limit));
  }
  if (wanted.empty()) {
    for (limit::HostLimit& limit : limits) {
      limit.capacity = number_of(*place, agents, limit.name).value_or(limit.capacity);
      listings.push_back(limit::list(limit));
    }
  }
  if (json_) {
    print_out("{}\n", wire::limits_to_json(listings, system.wall_now()));
    return kExitDone;
  }
  if (listings.empty()) print_out("No limits yet. Try: stint with gpu=2 -- COMMAND\n");
  for (const limit::Listing& listing : listings) print_limit(listing, environment, system.wall_now());
  return kExitDone;
}

}  // namespace stint::cli
