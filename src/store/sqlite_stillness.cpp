#include "store/sqlite_stillness.hpp"

namespace stint::store {

SqliteStillness::Look SqliteStillness::look(TimePoint now) noexcept {
  const os::FileStamp file = os::file_stamp(file_), log = os::file_stamp(log_);
  if (changes_ == 0 || file != file_stamp_ || log != log_stamp_) {
    file_stamp_ = file;
    log_stamp_ = log;
    ++changes_;
    changed_at_ = now;
  }
  const bool coarse = log.written_ns == 0;  // also if there is none: who writes to the file is about to make it
  return {changes_, now - changed_at_ >= (coarse ? kSettlesCoarse : kSettles)};
}

}  // namespace stint::store
