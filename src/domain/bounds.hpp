/// How long the texts of a run may be that other things are found or shown by. What a run is given to work on, its
/// arguments and its prompt, is bounded by the request that brings it.
#pragma once

#include <cstddef>

namespace stint::domain {

/// A row of an index of PostgreSQL has at most 2,704 bytes. Much less is plenty for a name that a client makes up.
inline constexpr std::size_t kSessionBytesMax = 512;
inline constexpr std::size_t kKeyBytesMax = 512;       // of idempotency; with the id that stands before that of a run's
inline constexpr std::size_t kModelBytesMax = 256;     // a name that is passed on to a driver
inline constexpr std::size_t kShownNameBytesMax = 80;  // of a name that a message quotes
inline constexpr std::size_t kTitleBytesMax = 256;     // for people: a longer one is cut, not refused

}  // namespace stint::domain
