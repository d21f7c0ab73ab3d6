/// Tells from outside whether a SQLite database may have been written to: by its files' sizes and times, without a
/// lock, a read or another thread. What was read while nothing was written counts until something is.
///
/// (To look into the files would be surer and is forbidden: whoever closes a file that SQLite has open lets go of the
/// locks of the whole process.) Own thread only.
#pragma once

#include "os/file_time.hpp"
#include "stint/time.hpp"

#include <cstdint>
#include <string>

namespace stint::store {

class SqliteStillness {
 public:
  /// So long after a change another one may hide behind it: some steps of the clock by which files are dated. That of
  /// some file systems has steps of one or two seconds.
  static constexpr Duration kSettles = std::chrono::milliseconds(50), kSettlesCoarse = std::chrono::seconds(3);

  struct Look {
    std::uint64_t changes = 0;  ///< seen so far
    bool settled = false;       ///< the last one is long enough ago that the next will be seen
    friend bool operator==(const Look&, const Look&) = default;
  };

  /// `path`: where the file lies, not a link to it: SQLite has its log there.
  explicit SqliteStillness(const std::string& path) : file_(path), log_(path + "-wal") {}
  /// Before what is to be remembered is read. Two equal looks that are settled: nothing was written between them.
  [[nodiscard]] Look look(TimePoint now) noexcept;

 private:
  const std::string file_, log_;
  os::FileStamp file_stamp_, log_stamp_;
  std::uint64_t changes_ = 0;
  TimePoint changed_at_{};
};

}  // namespace stint::store
