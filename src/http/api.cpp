#include "http/api.hpp"

#include "agent/text.hpp"
#include "domain/bounds.hpp"
#include "domain/trace.hpp"
#include "engine/submission_text.hpp"
#include "http/event_stream.hpp"
#include "http/negotiate.hpp"
#include "wire/fleet.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace stint::http {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kPage = 100, kPageMax = 1000, kStreamPage = 200;
constexpr std::int64_t kNumberMax = std::numeric_limits<std::int64_t>::max();
constexpr std::string_view kLastEventId = "Last-Event-ID";
constexpr std::size_t kCursorBytesMax = 128;   // more than any store gives
constexpr std::string_view kListed = "state";  // the one parameter of which there may be several
constexpr std::string_view kAnyParameter = "*";
constexpr int kLevelsMax = 64;    // of runs within runs
constexpr Duration kFollow = 1s;  // what other processes do is looked for so often
constexpr std::string_view kCapacity = "Agent pool at capacity. Retry later.";

Response json(std::string body, unsigned status = 200) {
  Response response;
  response.status = status;
  response.body = std::move(body);
  return response;
}

Response with_retry_after(Response response, const Error& error) {
  const Duration after = error.retry_after().value_or(1s);
  const auto seconds = std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::seconds>(after).count());
  response.headers.emplace_back("Retry-After", std::to_string(seconds));
  return response;
}

/// To a stream, or to a wait for the end of a run, on a connection that is in reserve.
Response no_place() {
  return with_retry_after(problem_response(503, "All connections are in use, and this one is for short answers alone."),
                          Error(Errc::full, "").after(2s));
}

Response problem(const Error& error) {
  unsigned status = 500;
  switch (error.code()) {
    case Errc::invalid: status = 422; break;
    case Errc::exhausted:  // a disk that is full will have room again, a budget won't
      if (error.retry() == Retry::safe) return with_retry_after(problem_response(503, error.describe()), error);
      status = 409;
      break;
    case Errc::conflict: status = 409; break;
    case Errc::denied: status = 403; break;
    case Errc::timed_out: status = 504; break;
    case Errc::full:
    case Errc::closed:
    case Errc::unavailable: return with_retry_after(problem_response(503, error.describe()), error);
    case Errc::cancelled:
    case Errc::failed: break;
  }
  return problem_response(status, error.describe());
}

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <class Number>
Result<Number> checked_number(std::string_view name, std::string_view text, Number least, Number most) {
  const auto value = parse_number<Number>(text);
  if (!value || *value < least || *value > most) {
    return fail(Errc::invalid,
                fmt::format("'{}' is no whole number from {} to {}: '{}'", name, least, most, agent::excerpt(text)));
  }
  return *value;
}

/// A name from a request, for a message.
std::string shown(std::string_view name) { return agent::excerpt(name, domain::kShownNameBytesMax); }

std::string text(std::optional<std::string_view> value) { return std::string(value.value_or("")); }

}  // namespace

struct Api::Call {
  const Request& request;
  Exchange& exchange;
  std::string id;      // what stands in the path, or the name of a limit
  std::string caller;  // the run that asks; empty: a person

  /// A number of the query.
  template <class Number>
  Result<Number> number(std::string_view name, Number fallback, Number least, Number most) const {
    const auto given = request.parameter(name);
    return given ? checked_number(name, *given, least, most) : Result<Number>(fallback);
  }
  Result<std::uint32_t> page_size() const { return number<std::uint32_t>("limit", kPage, 1, kPageMax); }
  /// Empty: none was sent. One without a text is refused: a client that repeats its request would run it twice.
  [[nodiscard]] Result<std::string> idempotency_key() const {
    const auto given = request.header("Idempotency-Key");
    if (given && given->empty()) return fail(Errc::invalid, "'Idempotency-Key' is empty: leave it out, or send a key");
    return text(given);
  }
  /// What the caller calls it; empty: nothing.
  [[nodiscard]] std::string trace() const {
    const auto given = request.header("traceparent");
    return given ? domain::trace_of(*given).value_or("") : std::string();
  }
  [[nodiscard]] bool wants_stream() const { return accepts_stream(request); }
};

/// What of it a run may ask, which has a token of its own.
enum class ForRuns : std::uint8_t {
  never,
  always,
  below,   // if the run in the path is itself or below it
  strict,  // if the run in the path is below it
};

struct Api::Route {
  static constexpr std::size_t kPartsMax = 4;
  enum class Body : std::uint8_t { none, members };  // none: empty, or an object without members

  Route(std::string_view of_method, std::string_view of_path, Task<Response> (Api::*by)(Call),
        ForRuns may = ForRuns::never, Body body = Body::none, std::string_view names = {})
      : method(of_method),
        path(of_path),
        handler(by),
        for_runs(may),
        has_members(body == Body::members),
        parameters(names) {
    for (std::size_t begin = 1; begin < path.size(); ++count) {
      STINT_ASSERT(count < kPartsMax);
      const std::size_t end = std::min(path.find('/', begin), path.size());
      parts[count] = path.substr(begin, end - begin);
      if (parts[count].starts_with('{')) parts[count] = {};
      begin = end + 1;
    }
  }
  /// Whether the path, of as many parts, is this one; `id` gets what stands for `{…}`.
  bool matches(const std::vector<std::string_view>& segments, std::string_view& id) const noexcept {
    for (std::size_t at = 0; at < count; ++at) {
      if (parts[at].empty()) {
        id = segments[at];
        if (id.empty()) return false;
      } else if (parts[at] != segments[at]) {
        return false;
      }
    }
    return true;
  }
  /// Fails if the request says something that nothing would read: it may be misspelt.
  Result<> check_known(const Request& request) const {
    for (const net::Field& field : request.parts.query) {
      const bool known = parameters.contains(fmt::format(" {} ", field.name)) && !field.name.contains(' ');
      if (!known && parameters != kAnyParameter) {
        return fail(Errc::invalid, fmt::format("there is no parameter '{}'; {}{}", shown(field.name),
                                               parameters.empty() ? "none is known here" : "there are", parameters));
      }
    }
    return has_members ? Result<>() : wire::read_nothing(request.body);
  }

  std::string_view method, path;  // {id} stands for one segment
  Task<Response> (Api::*handler)(Call);
  ForRuns for_runs;
  bool has_members;             // of its body, which its handler reads
  std::string_view parameters;  // of the query, each between spaces; kAnyParameter: a monitor may add its own
  std::array<std::string_view, kPartsMax> parts{};  // of the path; empty: any segment
  std::size_t count = 0;
};

const std::vector<Api::Route>& Api::table() {
  constexpr auto kMembers = Route::Body::members, kNone = Route::Body::none;
  constexpr auto kNever = ForRuns::never, kAlways = ForRuns::always;
  static const std::vector<Route> routes = {
      {"POST", "/v1/runs", &Api::submit, kAlways, kMembers},
      {"GET", "/v1/runs", &Api::list, kAlways, kNone, " state agent session before limit "},
      {"GET", "/v1/runs/{id}", &Api::show, ForRuns::below},
      {"POST", "/v1/runs/{id}/cancel", &Api::cancel, ForRuns::strict},
      {"POST", "/v1/runs/{id}/retry", &Api::retry},
      {"POST", "/v1/runs/{id}/resolve", &Api::resolve, kNever, kMembers},
      {"POST", "/v1/runs/{id}/answer", &Api::go_on},
      {"GET", "/v1/runs/{id}/events", &Api::run_events, ForRuns::below, kNone, " after limit output "},
      {"GET", "/v1/runs/{id}/why", &Api::why, ForRuns::below},
      {"GET", "/v1/runs/{id}/output", &Api::output, ForRuns::below},
      {"GET", "/v1/events", &Api::all_events, kNever, kNone, " after limit "},
      {"GET", "/v1/agents", &Api::agents, kAlways},
      {"GET", "/v1/limits", &Api::limits},
      {"PUT", "/v1/limits/{name}", &Api::resize_limit, kNever, kMembers},
      {"POST", "/v1/limits/{name}/pause", &Api::pause_limit, kNever, kMembers},
      {"POST", "/v1/limits/{name}/resume", &Api::resume_limit},
      {"POST", "/v1/pause", &Api::pause_limit, kNever, kMembers},
      {"POST", "/v1/resume", &Api::resume_limit},
      {"GET", "/v1/pool", &Api::pool},
      {"PUT", "/v1/pool", &Api::scale, kNever, kMembers},
      {"POST", "/v1/pool/drain", &Api::drain, kNever, kMembers},
      {"GET", "/v1/status", &Api::status},
      {"POST", "/api/agent/run", &Api::short_run, kNever, kNone, " session_id query "},
      {"GET", "/api/agent/health", &Api::pool},
      {"GET", "/healthz", &Api::health, kAlways, kNone, kAnyParameter},
      {"GET", "/readyz", &Api::ready, kAlways, kNone, kAnyParameter},
      {"GET", "/metrics", &Api::metrics, kNever, kNone, kAnyParameter},
      {"GET", "/openapi.json", &Api::describe, kAlways},
      {"GET", "/", &Api::front, kAlways, kNone, kAnyParameter},
  };
  return routes;
}

/// Those of so many parts.
const std::vector<const Api::Route*>& Api::table(std::size_t parts) {
  static const auto by_parts = [] {
    std::array<std::vector<const Route*>, Route::kPartsMax + 2> lists;  // the last one stays empty
    for (const Route& route : table()) lists[route.count].push_back(&route);
    return lists;
  }();
  return by_parts[std::min(parts, by_parts.size() - 1)];
}

std::vector<Api::RouteName> Api::routes() {
  std::vector<RouteName> names;
  for (const Route& route : table()) names.push_back({route.method, route.path});
  return names;
}

/// With a body it is no probe, and would be a way to fill memory without a token.
bool Api::is_open(const Request& request) {
  if (request.has_body || (request.method != "GET" && request.method != "HEAD")) return false;
  return request.path() == "/healthz" || request.path() == "/readyz";
}

/// Where a request goes.
struct Api::Found {
  const Route* route = nullptr;  // none: nothing is there, or `allowed` says how it can be asked
  std::string_view id{};
  std::string allowed{};
};

Api::Found Api::find(const Request& request) {
  Found found;
  const bool head = request.method == "HEAD";
  for (const Route* const route : table(request.segments().size())) {
    if (!route->matches(request.segments(), found.id)) continue;
    if (route->method == request.method || (head && route->method == "GET")) {
      found.route = route;
      break;
    }
    found.allowed += (found.allowed.empty() ? "" : ", ") + std::string(route->method);
    if (route->method == "GET") found.allowed += ", HEAD";
  }
  return found;
}

namespace {

Task<Response> at_once(Response response) { co_return response; }

/// A parameter of the query that is there more than once, if only one would be read; empty: none.
std::string_view given_twice(const Request& request) {
  const auto& query = request.parts.query;
  for (auto field = query.begin(); field != query.end(); ++field) {
    if (field->name == kListed) continue;
    if (std::find_if(query.begin(), field, [&](const net::Field& other) { return other.name == field->name; }) != field)
      return field->name;
  }
  return {};
}

}  // namespace

/// No coroutine: a request that waits has a frame less.
Task<Response> Api::answer(const Request& request, Exchange& exchange) {
  if (const auto encoding = request.header("Content-Encoding"); encoding && *encoding != "identity") {
    return at_once(
        problem_response(415, fmt::format("a body is sent as it is, not as '{}'", agent::excerpt(*encoding))));
  }
  if (!sends_json(request)) {
    return at_once(problem_response(415, "the body is no JSON by its Content-Type: send 'application/json'"));
  }
  if (const std::string wrong = wrong_text(request); !wrong.empty()) return at_once(problem_response(422, wrong));
  if (const std::string_view twice = given_twice(request); !twice.empty()) {
    return at_once(problem_response(422, fmt::format("the parameter '{}' is there twice: send it once", shown(twice))));
  }
  const Found found = find(request);
  if (found.route != nullptr) {
    if (const Result<> known = found.route->check_known(request); !known) return at_once(problem(known.error()));
    Call call{request, exchange, std::string(found.id), {}};
    if (options_.run_of_token && request.bearer()) call.caller = options_.run_of_token(*request.bearer());
    if (!call.caller.empty()) return answer_run(*found.route, std::move(call));
    return (this->*found.route->handler)(std::move(call));
  }
  if (found.allowed.empty()) {
    return at_once(problem_response(404, fmt::format("there is nothing at {}; /openapi.json lists what is",
                                                     agent::excerpt(request.path(), domain::kShownNameBytesMax))));
  }
  Response refusal =
      problem_response(405, fmt::format("method {} is not allowed here", agent::excerpt(request.method)));
  refusal.headers.emplace_back("Allow", found.allowed);
  return at_once(std::move(refusal));
}

Task<Response> Api::answer_run(const Route& route, Call call) {
  if (auto refusal = co_await refuse_run(route, call)) co_return std::move(*refusal);
  co_return co_await (this->*route.handler)(std::move(call));
}

/// Whether the run is `ancestor` or below it.
Task<Result<bool>> Api::is_below(std::string id, const std::string& ancestor) {
  for (int level = 0; level < kLevelsMax && !id.empty(); ++level) {
    STINT_CO_TRY(const auto found, co_await fleet_.find(std::move(id)));
    if (!found) break;
    if (found->run.id == ancestor) co_return true;
    id = found->run.parent;
  }
  co_return false;
}

/// What a run may not ask: its own token is good for all below it.
Task<std::optional<Response>> Api::refuse_run(const Route& route, const Call& call) {
  bool may = route.for_runs == ForRuns::always;
  if (route.for_runs == ForRuns::below || route.for_runs == ForRuns::strict) {
    std::string id = call.id;
    if (route.for_runs == ForRuns::strict) {
      const auto found = co_await fleet_.find(id);
      if (!found) co_return problem(found.error());
      id = *found ? (*found)->run.parent : std::string();
    }
    const auto below = co_await is_below(std::move(id), call.caller);
    if (!below) co_return problem(below.error());
    may = *below;
  }
  if (may) co_return std::nullopt;
  co_return problem_response(403, "the token of a run is good for the runs below it, and for nothing else");
}

// ---- runs ----------------------------------------------------------------------------------------------------------

/// Who waits and goes away wants it no more, unless it can ask again with the same key. Who is sent away by a drain
/// still wants it.
template <class T>
Task<Result<T>> Api::wait_for(Task<Result<T>> end, std::string id, bool keep, Exchange& exchange) {
  auto ended = co_await exchange.while_connected(std::move(end));
  if (!ended && ended.error() == Errc::closed && !keep) (void)co_await fleet_.cancel(std::move(id));
  co_return ended;
}

namespace {

/// Of a run that was accepted and can't be waited for here: the daemon drains, or the store fails for now. No refusal,
/// since a client that sends the same again would run it twice.
Response accepted(const engine::Submitted& submitted, const Error& why) {
  Response response = json(wire::accepted_to_json(submitted, why.describe()), 202);
  response.headers.emplace_back("Location", "/v1/runs/" + submitted.id);
  return with_retry_after(std::move(response), why);
}

}  // namespace

Task<Response> Api::submit(Call call) {
  auto request = wire::read_submit(call.request.body);
  if (!request) co_return problem(request.error());
  if (request->wait && call.exchange.reserved()) co_return no_place();
  engine::Submission& wish = request->wish;
  const auto key = call.idempotency_key();
  if (!key) co_return problem(key.error());
  wish.key = *key;
  if (!call.caller.empty()) {
    wish.parent_waits |= request->wait;
    // `stint run` within a run has the token of that run: a parent below the caller is taken as it is.
    const auto below = co_await is_below(wish.parent, call.caller);
    if (!below) co_return problem(below.error());
    if (!*below) wish.parent = call.caller;
    if (!wish.key.empty()) wish.key = call.caller + "/" + wish.key;  // a run has keys of its own, and takes no other's
  }
  wish.trace = call.trace();
  const bool keep = !wish.key.empty();
  const std::string agent = wish.agent;
  std::vector<engine::Submission> wishes;
  wishes.push_back(std::move(wish));
  auto answers = co_await fleet_.submit(std::move(wishes));
  if (!answers) co_return problem(answers.error());
  if (!answers->front()) {
    const Error& error = answers->front().error();
    if (error != Errc::invalid || agent.empty()) co_return problem(error);  // a full queue refuses often, and at once
    const auto known = co_await fleet_.agents();
    const bool unknown = known && std::ranges::find(*known, agent, &engine::AgentView::name) == known->end();
    if (unknown) co_return problem_response(404, "there is no agent '" + shown(agent) + "'; GET /v1/agents lists them");
    co_return problem(error);
  }
  const engine::Submitted submitted = *answers->front();
  if (request->wait) {
    const auto run = co_await wait_for(fleet_.wait(submitted.id), submitted.id, keep, call.exchange);
    if (!run) co_return accepted(submitted, run.error());
    Response response = json(wire::to_json(*run));
    response.headers.emplace_back("Location", "/v1/runs/" + submitted.id);
    co_return response;
  }
  domain::RunState state = domain::RunState::queued;
  if (!submitted.created) {
    const auto known = co_await fleet_.find(submitted.id);
    if (!known) co_return problem(known.error());
    if (*known) state = (*known)->run.state;
  }
  Response response = json(wire::to_json(submitted, state), submitted.created ? 201 : 200);
  response.headers.emplace_back("Location", "/v1/runs/" + submitted.id);
  co_return response;
}

Task<Response> Api::list(Call call) {
  store::Filter filter;
  for (const net::Field& field : call.request.parts.query) {
    if (field.name == kListed) {
      const auto state = domain::parse_run_state(field.value);
      if (!state) co_return problem(Error(Errc::invalid, "there is no state '" + shown(field.value) + "'"));
      filter.states.push_back(*state);
    }
  }
  filter.agent = text(call.request.parameter("agent"));
  filter.session = text(call.request.parameter("session"));
  filter.parent = call.caller;
  const auto before = call.number<std::int64_t>("before", 0, 0, kNumberMax);
  if (!before) co_return problem(before.error());
  const auto most = call.page_size();
  if (!most) co_return problem(most.error());
  filter.before = *before;
  filter.most = *most;
  const auto runs = co_await fleet_.list(filter);
  if (!runs) co_return problem(runs.error());
  const bool more = runs->size() == filter.most;
  co_return json(wire::to_json(*runs, more ? std::to_string(runs->back().run.number) : std::string()));
}

namespace {

/// The run of the path, or the answer that there is none.
Task<std::expected<engine::RunView, Response>> look_up(engine::Fleet& fleet, std::string id) {
  auto found = co_await fleet.find(id);
  if (!found) co_return std::unexpected(problem(found.error()));
  if (!*found) co_return std::unexpected(problem_response(404, "there is no run '" + shown(id) + "'"));
  co_return std::move(**found);
}

/// Why a limit could not be changed; or that there is none of that name, which is asked only then.
Task<Response> limit_problem(engine::Fleet& fleet, const std::string& name, Error error) {
  if (error != Errc::invalid || name.empty()) co_return problem(error);
  const auto known = co_await fleet.limits();
  if (!known) co_return problem(known.error());
  if (std::ranges::find(*known, name, &engine::LimitView::name) != known->end()) co_return problem(error);
  co_return problem_response(404, "there is no limit '" + shown(name) + "'; GET /v1/limits lists them");
}

}  // namespace

Task<Response> Api::show(Call call) {
  const auto run = co_await look_up(fleet_, call.id);
  co_return run ? json(wire::to_json(*run)) : run.error();
}

Task<Response> Api::cancel(Call call) {
  const auto run = co_await look_up(fleet_, call.id);
  if (!run) co_return run.error();
  const auto receipt = co_await fleet_.cancel(run->run.id);
  co_return receipt ? json(wire::to_json(*receipt)) : problem(receipt.error());
}

Task<Response> Api::retry(Call call) {
  const auto run = co_await look_up(fleet_, call.id);
  if (!run) co_return run.error();
  const auto submitted = co_await fleet_.retry(run->run.id);
  if (!submitted) co_return problem(submitted.error());
  Response response = json(wire::to_json(*submitted, domain::RunState::queued), 201);
  response.headers.emplace_back("Location", "/v1/runs/" + submitted->id);
  co_return response;
}

Task<Response> Api::resolve(Call call) {
  const auto how = wire::read_resolve(call.request.body);
  if (!how) co_return problem(how.error());
  const auto run = co_await look_up(fleet_, call.id);
  if (!run) co_return run.error();
  const auto state = co_await fleet_.resolve(run->run.id, *how);
  co_return state ? json(wire::resolved_to_json(run->run.id, *state)) : problem(state.error());
}

Task<Response> Api::go_on(Call call) {
  const auto run = co_await look_up(fleet_, call.id);
  if (!run) co_return run.error();
  const auto done = co_await fleet_.answer(run->run.id);
  co_return done ? json(wire::resolved_to_json(run->run.id, domain::RunState::queued)) : problem(done.error());
}

Task<Response> Api::why(Call call) {
  const auto run = co_await look_up(fleet_, call.id);
  if (!run) co_return run.error();
  const auto why = co_await fleet_.why(run->run.id);
  co_return why ? json(wire::to_json(*why)) : problem(why.error());
}

Task<Response> Api::output(Call call) {
  const auto run = co_await look_up(fleet_, call.id);
  if (!run) co_return run.error();
  const auto output = co_await fleet_.output(run->run.id);
  co_return output ? json(wire::to_json(*output)) : problem(output.error());
}

// ---- events --------------------------------------------------------------------------------------------------------

Task<Response> Api::run_events(Call call) {
  const auto run = co_await look_up(fleet_, call.id);
  if (!run) co_return run.error();
  auto after = call.number<std::int64_t>("after", 0, 0, kNumberMax);
  if (!after) co_return problem(after.error());
  const auto output = call.number<std::uint32_t>("output", 0, 0, 1);
  if (!output) co_return problem(output.error());
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
    co_return problem(Error(Errc::invalid, fmt::format("{} is after the newest event of this run, which is {}: "
                                                       "begin anew, without a cursor",
                                                       *after, run->run.seq)));
  }
  if (call.wants_stream()) {
    // A browser that reads to the end of a run connects again, unless it is told that there is no more.
    if (domain::is_finished(run->run.state) && *after >= run->run.seq) co_return json("", 204);
    EventStream events(call.exchange);
    co_return co_await events.run(tell_run(events, run->run.id, *after, *output == 1));
  }
  const auto page = co_await fleet_.events(run->run.id, *after, *most);
  if (!page) co_return problem(page.error());
  co_return json(wire::to_json(*page, std::to_string(page->empty() ? *after : page->back().seq)));
}

/// From here on others tell what happens: who follows reads all that happened before, and then the end.
bool Api::has_stopped() const { return fleet_.phase() == engine::Phase::stopped; }

Task<> Api::tell_run(EventStream& events, std::string id, std::int64_t after, bool with_output) {
  std::uint64_t printed = 0;
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
    if (with_output) {
      const auto output = co_await fleet_.output(id);
      if (!output) co_return;
      if (std::exchange(printed, output->bytes) != output->bytes) {
        Event out;  // without an id: it is no event of the run
        out.name = "output";
        out.data = wire::printed_to_json(output->bytes);
        const auto sent = co_await events.send(out);
        if (!sent) co_return;
      }
    }
    if (last || domain::is_finished((*run)->run.state)) co_return;
    seen = co_await fleet_.changed(id, seen, kFollow);
  }
}

Task<Response> Api::all_events(Call call) {
  std::string cursor = text(call.request.parameter("after"));
  if (const auto last = call.request.header(kLastEventId); last && call.wants_stream()) cursor = *last;
  if (cursor.size() > kCursorBytesMax) {
    co_return problem(Error(Errc::invalid, "'" + shown(cursor) + "' is no cursor: begin anew, without one"));
  }
  const auto most = call.page_size();
  if (!most) co_return problem(most.error());
  if (call.wants_stream()) {
    if (call.exchange.reserved()) co_return no_place();
    if (cursor.empty() && !call.request.parameter("after")) cursor = store::kFeedNow;
    const std::uint64_t seen = co_await fleet_.changed("", 0, Duration::zero());
    auto first = co_await fleet_.feed(std::move(cursor), kStreamPage);  // a wrong cursor is refused before it begins
    if (!first) co_return problem(first.error());
    EventStream events(call.exchange);
    co_return co_await events.run(tell_all(events, std::move(*first), seen));
  }
  const auto page = co_await fleet_.feed(std::move(cursor), *most);
  co_return page ? json(wire::to_json(page->events, page->cursor)) : problem(page.error());
}

Task<> Api::tell_all(EventStream& events, store::FeedPage page, std::uint64_t seen) {
  bool last = false;
  while (true) {
    for (const store::Event& event : page.events) {
      Event out;
      out.id = event.cursor;
      out.name = event.cause;
      out.data = wire::to_json(event);
      const auto sent = co_await events.send(out);
      if (!sent) co_return;
    }
    if (page.events.empty()) {
      if (last) co_return;
      seen = co_await fleet_.changed("", seen, kFollow);
    }
    last = has_stopped();
    auto next = co_await fleet_.feed(page.cursor, kStreamPage);
    if (!next) co_return;
    page = std::move(*next);
  }
}

// ---- the fleet -----------------------------------------------------------------------------------------------------

Task<Response> Api::agents(Call) {
  const auto agents = co_await fleet_.agents();
  co_return agents ? json(wire::to_json(*agents)) : problem(agents.error());
}

Task<Response> Api::limits(Call) {
  const auto limits = co_await fleet_.limits();
  co_return limits ? json(wire::to_json(*limits)) : problem(limits.error());
}

Task<Response> Api::resize_limit(Call call) {
  const auto capacity = wire::read_capacity(call.request.body);
  if (!capacity) co_return problem(capacity.error());
  const auto done = co_await fleet_.resize_limit(call.id, *capacity);
  if (!done) co_return co_await limit_problem(fleet_, call.id, done.error());
  co_return co_await limits(std::move(call));
}

Task<Response> Api::pause_limit(Call call) {
  const auto length = wire::read_length(call.request.body, "for_ms");
  if (!length) co_return problem(length.error());
  const auto done = co_await fleet_.pause(call.id, *length);
  if (!done) co_return co_await limit_problem(fleet_, call.id, done.error());
  co_return co_await limits(std::move(call));
}

Task<Response> Api::resume_limit(Call call) {
  const auto woken = co_await fleet_.resume(call.id);
  if (!woken) co_return co_await limit_problem(fleet_, call.id, woken.error());
  co_return json(wire::resumed_to_json(*woken));
}

Task<Response> Api::pool(Call) {
  const auto health = co_await fleet_.health();
  co_return health ? json(wire::to_json(*health)) : problem(health.error());
}

Task<Response> Api::scale(Call call) {
  const auto wanted = wire::read_scale(call.request.body);
  if (!wanted) co_return problem(wanted.error());
  const auto health = co_await fleet_.scale(*wanted);
  co_return health ? json(wire::to_json(*health)) : problem(health.error());
}

Task<Response> Api::drain(Call call) {
  const auto how = wire::read_drain(call.request.body);
  if (!how) co_return problem(how.error());
  const auto done = co_await fleet_.drain(*how);
  if (!done) co_return problem(done.error());
  Response response = co_await pool(std::move(call));
  response.status = 202;
  co_return response;
}

Task<Response> Api::status(Call) {
  const auto status = co_await fleet_.status();
  co_return status ? json(wire::to_json(*status)) : problem(status.error());
}

Task<Response> Api::health(Call) {
  Response response;
  response.content_type = kText;
  response.body = "ok\n";
  co_return response;
}

Task<Response> Api::ready(Call) {
  const engine::Phase phase = fleet_.phase();
  Response response;
  response.content_type = kText;
  const std::string why = fleet_.why_unready();
  response.body = (phase == engine::Phase::serving && !why.empty() ? why : std::string(to_string(phase))) + "\n";
  if (phase != engine::Phase::serving || !why.empty()) {
    response.status = 503;
    response.headers.emplace_back("Retry-After", "2");
  }
  co_return response;
}

Task<Response> Api::metrics(Call) {
  const auto status = co_await fleet_.status();
  if (!status) co_return problem(status.error());
  Response response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = metrics_text(*status, options_.server ? options_.server() : nullptr);
  co_return response;
}

Task<Response> Api::describe(Call) { co_return json(std::string(openapi_text())); }

Task<Response> Api::front(Call) {
  Response response;
  response.content_type = kText;
  response.body = "stint: a fleet of agents. The API is described at /openapi.json\n";
  co_return response;
}

/// The short form: one question, one answer.
Task<Response> Api::short_run(Call call) {
  const auto session = call.request.parameter("session_id");
  const auto query = call.request.parameter("query");
  if (!session || session->empty() || !query || query->empty()) {
    const std::string missing = !session || session->empty() ? "session_id" : "query";
    co_return problem(Error(Errc::invalid, "the parameter '" + missing + "' is missing"));
  }
  const auto key = call.idempotency_key();
  if (!key) co_return problem(key.error());
  if (call.exchange.reserved())
    co_return with_retry_after(json(wire::short_refusal(kCapacity), 503), Error(Errc::full, ""));
  std::vector<engine::Submission> wishes(1);
  engine::Submission& wish = wishes.front();
  if (options_.default_agent) wish.agent = options_.default_agent();
  wish.agent_by_default = true;
  wish.args["query"] = {std::string(*query)};
  wish.session = *session;
  wish.key = *key;
  wish.trace = call.trace();
  wish.awaited = true;
  if (const auto checked = engine::check_text(wish); !checked) co_return problem(checked.error());
  const bool keep = !wish.key.empty();
  auto answers = co_await fleet_.submit(std::move(wishes));
  const Error* refusal = nullptr;
  if (!answers) {
    refusal = &answers.error();
  } else if (!answers->front()) {
    refusal = &answers->front().error();
  }
  if (refusal != nullptr) {
    const bool full = *refusal == Errc::full || *refusal == Errc::closed || *refusal == Errc::unavailable;
    if (full) co_return with_retry_after(json(wire::short_refusal(kCapacity), 503), *refusal);
    co_return json(wire::short_error(refusal->describe()));
  }
  engine::Submitted& submitted = *answers->front();
  const std::string id = submitted.id;
  const auto run = co_await wait_for(fleet_.ended(std::move(submitted)), id, keep, call.exchange);
  if (!run) {
    Response response = json(wire::short_pending(run.error().describe()), 202);
    response.headers.emplace_back("Location", "/v1/runs/" + id);
    co_return with_retry_after(std::move(response), run.error());
  }
  if (run->state == domain::RunState::succeeded) co_return json(wire::short_success(run->answer));
  co_return json(wire::short_error(run->error.empty() ? std::string(to_string(run->state)) : run->error));
}

}  // namespace stint::http
