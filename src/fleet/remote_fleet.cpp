#include "fleet/remote_fleet.hpp"

#include "domain/trace.hpp"
#include "fleet/follow.hpp"
#include "fleet/submission_text.hpp"
#include "net/http_text.hpp"
#include "stint/asio.hpp"
#include "stint/retry_after.hpp"
#include "wire/batch.hpp"
#include "wire/fleet_read.hpp"
#include "wire/reports.hpp"
#include "wire/time_text.hpp"
#include "wire/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace stint::fleet {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLookPatience = 10s;  // reads: a daemon that takes longer has stopped
constexpr Duration kPatience = 60s;      // requests that change something
constexpr int kNotFound = 404, kUnauthorized = 401, kFirstRefusal = 400;

struct Meaning {
  int status;
  Errc code;
};
// Meaning of the API's statuses; any other is a failure of the daemon.
constexpr std::array kMeanings = {Meaning{400, Errc::invalid},  Meaning{kUnauthorized, Errc::denied},
                                  Meaning{403, Errc::denied},   Meaning{kNotFound, Errc::invalid},
                                  Meaning{409, Errc::conflict}, Meaning{413, Errc::invalid},
                                  Meaning{422, Errc::invalid},  Meaning{429, Errc::full},
                                  Meaning{503, Errc::full},     Meaning{504, Errc::timed_out}};

/// Escapes a path segment or a query value.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '_' || c == '.' || c == '~';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

std::string of_run(const std::string& id, std::string_view what = {}) {
  return fmt::format("/v1/runs/{}{}", escaped(id), what);
}

}  // namespace

Error remote_error(int status, const std::string& detail, std::optional<Duration> retry_after, std::string_view list) {
  const auto found = std::ranges::find(kMeanings, status, &Meaning::status);
  const Errc code = found == kMeanings.end() ? Errc::failed : found->code;
  std::string what = detail.empty() ? fmt::format("the daemon answered HTTP {}", status) : detail;
  if (list == "/v1/agents") what += ". `stint agents` lists them";
  if (list == "/v1/limits") what += ". `stint limits` lists them";
  if (status == kUnauthorized) what = "the daemon refused the token: put its token into STINT_TOKEN";
  if (code != Errc::full) return {code, std::move(what)};
  return Error(code, Retry::safe, std::move(what)).after(retry_after.value_or(1s));
}

RemoteFleet::RemoteFleet(Reactor& reactor, DaemonLocation place, const domain::System& system,
                         project::Location location, Outage::Say say)
    : executor_(reactor),
      place_(std::move(place)),
      location_(std::move(location)),
      say_(std::move(say)),
      system_(system),
      client_(reactor),
      changes_(reactor, client_, [this](const std::string& run) {
        return request(run.empty() ? "/v1/events" : of_run(run, "/events?output=1"));
      }) {}

net::Ask RemoteFleet::request(const std::string& path) const {
  net::Ask ask;
  ask.url = place_.url + path;
  if (!place_.token.empty()) ask.headers.emplace_back("Authorization", "Bearer " + place_.token);
  return ask;
}

Error RemoteFleet::refusal(const net::Reply& reply) const {
  std::optional<Duration> after;
  if (const auto header = reply.header("Retry-After")) {
    const ServerDelay delay = parse_retry_after(*header, system_.wall_now());
    if (delay.kind == ServerDelay::Kind::wait) after = delay.wait;
  }
  const wire::ReadProblem problem = wire::read_problem(reply.body);
  return remote_error(reply.status, problem.detail, after, problem.list);
}

Task<Result<net::Reply>> RemoteFleet::ask(Call call) {
  net::Ask ask = request(call.path);
  const Duration most = call.method == "GET" ? kLookPatience : kPatience;
  ask.method = std::move(call.method);
  ask.headers.emplace_back("Accept", "application/json");
  if (!call.body.empty()) ask.headers.emplace_back("Content-Type", "application/json");
  if (!call.key.empty()) {
    if (!net::is_header_text(call.key)) co_return fail(Errc::invalid, "the idempotency key must be one line of text");
    ask.headers.emplace_back("Idempotency-Key", call.key);
  }
  if (!call.traceparent.empty()) ask.headers.emplace_back("traceparent", call.traceparent);
  ask.body = std::move(call.body);
  const Deadline deadline = call.patient ? Deadline() : Deadline::after(executor_.now(), most);
  auto reply = co_await with_deadline(deadline, client_.ask(std::move(ask)));
  if (reply) co_return reply;
  const Errc code = reply.error().code();
  const Retry retry = reply.error().retry();
  Error error(code, retry,
              fmt::format("the daemon at {} does not answer. {}", net::shown_url(place_.url), place_.remedy));
  // For the next attempt: a daemon that was started again has another address.
  auto found = co_await offload(files_, [this] { return blocking_find_daemon(location_); });
  if (found && *found) place_ = std::move(**found);
  co_return fail(std::move(error).because(reply.error()));
}

Task<Result<std::string>> RemoteFleet::get(Call call) {
  STINT_CO_TRY(net::Reply reply, co_await ask(std::move(call)));
  if (reply.status >= kFirstRefusal) co_return fail(refusal(reply));
  co_return std::move(reply.body);
}

// ---- runs ----------------------------------------------------------------------------------------------------------

Task<Result<engine::Submitted>> RemoteFleet::submit_one(engine::Submission submission) {
  STINT_CO_CHECK(check_text(submission));
  STINT_CO_TRY(
      const net::Reply reply,
      co_await ask(
          {.method = "POST",
           .path = "/v1/runs",
           .body = wire::submit_to_json(submission),
           .key = submission.key,
           .traceparent = submission.trace.empty() ? std::string() : domain::traceparent(submission.trace, "submit")}));
  if (reply.status >= kFirstRefusal) co_return fail(refusal(reply));
  co_return wire::read_submitted(reply.body);
}

Task<Result<std::vector<Result<engine::Submitted>>>> RemoteFleet::submit(std::vector<engine::Submission> submissions) {
  std::vector<Result<engine::Submitted>> answers;
  std::optional<Error> full;
  for (engine::Submission& submission : submissions) {
    // One at a time, stopping at the first that finds no room: the order is kept.
    if (full) {
      answers.push_back(fail(*full));
      continue;
    }
    auto answer = co_await submit_one(std::move(submission));
    if (!answer && answer.error() == Errc::full) full = answer.error();
    const bool unreachable = !answer && (answer.error() == Errc::unavailable || answer.error() == Errc::timed_out);
    if (unreachable && answers.empty()) co_return fail(std::move(answer).error());
    answers.push_back(std::move(answer));
  }
  co_return answers;
}

Task<Result<std::optional<engine::RunView>>> RemoteFleet::find(std::string id) {
  if (id.empty()) co_return std::nullopt;
  STINT_CO_TRY(const net::Reply reply, co_await ask({.path = of_run(id)}));
  if (reply.status == kNotFound) co_return std::nullopt;
  if (reply.status >= kFirstRefusal) co_return fail(refusal(reply));
  STINT_CO_TRY(engine::RunView view, wire::read_run(reply.body));
  co_return std::move(view);
}

Task<Result<std::vector<engine::RunView>>> RemoteFleet::list(store::Filter filter) {
  engine::Search wanted;
  if (filter.before.value != 0) {
    const auto page = pages_.find(filter.before);
    if (page == pages_.end()) co_return std::vector<engine::RunView>();  // the previous page was the last
    wanted.cursor = page->second;
  }
  wanted.filter = std::move(filter);
  STINT_CO_TRY(engine::RunPage page, co_await search(std::move(wanted)));
  if (!page.runs.empty()) {
    store::RunNumber& number = page.runs.back().run.number;
    number = store::RunNumber{std::ssize(pages_) + 1};
    if (page.next.empty()) {
      number = store::RunNumber{-1};  // no next page: matches no cursor
    } else {
      pages_[number] = page.next;
    }
  }
  co_return std::move(page.runs);
}

Task<Result<engine::RunPage>> RemoteFleet::search(engine::Search search) {
  const store::Filter& filter = search.filter;
  std::string path = fmt::format("/v1/runs?limit={}", filter.most);
  const auto add = [&path](std::string_view name, std::string_view value) {
    if (!value.empty()) path += fmt::format("&{}={}", name, escaped(value));
  };
  for (const domain::RunState state : filter.states) add("state", to_string(state));
  for (const domain::Hold hold : filter.holds) add("hold", to_string(hold));
  add("agent", filter.agent);
  add("session", filter.session);
  add("parent", filter.parent);
  add("q", filter.search);
  if (filter.since) add("since", wire::time_text(*filter.since));
  if (filter.until) add("until", wire::time_text(*filter.until));
  if (search.total) add("total", "true");
  add("before", search.cursor);
  STINT_CO_TRY(const std::string body, co_await get({.path = std::move(path)}));
  co_return wire::read_runs(body);
}

// ---- batches -------------------------------------------------------------------------------------------------------

Task<Result<engine::BatchAnswer>> RemoteFleet::begin_batch(engine::BatchRequest request) {
  STINT_CO_TRY(
      const std::string body,
      co_await get({.method = "POST", .path = "/v1/batches", .body = wire::to_json(request), .key = request.key}));
  co_return wire::read_batch_answer(body);
}

Task<Result<std::optional<store::Batch>>> RemoteFleet::batch(std::string id) {
  STINT_CO_TRY(const net::Reply reply, co_await ask({.path = "/v1/batches/" + escaped(id)}));
  if (reply.status == kNotFound) co_return std::nullopt;
  if (reply.status >= kFirstRefusal) co_return fail(refusal(reply));
  STINT_CO_TRY(store::Batch batch, wire::read_batch(reply.body));
  co_return std::move(batch);
}

Task<Result<std::vector<store::Batch>>> RemoteFleet::batches(store::BatchNumber before, std::uint32_t most) {
  std::string path = fmt::format("/v1/batches?limit={}", most);
  if (before.value != 0) path += fmt::format("&before={}", before.value);
  STINT_CO_TRY(const std::string body, co_await get({.path = std::move(path)}));
  co_return wire::read_batches(body);
}

Task<Result<std::optional<store::Batch>>> RemoteFleet::stop_batch(std::string id) {
  STINT_CO_TRY(const net::Reply reply,
               co_await ask({.method = "POST", .path = "/v1/batches/" + escaped(id) + "/cancel"}));
  if (reply.status == kNotFound) co_return std::nullopt;
  if (reply.status >= kFirstRefusal) co_return fail(refusal(reply));
  STINT_CO_TRY(store::Batch batch, wire::read_batch(reply.body));
  co_return std::move(batch);
}

// ---- runs, further -------------------------------------------------------------------------------------------------

Task<Result<std::vector<store::Event>>> RemoteFleet::events(std::string id, std::int64_t after, std::uint32_t most) {
  STINT_CO_TRY(const std::string body,
               co_await get({.path = of_run(id, fmt::format("/events?after={}&limit={}", after, most))}));
  STINT_CO_TRY(store::FeedPage page, wire::read_events(body));
  co_return std::move(page.events);
}

Task<Result<store::FeedPage>> RemoteFleet::feed(std::string cursor, std::uint32_t most) {
  STINT_CO_TRY(const std::string body,
               co_await get({.path = fmt::format("/v1/events?after={}&limit={}", escaped(cursor), most)}));
  co_return wire::read_events(body);
}

Task<Result<store::Output>> RemoteFleet::output(std::string id) {
  STINT_CO_TRY(const std::string body, co_await get({.path = of_run(id, "/output")}));
  co_return wire::read_output(body);
}

Task<Result<engine::WhyView>> RemoteFleet::why(std::string id) {
  STINT_CO_TRY(const std::string body, co_await get({.path = of_run(id, "/why")}));
  co_return wire::read_why(body);
}

Task<Result<Timeline>> RemoteFleet::timeline(std::string id) {
  STINT_CO_TRY(const std::string body, co_await get({.path = of_run(id, "/timeline")}));
  co_return wire::read_timeline(body);
}

Task<std::uint64_t> RemoteFleet::changed(std::string id, std::uint64_t seen, Duration most) {
  return changes_.wait(std::move(id), seen, most);
}

Task<Result<std::unique_ptr<engine::RunView>>> RemoteFleet::wait(std::string id) {
  STINT_CO_TRY(engine::RunView ended, co_await follow(*this, executor_, std::move(id), {}, say_));
  co_return std::make_unique<engine::RunView>(std::move(ended));
}

Task<Result<engine::Receipt>> RemoteFleet::cancel(std::string id) {
  // No timeout: the daemon answers when the work is proven gone.
  STINT_CO_TRY(const std::string body,
               co_await get({.method = "POST", .path = of_run(id, "/cancel"), .patient = true}));
  co_return wire::read_receipt(body);
}

Task<Result<engine::Submitted>> RemoteFleet::retry(std::string id) {
  STINT_CO_TRY(const std::string body, co_await get({.method = "POST", .path = of_run(id, "/retry")}));
  co_return wire::read_submitted(body);
}

Task<Result<domain::RunState>> RemoteFleet::resolve(std::string id, domain::Resolution how) {
  STINT_CO_TRY(const std::string body,
               co_await get({.method = "POST", .path = of_run(id, "/resolve"), .body = wire::resolve_to_json(how)}));
  co_return wire::read_resolved(body);
}

Task<Result<>> RemoteFleet::answer(std::string id) {
  STINT_CO_CHECK(co_await get({.method = "POST", .path = of_run(id, "/answer")}));
  co_return Result<>();
}

// ---- the fleet -----------------------------------------------------------------------------------------------------

Task<Result<std::vector<engine::AgentView>>> RemoteFleet::agents() {
  STINT_CO_TRY(const std::string body, co_await get({.path = "/v1/agents"}));
  co_return wire::read_agents(body);
}

Task<Result<std::optional<engine::AgentDetail>>> RemoteFleet::agent(std::string name) {
  STINT_CO_TRY(const net::Reply reply, co_await ask({.path = "/v1/agents/" + escaped(name)}));
  if (reply.status == kNotFound) co_return std::nullopt;
  if (reply.status >= kFirstRefusal) co_return fail(refusal(reply));
  STINT_CO_TRY(engine::AgentDetail agent, wire::read_agent(reply.body));
  co_return std::move(agent);
}

Task<Result<engine::CostReport>> RemoteFleet::cost(engine::CostQuery query) {
  STINT_CO_TRY(const std::string body,
               co_await get({.path = fmt::format("/v1/cost?since_at={}&by={}", domain::to_unix_ms(query.since),
                                                 escaped(wire::cost_by_text(query)))}));
  co_return wire::read_cost(body);
}

Task<Result<store::Series>> RemoteFleet::series(store::SeriesQuery query) {
  const auto in_seconds = [](Duration length) {
    return std::chrono::duration_cast<std::chrono::seconds>(length).count();
  };
  STINT_CO_TRY(const std::string body,
               co_await get({.path = fmt::format("/v1/series?step_s={}&span_s={}", in_seconds(query.step),
                                                 in_seconds(query.span))}));
  co_return wire::read_series(body);
}

Task<Result<std::vector<engine::LimitView>>> RemoteFleet::limits() {
  STINT_CO_TRY(const std::string body, co_await get({.path = "/v1/limits"}));
  co_return wire::read_limits(body);
}

Task<Result<>> RemoteFleet::resize_limit(std::string name, std::uint32_t capacity) {
  STINT_CO_CHECK(
      co_await get({.method = "PUT", .path = "/v1/limits/" + escaped(name), .body = wire::capacity_to_json(capacity)}));
  co_return Result<>();
}

Task<Result<>> RemoteFleet::pause(std::string limit, std::optional<Duration> length) {
  const std::string path = limit.empty() ? "/v1/pause" : "/v1/limits/" + escaped(limit) + "/pause";
  STINT_CO_CHECK(co_await get({.method = "POST", .path = path, .body = wire::pause_to_json(length)}));
  co_return Result<>();
}

Task<Result<std::uint64_t>> RemoteFleet::resume(std::string limit) {
  const std::string path = limit.empty() ? "/v1/resume" : "/v1/limits/" + escaped(limit) + "/resume";
  STINT_CO_TRY(const std::string body, co_await get({.method = "POST", .path = path}));
  co_return wire::read_resumed(body);
}

Task<Result<FleetStatus>> RemoteFleet::status() {
  STINT_CO_TRY(const std::string body, co_await get({.path = "/v1/status"}));
  STINT_CO_TRY(FleetStatus status, wire::read_status(body));
  phase_ = status.phase;
  co_return status;
}

Task<Result<FleetHealth>> RemoteFleet::health() {
  STINT_CO_TRY(const std::string body, co_await get({.path = "/v1/pool"}));
  co_return wire::read_health(body);
}

Task<Result<FleetHealth>> RemoteFleet::scale(engine::ScaleRequest scale) {
  STINT_CO_TRY(const std::string body,
               co_await get({.method = "PUT", .path = "/v1/pool", .body = wire::scale_to_json(scale)}));
  co_return wire::read_health(body);
}

Task<Result<>> RemoteFleet::drain(engine::DrainRequest drain) {
  STINT_CO_CHECK(co_await get({.method = "POST", .path = "/v1/pool/drain", .body = wire::drain_to_json(drain)}));
  co_return Result<>();
}

}  // namespace stint::fleet
