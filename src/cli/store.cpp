#include "cli/store.hpp"

#include "cli/environment.hpp"
#include "cli/print.hpp"
#include "cli/printable.hpp"
#include "fleet/store_location.hpp"
#include "os/fd.hpp"
#include "store/audit.hpp"
#include "store/transfer.hpp"
#include "wire/store_file.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <memory>

namespace stint::cli {
namespace {

using store::Moved;
using store::RunRecord;

constexpr std::size_t kRecordsPage = 200;
constexpr std::size_t kFileBlock = 64 << 10;
constexpr std::size_t kLineMax = 512 << 20;  // one line of an export: a run with its events and its conversation
constexpr std::string_view kSqliteHead = "SQLite format 3";

struct Close {
  void operator()(std::FILE* file) const noexcept {
    if (file != stdin && file != stdout) std::fclose(file);
  }
};
using File = std::unique_ptr<std::FILE, Close>;

std::string describe(const Moved& moved) {
  const auto some = [](std::uint64_t n, const char* one) { return fmt::format("{} {}{}", n, one, n == 1 ? "" : "s"); };
  return fmt::format("{}, {}, {} with {}", some(moved.agents, "agent"), some(moved.limits, "limit"),
                     some(moved.runs, "run"), some(moved.events, "event"));
}

// ---- export
// ----------------------------------------------------------------------------------------------------------

/// Blocks while it writes, which is fine: the command does nothing else.
class FileSink final : public store::Sink {
 public:
  FileSink(File file, std::string name) : file_(std::move(file)), name_(std::move(name)) {}

  Task<Result<>> take(store::AgentEntry agent) override { co_return blocking_write(wire::to_json(agent)); }
  Task<Result<>> take(store::LimitState limit) override { co_return blocking_write(wire::to_json(limit)); }
  Task<Result<>> take(std::vector<RunRecord> runs) override {
    for (const RunRecord& record : runs) STINT_CO_CHECK(blocking_write(wire::to_json(record)));
    co_return Result<>();
  }
  Result<> blocking_write(const std::string& line) {
    const bool whole = std::fwrite(line.data(), 1, line.size(), file_.get()) == line.size();
    if (!whole || std::fputc('\n', file_.get()) == EOF) return fail(broken());
    return {};
  }
  Result<> blocking_flush() {
    if (std::fflush(file_.get()) != 0) return fail(broken());
    return {};
  }

 private:
  [[nodiscard]] Error broken() const { return {Errc::failed, name_ + ": can't be written; check the disk space"}; }
  File file_;
  std::string name_;
};

Task<Result<Moved>> export_to(store::Store& from, FileSink& sink) {
  STINT_CO_CHECK(sink.blocking_write(wire::store_file_head()));
  STINT_CO_TRY(const Moved moved, co_await store::copy_store(from, sink));
  STINT_CO_CHECK(sink.blocking_write(wire::store_file_end(moved)));
  STINT_CO_CHECK(sink.blocking_flush());
  co_return moved;
}

Result<File> blocking_create(const std::string& name) {
  if (name == "-") return File(stdout);
  // Never overwrites a file. Mode 0600: prompts and output are private.
  os::Fd made(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  File file(made ? ::fdopen(made.get(), "w") : nullptr);
  if (file) (void)made.release();
  if (!file) return fail(Errc::failed, name + ": can't be created; it may exist already");
  return file;
}

// ---- import
// ----------------------------------------------------------------------------------------------------------

/// Reads an export line by line.
class Lines {
 public:
  Lines(File file, std::string name) : file_(std::move(file)), name_(std::move(name)) {}

  /// None: end of file.
  Result<std::optional<wire::StoreFileLine>> blocking_next() {
    std::size_t end = std::string::npos;
    for (std::size_t looked = begin_; (end = buffer_.find('\n', looked)) == std::string::npos;) {
      buffer_.erase(0, std::exchange(begin_, 0));
      looked = buffer_.size();
      if (looked > kLineMax) {
        return fail(Errc::invalid, fmt::format("{}:{}: the line has more than {} bytes, so this is not an export",
                                               name_, number_ + 1, kLineMax));
      }
      buffer_.resize(looked + kFileBlock);
      buffer_.resize(looked + std::fread(buffer_.data() + looked, 1, kFileBlock, file_.get()));
      if (std::ferror(file_.get()) != 0) return fail(Errc::failed, name_ + ": can't be read");
      if (buffer_.size() > looked) continue;
      if (buffer_.empty()) return std::nullopt;
      end = buffer_.size();  // the last line was cut off
      break;
    }
    ++number_;
    auto line = wire::parse_store_line(std::string_view(buffer_).substr(begin_, end - begin_));
    begin_ = std::min(end + 1, buffer_.size());
    if (line) return std::optional(std::move(*line));
    return fail(line.error().code(), fmt::format("{}:{}: {}", name_, number_, line.error().what()));
  }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  File file_;
  std::string name_;
  std::string buffer_;
  std::size_t begin_ = 0;  // of the next line
  std::uint64_t number_ = 0;
};

Error cut_off(const std::string& name, const Moved& read) {
  return {Errc::invalid,
          fmt::format("{} is incomplete: its end is missing after {}. Export it again and import that; what "
                      "was read is in the store and will not be added twice",
                      name, describe(read))};
}

Task<Result<Moved>> import_lines(Lines& lines, WallTime now, store::Sink& into) {
  Moved read;
  std::vector<RunRecord> page;
  std::size_t page_messages = 0;  // bytes
  bool begun = false;
  while (true) {
    STINT_CO_TRY(std::optional<wire::StoreFileLine> line, lines.blocking_next());
    if (!line) co_return fail(begun ? cut_off(lines.name(), read) : Error(Errc::invalid, lines.name() + " is empty"));
    if (!begun && !std::holds_alternative<wire::StoreFileHead>(*line)) {
      co_return fail(Errc::invalid, lines.name() + " is not an export of a store");
    }
    begun = true;
    if (auto* const record = std::get_if<RunRecord>(&*line)) {
      ++read.runs;
      read.events += record->events.size();
      for (const std::string& message : record->conversation) page_messages += message.size();
      page.push_back(std::move(*record));
      if (page.size() == kRecordsPage || page_messages > store::kConversationMax) {
        STINT_CO_CHECK(co_await into.take(std::exchange(page, {})));
        page_messages = 0;
      }
    } else if (auto* const agent = std::get_if<store::AgentEntry>(&*line)) {
      ++read.agents;
      STINT_CO_CHECK(co_await into.take(std::move(*agent)));
    } else if (auto* const limit = std::get_if<store::LimitState>(&*line)) {
      ++read.limits;
      if (limit->paused_until) limit->paused_for = std::max<Duration>(*limit->paused_until - now, Duration::zero());
      STINT_CO_CHECK(co_await into.take(std::move(*limit)));
    } else if (const auto* const end = std::get_if<Moved>(&*line)) {
      if (!page.empty()) STINT_CO_CHECK(co_await into.take(std::move(page)));
      if (*end != read) co_return fail(cut_off(lines.name(), read));
      co_return read;
    }
  }
}

Error not_readable(const std::string& name) { return {Errc::invalid, name + ": can't be read; check the name"}; }

Result<File> blocking_open(const std::string& name) {
  if (name == "-") return File(stdin);
  File file(std::fopen(name.c_str(), "rbe"));
  if (!file) return fail(not_readable(name));
  return file;
}

/// Looks only at regular files: bytes read from a pipe can't be read again.
bool blocking_is_database(const std::string& name, std::FILE* file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(name, error)) return false;
  std::string head(kSqliteHead.size(), '\0');
  const bool whole = std::fread(head.data(), 1, head.size(), file) == head.size();
  std::rewind(file);
  return whole && head == kSqliteHead;
}

Task<Result<Moved>> import_from(Reactor& reactor, const domain::System& system, const std::string& name,
                                store::Sink& into) {
  STINT_CO_TRY(File file, blocking_open(name));
  if (blocking_is_database(name, file.get())) {
    file.reset();
    fleet::StoreLocation place;
    place.path = name;
    STINT_CO_TRY(const auto from, co_await fleet::open_store(reactor, place, system));
    co_return co_await store::copy_store(*from, into);
  }
  Lines lines(std::move(file), name);
  co_return co_await import_lines(lines, system.wall_now(), into);
}

// ---- looking
// ---------------------------------------------------------------------------------------------------------

std::string size(std::uint64_t bytes) {
  constexpr double kUnit = 1024;
  const double kib = static_cast<double>(bytes) / kUnit;
  if (kib < kUnit) return fmt::format("{:.0f} KiB", kib);
  return fmt::format("{:.1f} MiB", kib / kUnit);
}

void print_stats(const fleet::StoreLocation& place, const store::Stats& stats,
                 const std::vector<store::LimitState>& limits) {
  print_out("{}  {}\n", printable(place.shown), size(stats.bytes));
  std::uint64_t runs = 0;
  for (const auto& [state, count] : stats.runs) runs += count;
  print_out("  {:>9}  runs\n", runs);
  for (const auto& [state, count] : stats.runs) {
    if (count > 0) print_out("  {:>9}  {}\n", count, to_string(state));
  }
  print_out("  {:>9}  queued and ready\n  {:>9}  events\n  {:>9}  nodes\n", stats.ready, stats.events, stats.nodes);
  for (const store::LimitState& limit : limits) {
    const std::string of = limit.capacity ? fmt::format(" of {}", *limit.capacity) : "";
    print_out("  {:>9}  held{} of {}{}\n", limit.units, of, printable(limit.name), limit.paused ? ", paused" : "");
  }
}

void print_audit(const fleet::StoreLocation& place, const store::Audit& audit) {
  for (const std::string& finding : audit.findings) print_out("{}\n", printable(finding));
  print_out("{}: {} runs with {} events, {}\n", printable(place.shown), audit.runs, audit.events,
            audit.findings.empty() ? "sound" : fmt::format("{} findings", audit.findings.size()));
}

void print_schema(const fleet::StoreLocation& place, const store::Schema& schema) {
  const std::string shown = printable(place.shown);
  if (schema.found == schema.now) {
    print_out("{}: schema {}, up to date\n", shown, schema.now);
  } else if (schema.found == 0) {
    print_out("{}: created, schema {}\n", shown, schema.now);
  } else {
    print_out("{}: migrated from schema {} to {}\n", shown, schema.found, schema.now);
  }
}

}  // namespace

StoreCommand::StoreCommand(CLI::App& app)
    : command_(app, "store", "Inspect, check, migrate, export and import the store of runs"),
      stats_(app, "store stats", "Count what is in the store"),
      check_(app, "store check", "Check the store: the file, each run with its events, sessions, keys"),
      migrate_(app, "store migrate", "Create the store, or migrate its tables. Every start does that, too"),
      export_(app, "store export", "Write everything to a file, one line of JSON per agent, limit and run"),
      import_(app, "store import", "Add the contents of an export or of another SQLite store") {
  command_.footer(
      "The setting `store` names it: \"sqlite\", a file beside the repository, or the address of a PostgreSQL "
      "database,\n"
      "which belongs into STINT_STORE. To move from SQLite to PostgreSQL:\n"
      "  STINT_STORE=postgres://… stint store import .git/stint/stint.db");
  export_.footer("No run may be under way: drain the daemons first.");
  export_.option("FILE", to_, "Write this new file; - is standard output").value("").shows_default();
  import_.footer(
      "An agent, limit or run that the store already has (by name or id) stays as it is: an interrupted import can be\n"
      "repeated.");
  import_.option("FILE", from_, "Read this export, - for standard input, or a SQLite store").value("").required();
  for (Command* const command : {&stats_, &check_, &migrate_, &export_, &import_}) {
    command->flag("--json", json_, "Print one JSON object");
  }
}

bool StoreCommand::chosen() const { return command_.chosen(); }

int StoreCommand::run(const domain::System& system) {
  const auto place = fleet::blocking_find_store(blocking_read_environment());
  if (!place) return complain(place.error());
  if (!place->exists() && !migrate_.chosen() && !import_.chosen()) {
    return complain({Errc::invalid, "there is no store yet at " + place->shown + ". `stint store migrate` creates it"});
  }
  std::error_code error;
  if (import_.chosen() && from_ != "-" && !std::filesystem::exists(from_, error)) {
    return complain(not_readable(from_));  // so that no store is created for nothing
  }
  Reactor reactor;
  int status = kExitDone;
  const auto act = [&]() -> Task<Result<>> {
    STINT_CO_TRY(const auto store, co_await fleet::open_store(reactor, *place, system));
    if (check_.chosen()) {
      STINT_CO_TRY(const store::Audit audit, co_await store::audit(*store));
      json_ ? print_out("{}\n", wire::audit_to_json(place->shown, audit)) : print_audit(*place, audit);
      if (!audit.findings.empty()) status = kExitFailed;
    } else if (migrate_.chosen()) {
      const store::Schema schema = store->schema();
      json_ ? print_out("{}\n", wire::schema_to_json(place->shown, schema)) : print_schema(*place, schema);
    } else if (export_.chosen()) {
      STINT_CO_TRY(File file, blocking_create(to_));
      FileSink sink(std::move(file), to_);
      const auto moved = co_await export_to(*store, sink);
      if (!moved && to_ != "-") std::remove(to_.c_str());
      if (!moved) co_return fail(moved.error());
      // Standard output may be the export itself.
      const std::string said =
          json_ ? wire::moved_to_json(*moved, *moved) + "\n" : fmt::format("Exported {}.\n", describe(*moved));
      to_ == "-" ? write_error(said) : write_out(said);
    } else if (import_.chosen()) {
      store::StoreSink sink(*store);
      STINT_CO_TRY(const Moved read, co_await import_from(reactor, system, from_, sink));
      json_
          ? print_out("{}\n", wire::moved_to_json(read, sink.added()))
          : print_out("Read {}.\nAdded to {}: {}.\n", describe(read), printable(place->shown), describe(sink.added()));
    } else {
      STINT_CO_TRY(const store::Stats stats, co_await store->stats());
      STINT_CO_TRY(const std::vector<store::LimitState> limits, co_await store->limits());
      json_ ? print_out("{}\n", wire::stats_to_json(place->shown, stats, limits)) : print_stats(*place, stats, limits);
    }
    co_return Result<>();
  };
  if (const Result<> done = reactor.run(act()); !done) return complain(done.error());
  return status;
}

}  // namespace stint::cli
