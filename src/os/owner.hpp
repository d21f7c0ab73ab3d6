/// Names the owner of a file or a port, for error messages.
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>

namespace stint::os {

/// The user's name, or `user 1234` if it has none.
[[nodiscard]] std::string user_name(uid_t user);
/// The owner of the file, or of the nearest existing folder above it; empty if that is this user or unknown, or if it
/// is a folder of root above the file: those are above every user's files.
[[nodiscard]] std::string foreign_owner(const std::string& path);
/// The process that listens on a TCP port of this host: "process 4711 (stint serve, in /home/a/project)". For another
/// user's process only the user is known. Empty: none visible.
[[nodiscard]] std::string port_owner(std::uint16_t port);

}  // namespace stint::os
