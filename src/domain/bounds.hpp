/// Bounds on the keys and labels of a run. Its arguments and its prompt are bounded by the size of the request.
#pragma once

#include <cstddef>

namespace stint::domain {

/// A row of a PostgreSQL index has at most 2,704 bytes. Much less is plenty for a name that a client makes up.
inline constexpr std::size_t kSessionBytesMax = 512;
inline constexpr std::size_t kKeyBytesMax = 512;       // idempotency key, with the prefix of a run's own submissions
inline constexpr std::size_t kModelBytesMax = 256;     // a name that is passed on to a driver
inline constexpr std::size_t kShownNameBytesMax = 80;  // of a name quoted in a message
inline constexpr std::size_t kTitleBytesMax = 256;     // a longer title is cut, not refused

}  // namespace stint::domain
