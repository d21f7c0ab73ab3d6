#include "store/sqlite_faulty_disk.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <sqlite3.h>

namespace stint::store {
namespace {

constexpr std::size_t kSector = 512;
constexpr int kTracked = SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL;

}  // namespace

/// SQLite's view of a file; the system's own file follows it in memory.
struct FaultyDisk::File {
  sqlite3_file base;
  FaultyDisk* disk;
  std::shared_ptr<Content> content;  // null: a temporary file

  sqlite3_file* system() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

struct FaultyDisk::Methods {
  static File& file(sqlite3_file* base) { return *reinterpret_cast<File*>(base); }
  static sqlite3_file* sys(sqlite3_file* base) { return file(base).system(); }

  static int close(sqlite3_file* base) {
    sqlite3_file* const system = sys(base);
    const int code = system->pMethods->xClose(system);
    file(base).~File();
    return code;
  }
  static int read(sqlite3_file* base, void* to, int size, sqlite3_int64 at) {
    return file(base).disk->read(file(base), to, size, at);
  }
  static int write(sqlite3_file* base, const void* from, int size, sqlite3_int64 at) {
    return file(base).disk->write(file(base), {static_cast<const char*>(from), static_cast<std::size_t>(size)}, at);
  }
  static int truncate(sqlite3_file* base, sqlite3_int64 size) { return file(base).disk->cut(file(base), size); }
  static int sync(sqlite3_file* base, int /*flags*/) { return file(base).disk->sync(file(base)); }
  static int size(sqlite3_file* base, sqlite3_int64* to) { return sys(base)->pMethods->xFileSize(sys(base), to); }
  static int lock(sqlite3_file* base, int level) { return sys(base)->pMethods->xLock(sys(base), level); }
  static int unlock(sqlite3_file* base, int level) { return sys(base)->pMethods->xUnlock(sys(base), level); }
  static int reserved(sqlite3_file* base, int* to) { return sys(base)->pMethods->xCheckReservedLock(sys(base), to); }
  static int control(sqlite3_file* base, int what, void* value) {
    return sys(base)->pMethods->xFileControl(sys(base), what, value);
  }
  static int sector(sqlite3_file* base) { return sys(base)->pMethods->xSectorSize(sys(base)); }
  static int traits(sqlite3_file* base) { return sys(base)->pMethods->xDeviceCharacteristics(sys(base)); }
  static int shm_map(sqlite3_file* base, int page, int size, int extend, void volatile** to) {
    return sys(base)->pMethods->xShmMap(sys(base), page, size, extend, to);
  }
  static int shm_lock(sqlite3_file* base, int from, int count, int flags) {
    return sys(base)->pMethods->xShmLock(sys(base), from, count, flags);
  }
  static void shm_barrier(sqlite3_file* base) { sys(base)->pMethods->xShmBarrier(sys(base)); }
  static int shm_unmap(sqlite3_file* base, int remove) { return sys(base)->pMethods->xShmUnmap(sys(base), remove); }

  static constexpr sqlite3_io_methods kAll = {2,        close,       read,      write,   truncate, sync,   size,
                                              lock,     unlock,      reserved,  control, sector,   traits, shm_map,
                                              shm_lock, shm_barrier, shm_unmap, nullptr, nullptr};

  static FaultyDisk& disk(sqlite3_vfs* vfs) { return *static_cast<FaultyDisk*>(vfs->pAppData); }
  static int open(sqlite3_vfs* vfs, const char* path, sqlite3_file* base, int flags, int* out) {
    FaultyDisk& disk = Methods::disk(vfs);
    File* const made = new (base) File{{}, &disk, nullptr};
    const int code = disk.system_->xOpen(disk.system_, path, made->system(), flags, out);
    if (code != SQLITE_OK && made->system()->pMethods == nullptr) {
      made->~File();
      base->pMethods = nullptr;
      return code;
    }
    base->pMethods = &kAll;
    if (path != nullptr && (flags & kTracked) != 0) made->content = disk.content_of(path);
    return code;
  }
  static int remove(sqlite3_vfs* vfs, const char* path, int sync_folder) {
    FaultyDisk& disk = Methods::disk(vfs);
    {
      const std::lock_guard lock(disk.mutex_);
      if (disk.off_) return SQLITE_IOERR_DELETE;
      disk.contents_.erase(path);
    }
    return disk.system_->xDelete(disk.system_, path, sync_folder);
  }
};

FaultyDisk::FaultyDisk() : system_(sqlite3_vfs_find(nullptr)), vfs_(std::make_unique<sqlite3_vfs>(*system_)) {
  vfs_->zName = "stint_faulty_disk";
  vfs_->pNext = nullptr;
  vfs_->pAppData = this;
  vfs_->szOsFile = static_cast<int>(sizeof(File)) + system_->szOsFile;
  vfs_->xOpen = Methods::open;
  vfs_->xDelete = Methods::remove;
  if (sqlite3_vfs_register(vfs_.get(), 1) != SQLITE_OK) std::abort();
}

FaultyDisk::~FaultyDisk() {
  sqlite3_vfs_unregister(vfs_.get());
  sqlite3_vfs_register(system_, 1);
}

std::uint64_t FaultyDisk::operations() {
  const std::lock_guard lock(mutex_);
  return operations_;
}

void FaultyDisk::fail_in(std::uint64_t in, Fault fault, std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  fault_ = fault;
  failed_ = false;
  fails_from_ = operations_ + in;
  fails_until_ = count == kForever ? kForever : fails_from_ + count;
}

void FaultyDisk::fail_reads_in(std::uint64_t in, std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  failed_ = false;
  reads_fail_from_ = reads_ + in;
  reads_fail_until_ = count == kForever ? kForever : reads_fail_from_ + count;
}

void FaultyDisk::heal() {
  const std::lock_guard lock(mutex_);
  fails_from_ = reads_fail_from_ = kForever;
  off_ = false;
}

bool FaultyDisk::has_failed() {
  const std::lock_guard lock(mutex_);
  return failed_;
}

void FaultyDisk::delay_syncs(Duration by) {
  const std::lock_guard lock(mutex_);
  sync_time_ = by;
}

void FaultyDisk::hold_syncs() {
  const std::lock_guard lock(mutex_);
  held_ = true;
}

void FaultyDisk::let_syncs_go() {
  const std::lock_guard lock(mutex_);
  held_ = false;
  changed_.notify_all();
}

bool FaultyDisk::is_sync_held() {
  const std::lock_guard lock(mutex_);
  return waits_;
}

void FaultyDisk::ignore_syncs() {
  const std::lock_guard lock(mutex_);
  ignores_syncs_ = true;
}

void FaultyDisk::apply(std::string& content, const Change& change) {
  const auto at = static_cast<std::size_t>(change.at);
  if (change.cuts) {
    content.resize(at);
    return;
  }
  content.resize(std::max(content.size(), at + change.bytes.size()));
  content.replace(at, change.bytes.size(), change.bytes);
}

std::shared_ptr<FaultyDisk::Content> FaultyDisk::content_of(const std::string& path) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Content>& content = contents_[path];
  if (content) return content;
  content = std::make_shared<Content>();
  content->path = path;
  // Closing this descriptor drops no lock of SQLite's: this is the first connection, which has locked nothing yet.
  std::ifstream file(path, std::ios::binary);
  content->durable.assign(std::istreambuf_iterator<char>(file), {});
  return content;
}

int FaultyDisk::next_operation(int io_error, bool needs_room) {
  ++operations_;
  if (off_) return io_error;
  if (operations_ < fails_from_ || operations_ >= fails_until_) return SQLITE_OK;
  if (fault_ == Fault::full && !needs_room) return SQLITE_OK;
  failed_ = true;
  if (fault_ == Fault::full) return SQLITE_FULL;
  off_ = fault_ == Fault::power_cut;
  return io_error;
}

int FaultyDisk::read(File& file, void* to, int size, std::int64_t at) {
  {
    const std::lock_guard lock(mutex_);
    if (file.content && ++reads_ >= reads_fail_from_ && reads_ < reads_fail_until_) {
      failed_ = true;
      return SQLITE_IOERR_READ;
    }
  }
  sqlite3_file* const system = file.system();
  return system->pMethods->xRead(system, to, size, at);
}

int FaultyDisk::write(File& file, std::string_view bytes, std::int64_t at) {
  const std::lock_guard lock(mutex_);
  if (file.content) {
    if (const int code = next_operation(SQLITE_IOERR_WRITE, true); code != SQLITE_OK) return code;
    file.content->pending.push_back({at, std::string(bytes), false});
  }
  sqlite3_file* const system = file.system();
  return system->pMethods->xWrite(system, bytes.data(), static_cast<int>(bytes.size()), at);
}

int FaultyDisk::cut(File& file, std::int64_t size) {
  const std::lock_guard lock(mutex_);
  if (file.content) {
    if (const int code = next_operation(SQLITE_IOERR_TRUNCATE, false); code != SQLITE_OK) return code;
    file.content->pending.push_back({size, {}, true});
  }
  sqlite3_file* const system = file.system();
  return system->pMethods->xTruncate(system, size);
}

/// Does not really sync: that is slow, and the machine of the test does not lose power.
int FaultyDisk::sync(File& file) {
  std::unique_lock lock(mutex_);
  if (!file.content) return SQLITE_OK;
  waits_ = held_;
  changed_.wait(lock, [this] { return !held_; });
  waits_ = false;
  if (sync_time_ > Duration::zero()) changed_.wait_for(lock, sync_time_, [] { return false; });
  std::vector<Change>& pending = file.content->pending;
  const int code = next_operation(SQLITE_IOERR_FSYNC, false);
  if (off_) return code;
  if (code == SQLITE_OK && ignores_syncs_) return code;
  if (code == SQLITE_OK) {
    for (const Change& change : pending) apply(file.content->durable, change);
  }
  pending.clear();
  return code;
}

void FaultyDisk::lose_unsynced(std::uint64_t seed) {
  const std::lock_guard lock(mutex_);
  std::mt19937_64 random(seed);
  for (const auto& [path, content] : contents_) {
    std::string left = content->durable;
    for (Change change : content->pending) {
      const std::uint64_t chance = random() % 4;
      if (chance == 0) continue;
      if (chance == 1 && !change.cuts && change.bytes.size() > kSector) {
        change.bytes.resize(kSector * (1 + random() % (change.bytes.size() / kSector)));
      }
      apply(left, change);
    }
    std::ofstream(path, std::ios::binary | std::ios::trunc).write(left.data(), std::ssize(left));
  }
  contents_.clear();
  off_ = false;
  fails_from_ = reads_fail_from_ = kForever;
}

}  // namespace stint::store
