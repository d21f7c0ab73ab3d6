/// The file by which the commands of a project find its daemon.
#pragma once

#include "stint/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace stint::wire {

struct DaemonFile {
  std::string url;         ///< "http://127.0.0.1:7717"
  std::int64_t pid = 0;    ///< whoever reads it looks whether that still lives
  std::string token_file;  ///< empty: no token is asked for

  friend bool operator==(const DaemonFile&, const DaemonFile&) = default;
};
[[nodiscard]] std::string to_json(const DaemonFile& file);
[[nodiscard]] Result<DaemonFile> read_daemon_file(std::string_view text);

}  // namespace stint::wire
