/// A disk for tests, as a SQLite VFS over the system's own: slow syncs, I/O errors, a full disk, and power cuts that
/// lose unsynced writes. It is SQLite's default VFS during its lifetime; close all databases before it is destroyed.
/// One instance at a time. Any thread.
///
/// An operation is a write, a truncation or a sync of a database, its log or its journal. Shared memory is not
/// covered: it does not survive a power cut anyway.
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
    io_error,   ///< EIO. After a failed sync its data never becomes durable, as on Linux
    full,       ///< writes that need room fail; syncs work
    power_cut,  ///< all operations from there on have no effect
  };
  static constexpr std::uint64_t kForever = UINT64_MAX;

  FaultyDisk();
  ~FaultyDisk();
  FaultyDisk(const FaultyDisk&) = delete;
  FaultyDisk& operator=(const FaultyDisk&) = delete;

  /// The number of operations so far.
  [[nodiscard]] std::uint64_t operations();
  /// `in` = 1: the next operation, and `count` in a row. Until heal().
  void fail_in(std::uint64_t in, Fault fault, std::uint64_t count = kForever);
  /// The same for reads, which are counted separately; they fail with an I/O error.
  void fail_reads_in(std::uint64_t in, std::uint64_t count = kForever);
  /// Removes all faults; the power is back.
  void heal();
  [[nodiscard]] bool has_failed();

  /// Every sync takes at least this long.
  void delay_syncs(Duration by);
  /// Blocks syncs until they are released.
  void hold_syncs();
  void let_syncs_go();
  [[nodiscard]] bool is_sync_held();
  /// Answers syncs without making anything durable, like synchronous=OFF: tests of durability must detect it.
  void ignore_syncs();

  /// After a power cut, with all databases closed: each write since the last sync of its file is kept, lost, or torn
  /// between sectors. The seed decides.
  void lose_unsynced(std::uint64_t seed);

 private:
  struct Change {
    std::int64_t at = 0;
    std::string bytes;
    bool cuts = false;  // a truncation to `at`
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
  /// The error code of the operation; 0: it succeeds.
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
