/// Whose a file or a port is, for error messages.
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>

namespace stint::os {

/// The user's name, or `user 1234` if it has none.
[[nodiscard]] std::string user_name(uid_t user);
/// The owner of the file, or of the nearest folder above it that exists; empty if that is this user, or unknown, or a
/// folder of root above the file: those lie above everyone's.
[[nodiscard]] std::string foreign_owner(const std::string& path);
/// Which process listens on a TCP port of this host: "process 4711 (stint serve, in /home/a/project)". Of another
/// user's process only the user is known. Empty: none that can be seen.
[[nodiscard]] std::string port_owner(std::uint16_t port);

}  // namespace stint::os
