// Handlers of events: pages, and streams that can be resumed.
#include "http/api_call.hpp"
#include "http/event_stream.hpp"
#include "wire/fleet.hpp"

namespace stint::http {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kStreamPage = 200;
constexpr std::string_view kLastEventId = "Last-Event-ID";
constexpr std::size_t kCursorBytesMax = 2048;  // longer than any store's cursor
constexpr Duration kBeatEvery = 1s;            // a client that hears nothing for 3 s is disconnected

Response pruned(std::string_view cursor) {
  return problem_response(410,
                          fmt::format("events after cursor '{}' were deleted: read the fleet again (/v1/fleet) and "
                                      "go on from its cursor, or start without one",
                                      shown(cursor)));
}
constexpr Duration kFollow = 1s;  // how often a stream polls for events of other processes

}  // namespace

Task<Response> Api::run_events(Call call) {
  const auto run = co_await look_up(fleet_, call.id);
  if (!run) co_return run.error();
  auto after = call.number<std::int64_t>("after", 0, 0, kNumberMax);
  if (!after) co_return problem(after.error());
  const auto output = call.number<std::uint32_t>("output", 0, 0, 1);
  if (!output) co_return problem(output.error());
  const auto output_from = call.number<std::int64_t>("output_from", 0, 0, kNumberMax);
  if (!output_from) co_return problem(output_from.error());
  const auto most = call.page_size();
  if (!most) co_return problem(most.error());
  if (call.wants_stream()) {
    if (const auto last = call.request.header(kLastEventId); last && !last->empty()) {
      after = checked_number<std::int64_t>(kLastEventId, *last, 0, kNumberMax);
      if (!after) co_return problem(after.error());
    }
  }
  if (call.wants_stream() && call.exchange.reserved()) co_return no_place();
  if (*after > run->run.seq) {
    co_return problem(Error(Errc::invalid, fmt::format("cursor {} is after the newest event of this run, {}: "
                                                       "start again without a cursor",
                                                       *after, run->run.seq)));
  }
  if (call.wants_stream()) {
    // 204 keeps a browser from reconnecting after the last event.
    if (domain::is_finished(run->run.state) && *after >= run->run.seq) co_return json_response("", 204);
    EventStream events(call.exchange);
    std::optional<std::uint64_t> printed;
    if (*output == 1) printed = static_cast<std::uint64_t>(*output_from);
    co_return co_await events.run(stream_run(events, run->run.id, *after, printed));
  }
  const auto page = co_await fleet_.events(run->run.id, *after, *most);
  if (!page) co_return problem(page.error());
  co_return json_response(wire::to_json(*page, std::to_string(page->empty() ? *after : page->back().seq)));
}

/// A stopped engine publishes no more events: streams send what is stored and end.
bool Api::has_stopped() const { return fleet_.phase() == engine::Phase::stopped; }

/// Sends the output from byte `from` on, and advances `from`. `ended`: whether the run had ended before this call, so
/// that no output follows the end. False: the client is gone, or the store does not answer.
Task<bool> Api::send_output(EventStream& events, const std::string& id, bool ended, std::uint64_t& from) {
  const auto output = co_await fleet_.output(id);
  if (!output) co_return false;
  while (true) {
    const engine::OutputSlice slice = engine::slice_output(*output, from, ended);
    if (slice.text.empty()) co_return true;
    Event out;  // no id: a client can't resume after an output event
    out.name = "output";
    out.data = wire::to_json(slice);
    const auto sent = co_await events.send(out);
    if (!sent) co_return false;
    from = slice.next;
  }
}

/// `printed`: also sends the output, from that byte on.
Task<> Api::stream_run(EventStream& events, std::string id, std::int64_t after, std::optional<std::uint64_t> printed) {
  std::uint64_t seen = co_await fleet_.changed(id, 0, Duration::zero());
  while (true) {
    const bool last = has_stopped();
    const auto run = co_await fleet_.find(id);
    const auto page = co_await fleet_.events(id, after, kStreamPage);
    if (!run || !*run || !page) co_return;
    for (const store::Event& event : *page) {
      Event out;
      out.id = std::to_string(event.seq);
      out.name = event.cause;
      out.data = wire::to_json(event);
      const auto sent = co_await events.send(out);
      if (!sent) co_return;
      after = event.seq;
    }
    if (!page->empty()) continue;
    const bool ended = domain::is_finished((*run)->run.state);
    if (printed) {
      const bool sent = co_await send_output(events, id, ended, *printed);
      if (!sent) co_return;
    }
    if (last || ended) co_return;
    seen = co_await fleet_.changed(id, seen, kFollow);
  }
}

Task<Response> Api::all_events(Call call) {
  std::string cursor = text(call.request.parameter("after"));
  if (const auto last = call.request.header(kLastEventId); last && call.wants_stream()) cursor = *last;
  if (cursor.size() > kCursorBytesMax) {
    co_return problem(Error(Errc::invalid, "'" + shown(cursor) + "' is not a valid cursor: start again without one"));
  }
  const auto most = call.page_size();
  if (!most) co_return problem(most.error());
  if (call.wants_stream()) {
    if (call.exchange.reserved()) co_return no_place();
    if (cursor.empty() && !call.request.parameter("after")) cursor = store::kFeedNow;
    auto first = co_await fleet_.feed(cursor, 1);  // checks the cursor before the stream begins
    if (!first) co_return problem(first.error());
    if (first->pruned) co_return pruned(cursor);
    if (cursor == store::kFeedNow) cursor = first->cursor;
    EventStream events(call.exchange);
    co_return co_await events.run(stream_all(events, std::move(cursor)));
  }
  const auto page = co_await fleet_.feed(cursor, *most);
  if (!page) co_return problem(page.error());
  co_return page->pruned ? pruned(cursor) : json_response(wire::to_json(page->events, page->cursor));
}

/// Sends what follows the cursor in the store. Returns the new cursor. Fails if the stream must end: the client is
/// gone, the store does not answer, or events are missing; a client that comes again gets the reason.
Task<Result<std::string>> Api::send_rest(EventStream& events, std::string cursor) {
  while (true) {
    STINT_CO_TRY(const store::FeedPage page, co_await fleet_.feed(cursor, kStreamPage));
    if (page.pruned) co_return fail(Errc::closed, "events are missing");
    if (page.events.empty()) co_return cursor;
    std::string text;
    for (const store::Event& event : page.events) text += FeedTail::encode(event);
    STINT_CO_CHECK(co_await events.send_text(std::move(text)));
    cursor = page.cursor;
    if (page.events.size() < kStreamPage) co_return cursor;
  }
}

Task<> Api::stream_all(EventStream& events, std::string cursor) {
  Duration sent_at = options_.live.elapsed();
  std::optional<std::uint64_t> looked;  // the version of the tail at which this stream has read the store itself
  for (bool last = false;;) {
    const std::uint64_t version = tail_.version();
    const std::string before = cursor;
    if (tail_.has(cursor)) {
      while (const auto piece = tail_.after(cursor)) {
        cursor = piece->cursor;
        const auto sent = co_await events.send_text(piece->text);
        if (!sent) co_return;
      }
    } else if (last || looked != version) {
      looked = version;
      auto rest = co_await send_rest(events, cursor);
      if (!rest) co_return;
      cursor = std::move(*rest);
    }
    if (last) co_return;
    if (cursor != before) sent_at = options_.live.elapsed();
    const auto waited =
        co_await tail_.wait(version, kBeatEvery - std::min(kBeatEvery, options_.live.elapsed() - sent_at));
    if (!waited) co_return;
    last = has_stopped();
    if (options_.live.elapsed() - sent_at < kBeatEvery) continue;
    const auto sent =
        co_await events.send({.name = "beat", .data = wire::beat_to_json(options_.live.wall_now(), cursor)});
    if (!sent) co_return;
    sent_at = options_.live.elapsed();
  }
}

}  // namespace stint::http
