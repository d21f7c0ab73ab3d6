/// The file through which commands find the daemon of their project, and the first line of `stint serve --json`.
#pragma once

#include "stint/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace stint::wire {

struct DaemonPlace {
  std::string url;
  std::int64_t pid = 0;
  std::string token_file;
  std::string root;  ///< the checkout that it takes agents from and runs them in
};
[[nodiscard]] std::string to_json(const DaemonPlace& place);
[[nodiscard]] Result<DaemonPlace> read_daemon_place(std::string_view text);

struct Serving {
  std::string url, token, store;
  std::uint64_t agents = 0;
};
[[nodiscard]] std::string to_json(const Serving& serving);

}  // namespace stint::wire
