#include "fleet/follow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace stint::fleet {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLookEvery = 5s;  // without a notification: its sender may have stopped

}  // namespace

std::vector<OutputReader::Piece> OutputReader::take(const store::Output& output) {
  std::vector<Piece> pieces;
  if (seen_ < output.head.size()) {
    pieces.push_back({0, output.head.substr(seen_)});
    seen_ = output.head.size();
  }
  const std::uint64_t tail_begins = output.bytes - std::min<std::uint64_t>(output.bytes, output.tail.size());
  if (seen_ >= output.bytes) return pieces;
  const std::uint64_t from = std::max(seen_, tail_begins);
  pieces.push_back({from - seen_, output.tail.substr(static_cast<std::size_t>(from - tail_begins))});
  seen_ = output.bytes;
  return pieces;
}

std::string left_out_text(std::uint64_t bytes) { return fmt::format("… {} bytes left out …", bytes); }

bool Outage::tolerate(const Error& error) {
  // A daemon that can't reach its store answers `full`.
  if (error != Errc::unavailable && error != Errc::timed_out && error != Errc::full) return false;
  const TimePoint now = clock_.now();
  if (!since_) {
    since_ = now;
    say_(fmt::format("{}; retrying", error.describe()));
  }
  return now - *since_ < kToleratedMax;
}

void Outage::end() {
  if (since_) say_("connected again");
  since_.reset();
}

namespace {

Task<Result<engine::RunView>> look(Fleet& fleet, const std::string& id, OutputReader& reader,
                                   const std::function<void(const OutputReader::Piece&)>& out) {
  // Read the run first: then all output before its end is in the store when we see the end.
  STINT_CO_TRY(std::optional<engine::RunView> view, co_await fleet.find(id));
  if (!view) co_return fail(Errc::invalid, "run '" + id + "' is no longer in the store");
  if (out) {
    STINT_CO_TRY(const store::Output output, co_await fleet.output(id));
    for (const OutputReader::Piece& piece : reader.take(output)) out(piece);
  }
  co_return std::move(*view);
}

}  // namespace

Task<Result<engine::RunView>> follow(Fleet& fleet, const Executor& clock, std::string id,
                                     std::function<void(const OutputReader::Piece&)> out, Outage::Say say) {
  OutputReader reader;
  Outage outage(clock, std::move(say));
  std::uint64_t seen = co_await fleet.changed(id, 0, Duration::zero());
  while (true) {
    auto view = co_await look(fleet, id, reader, out);
    if (view) {
      outage.end();
      if (engine::is_at_rest(view->run)) co_return view;
    } else if (!outage.tolerate(view.error())) {
      co_return view;
    }
    seen = co_await fleet.changed(id, seen, kLookEvery);
  }
}

}  // namespace stint::fleet
