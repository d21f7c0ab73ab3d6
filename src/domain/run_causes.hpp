/// The names of all changes of a run's state: the causes of its events, besides those that its owner adds as notes.
#pragma once

#include <set>
#include <string_view>

namespace stint::domain {

[[nodiscard]] std::set<std::string_view> run_causes();

}  // namespace stint::domain
