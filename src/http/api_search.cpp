// Handlers of lists of runs, and of batches.
#include "http/api_call.hpp"
#include "wire/batch.hpp"
#include "wire/fleet.hpp"

namespace stint::http {
namespace {

/// Empty: the parameter is absent.
Result<std::string> some_text(const Request& request, std::string_view name) {
  const auto given = request.parameter(name);
  if (given && given->empty())
    return fail(Errc::invalid, fmt::format("'{}' is empty: leave it out, or name one", name));
  return text(given);
}

/// The filter in the address.
Result<store::Filter> read_filter(const Request& request) {
  store::Filter filter;
  for (const net::Field& field : request.parts.query) {
    if (field.name == kListedState) {
      const auto state = domain::parse_run_state(field.value);
      if (!state) return fail(Errc::invalid, "there is no state '" + shown(field.value) + "'");
      filter.states.push_back(*state);
    } else if (field.name == kListedHold) {
      const auto hold = domain::parse_hold(field.value);
      if (!hold) return fail(Errc::invalid, "there is no hold '" + shown(field.value) + "'");
      filter.holds.push_back(*hold);
    }
  }
  filter.agent = text(request.parameter("agent"));
  filter.session = text(request.parameter("session"));
  STINT_TRY(filter.parent, some_text(request, "parent"));
  if (const auto search = request.parameter("q")) {
    STINT_TRY(filter.search, wire::read_search(*search));
  }
  STINT_TRY(const std::string since, some_text(request, "since"));
  STINT_TRY(filter.since, wire::read_filter_time("since", since));
  STINT_TRY(const std::string until, some_text(request, "until"));
  STINT_TRY(filter.until, wire::read_filter_time("until", until));
  return filter;
}

Response no_such_batch(const std::string& id) {
  return no_such("there is no batch '" + shown(id) + "'", "/v1/batches");
}

}  // namespace

Task<Response> Api::list(Call call) {
  engine::Search search;
  auto filter = read_filter(call.request);
  if (!filter) co_return problem(filter.error());
  search.filter = std::move(*filter);
  if (!call.caller.empty()) {
    if (!search.filter.parent.empty() && search.filter.parent != call.caller) {
      co_return problem(Error(Errc::denied, "the token of a run lists the children of that run only"));
    }
    search.filter.parent = call.caller;
  }
  const auto before = call.number<std::int64_t>("before", 0, 0, kNumberMax);
  if (!before) co_return problem(before.error());
  if (*before > 0) search.cursor = std::to_string(*before);
  const auto most = call.page_size();
  if (!most) co_return problem(most.error());
  search.filter.most = *most;
  const std::string total = text(call.request.parameter("total"));
  if (call.request.parameter("total") && total != "true" && total != "false") {
    co_return problem(Error(Errc::invalid, "'total' must be true or false"));
  }
  search.total = total == "true";
  const auto page = co_await fleet_.search(std::move(search));
  if (!page) co_return problem(page.error());
  co_return json_response(wire::to_json(page->runs, page->next, page->total));
}

Task<Response> Api::begin_batch(Call call) {
  auto request = wire::read_batch_request(call.request.body);
  if (!request) co_return problem(request.error());
  const auto key = call.idempotency_key();
  if (!key) co_return problem(key.error());
  if (key->size() > domain::kKeyBytesMax) {
    co_return problem(
        Error(Errc::invalid, fmt::format("'Idempotency-Key' has more than {} bytes", domain::kKeyBytesMax)));
  }
  request->key = *key;
  const bool dry_run = request->dry_run;
  const store::BatchAction action = request->action;
  const std::uint64_t expect = request->expect.value_or(0);
  const auto answer = co_await fleet_.begin_batch(std::move(*request));
  if (!answer) co_return problem(answer.error());
  if (dry_run) co_return json_response(wire::dry_run_to_json(action, answer->matched));
  if (!answer->batch) {
    co_return problem_response(
        {.status = 409,
         .detail = fmt::format("{} runs match, not {}: look at them, and send the number that you mean",
                               answer->matched, expect),
         .matched = answer->matched});
  }
  Response response = json_response(wire::to_json(*answer->batch), answer->created ? 202 : 200);
  response.headers.emplace_back("Location", "/v1/batches/" + answer->batch->id);
  co_return response;
}

Task<Response> Api::list_batches(Call call) {
  const auto before = call.number<std::int64_t>("before", 0, 0, kNumberMax);
  if (!before) co_return problem(before.error());
  const auto most = call.page_size();
  if (!most) co_return problem(most.error());
  const auto batches = co_await fleet_.batches(store::BatchNumber{*before}, *most);
  if (!batches) co_return problem(batches.error());
  const bool more = batches->size() == *most;
  co_return json_response(wire::to_json(*batches, more ? std::to_string(batches->back().number.value) : std::string()));
}

Task<Response> Api::show_batch(Call call) {
  const auto batch = co_await fleet_.batch(call.id);
  if (!batch) co_return problem(batch.error());
  co_return *batch ? json_response(wire::to_json(**batch)) : no_such_batch(call.id);
}

Task<Response> Api::stop_batch(Call call) {
  const auto batch = co_await fleet_.stop_batch(call.id);
  if (!batch) co_return problem(batch.error());
  co_return *batch ? json_response(wire::to_json(**batch)) : no_such_batch(call.id);
}

}  // namespace stint::http
