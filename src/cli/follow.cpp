#include "cli/follow.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stint::cli {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLookEvery = 500ms;

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

Task<Result<engine::RunView>> follow(engine::Fleet& fleet, std::string id,
                                     std::function<void(const OutputReader::Piece&)> out) {
  OutputReader reader;
  std::uint64_t seen = co_await fleet.changed(id, 0, Duration::zero());
  while (true) {
    // The run first: what it printed before its end is there when the end is seen.
    STINT_CO_TRY(std::optional<engine::RunView> view, co_await fleet.find(id));
    if (!view) co_return fail(Errc::invalid, "the run '" + id + "' is not there any more");
    STINT_CO_TRY(const store::Output output, co_await fleet.output(id));
    for (const OutputReader::Piece& piece : reader.take(output)) out(piece);
    if (engine::is_at_rest(view->run)) co_return std::move(*view);
    seen = co_await fleet.changed(id, seen, kLookEvery);
  }
}

}  // namespace stint::cli
