#include "cli/filter_options.hpp"

#include "agent/quantity.hpp"
#include "cli/option_value.hpp"
#include "wire/batch.hpp"
#include "wire/time_text.hpp"

namespace stint::cli {
namespace {

Result<std::optional<WallTime>> read_moment(const std::string& option, const std::string& text, WallTime now) {
  if (text.empty()) return std::nullopt;
  if (const auto time = wire::parse_time(text)) return time;
  if (const auto ago = agent::parse_duration(text); ago && *ago >= Duration::zero()) {
    return now - std::chrono::ceil<std::chrono::milliseconds>(*ago);
  }
  return fail(Errc::invalid,
              option + ": '" + text + "' is neither a time such as 2026-11-16T03:00:00Z nor a duration such as 2h");
}

}  // namespace

void FilterOptions::add_to(Command& command, const std::string& verb) {
  std::vector<std::string> state_names;
  for (const domain::RunState state : domain::kRunStates) state_names.emplace_back(to_string(state));
  command.option("--state", states, verb + " runs in this state; may be repeated").one_of(state_names);
  command.option("--agent", agent, verb + " runs of this agent").value("NAME");
  command.option("--search", search, verb + " runs with this in id, agent, title, arguments, prompt or error")
      .value("TEXT");
  command.option("--session", session, verb + " runs of this session").value("KEY");
  command.option("--parent", parent, verb + " runs that this run has submitted").value("ID");
  command.option("--hold", holds, verb + " runs held back by this; `none`: by nothing; may be repeated")
      .one_of({"none", "session", "delay", "backoff", "quota", "person"});
  command.option("--since", since, verb + " runs submitted at this time or later, or within this duration")
      .value("TIME");
  command.option("--until", until, verb + " runs submitted before this time, or longer ago than this duration")
      .value("TIME");
}

bool FilterOptions::given() const {
  return !states.empty() || !holds.empty() || !agent.empty() || !session.empty() || !parent.empty() ||
         !search.empty() || !since.empty() || !until.empty();
}

Result<store::Filter> FilterOptions::read(WallTime now) const {
  store::Filter filter;
  for (const std::string& name : states) {
    if (const auto state = domain::parse_run_state(name)) filter.states.push_back(*state);
  }
  for (const std::string& name : holds) {
    if (const auto hold = domain::parse_hold(name)) filter.holds.push_back(*hold);
  }
  filter.agent = agent;
  filter.session = session;
  filter.parent = parent;
  if (!search.empty()) {
    STINT_TRY(filter.search, of_option("--search", wire::read_search(search)));
  }
  STINT_TRY(filter.since, read_moment("--since", since, now));
  STINT_TRY(filter.until, read_moment("--until", until, now));
  return filter;
}

}  // namespace stint::cli
