/// Where a daemon of the project answers: `STINT_URL`, or the file that each leaves beside the store while it lives.
#pragma once

#include "project/checkout.hpp"

#include <functional>
#include <optional>
#include <string>

namespace stint::fleet {

struct DaemonLocation {
  std::string url;    ///< without a slash at its end
  std::string token;  ///< empty: none is known
  /// The checkout that it serves, if that is another than ours: it knows other files, and runs in another folder.
  std::string elsewhere;
  bool named = false;  ///< by `STINT_URL`
  std::string remedy;  ///< if it does not answer, for people: how we know of it, and what to do
};
/// None: there is none. What a process left that is gone is passed over; of several, one that serves this checkout goes
/// first, then the one that came last. Its token is a file beside it and no link, and goes to its own address only,
/// never to another that `STINT_URL` names. Fails if `STINT_URL` is none, or the project can't be found.
[[nodiscard]] Result<std::optional<DaemonLocation>> blocking_find_daemon(const project::Location& location);
/// For who goes on asking after it: what is there now; none if that can't be told.
[[nodiscard]] std::function<std::optional<DaemonLocation>()> find_again_in(const project::Location& location);

}  // namespace stint::fleet
