/// Finds the daemon of a project: by `STINT_URL`, or by the file that each daemon keeps beside the store.
#pragma once

#include "project/checkout.hpp"

#include <optional>
#include <string>

namespace stint::fleet {

struct DaemonLocation {
  std::string url;    ///< without a trailing slash
  std::string token;  ///< empty: none is known
  /// The checkout that the daemon serves, if it is not ours: it reads other files, and runs in another folder.
  std::string elsewhere;
  bool named = false;  ///< by `STINT_URL`
  std::string remedy;  ///< shown if it does not answer: what names the daemon, and what to do
};
/// None: no daemon runs. Skips files of dead processes; of several daemons prefers one that serves this checkout, then
/// the newest. A daemon's token is a regular file beside its own, and is sent only to its own address, never to another
/// that `STINT_URL` names. Fails if `STINT_URL` is not a URL, or the project can't be found.
[[nodiscard]] Result<std::optional<DaemonLocation>> blocking_find_daemon(const project::Location& location);

}  // namespace stint::fleet
