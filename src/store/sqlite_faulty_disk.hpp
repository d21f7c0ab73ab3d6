/// A disk for tests, as a SQLite VFS over the system's own: syncs that take long, I/O errors, no room, and power cuts
/// that lose what was not synced. It is SQLite's default VFS as long as it lives; databases must be closed before it
/// goes. One at a time. Any thread.
///
/// An operation is a write, a truncation or a sync of a database, its log or its journal. Shared memory is not part of
/// it: it does not survive a power cut anyway.
#pragma once

#include "stint/time.hpp"

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3_file;
struct sqlite3_vfs;

namespace stint::store {

class FaultyDisk {
 public:
  enum class Fault : std::uint8_t {
    io_error,   ///< EIO. After a failed sync, what it was to make durable never is, as Linux has it
    full,       ///< writes that do not fit are refused; syncs work
    power_cut,  ///< from there on nothing is done
  };
  static constexpr std::uint64_t kForever = UINT64_MAX;

  FaultyDisk();
  ~FaultyDisk();
  FaultyDisk(const FaultyDisk&) = delete;
  FaultyDisk& operator=(const FaultyDisk&) = delete;

  /// So far.
  [[nodiscard]] std::uint64_t operations();
  /// `in` = 1: the next operation, and `count` in a row. Until heal().
  void fail_in(std::uint64_t in, Fault fault, std::uint64_t count = kForever);
  /// The same for reads, which are counted apart; they fail with an I/O error.
  void fail_reads_in(std::uint64_t in, std::uint64_t count = kForever);
  /// No fault is ahead any more; the power is back.
  void heal();
  [[nodiscard]] bool has_failed();

  /// Every sync takes at least so long.
  void delay_syncs(Duration by);
  /// Syncs wait until they are let go.
  void hold_syncs();
  void let_syncs_go();
  [[nodiscard]] bool is_sync_held();
  /// Answers syncs without making anything durable, as synchronous=OFF does: what tests of durability must notice.
  void ignore_syncs();

  /// After a power cut, with all databases closed: of the writes since a file's last sync, each is there, lost, or torn
  /// between sectors. The seed decides.
  void lose_unsynced(std::uint64_t seed);

 private:
  struct Change {
    std::int64_t at = 0;
    std::string bytes;
    bool cuts = false;  // the file ends at `at`
  };
  struct Content {
    std::string path, durable;
    std::vector<Change> pending;
  };
  struct Methods;
  struct File;
  friend struct Methods;

  static void apply(std::string& content, const Change& change);
  std::shared_ptr<Content> content_of(const std::string& path);
  /// The code that the operation fails with; 0: it goes well.
  int next_operation(int io_error, bool needs_room);
  int read(File& file, void* to, int size, std::int64_t at);
  int write(File& file, std::string_view bytes, std::int64_t at);
  int cut(File& file, std::int64_t size);
  int sync(File& file);

  sqlite3_vfs* system_;
  std::unique_ptr<sqlite3_vfs> vfs_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::shared_ptr<Content>> contents_;
  std::uint64_t operations_ = 0, fails_from_ = kForever, fails_until_ = kForever;
  std::uint64_t reads_ = 0, reads_fail_from_ = kForever, reads_fail_until_ = kForever;
  Fault fault_ = Fault::io_error;
  Duration sync_time_{};
  bool held_ = false, waits_ = false, failed_ = false, off_ = false, ignores_syncs_ = false;
};

}  // namespace stint::store
