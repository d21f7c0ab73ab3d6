#include "project/checkout.hpp"

#include "agent/trust.hpp"

namespace stint::project {

Result<agent::Project> blocking_find_own_project(const Location& location) {
  STINT_TRY(agent::Project project, agent::blocking_find_project(location.folder));
  const auto places = agent::user_places(location.variables);  // without them nothing can be trusted
  STINT_CHECK(agent::blocking_check_owner(places ? places->state : "", project, location.variables));
  STINT_CHECK(agent::blocking_check_links(places ? places->state : "", project));
  return project;
}

Result<Checkout> blocking_read_checkout(const Location& location) {
  STINT_TRY(agent::Project project, blocking_find_own_project(location));
  agent::LoadedSettings loaded = agent::blocking_load_settings(project.root, location.variables);
  for (const agent::Problem& problem : loaded.problems) {
    if (problem.severity == agent::Severity::error) return fail(Errc::invalid, describe(problem));
  }
  const agent::Setting* const retention = loaded.settings.find("retention.runs");
  if (!project.is_repository() && retention != nullptr && retention->origin.kind == agent::OriginKind::project) {
    // All such folders share the user's store: the settings of one must not decide the retention of the others.
    STINT_TRY(const agent::UserPlaces places, agent::user_places(location.variables));
    loaded.settings.retention = agent::blocking_load_settings(places.state, location.variables).settings.retention;
  }
  if (const auto thing = agent::setting_that_needs_trust(loaded.settings)) {
    STINT_TRY(const agent::UserPlaces places, agent::user_places(location.variables));
    STINT_TRY(const bool trusted, agent::blocking_is_trusted(places.state, project));
    if (!trusted) return fail(agent::untrusted(project, *thing));
  }
  return Checkout{std::move(project), std::move(loaded.settings), std::move(loaded.problems)};
}

}  // namespace stint::project
