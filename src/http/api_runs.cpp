// Handlers of runs: submit, read, cancel, retry, resolve.
#include "fleet/submission_text.hpp"
#include "fleet/transcript.hpp"
#include "http/api_call.hpp"
#include "wire/fleet.hpp"
#include "wire/run_codec.hpp"
#include "wire/timeline.hpp"

#include <algorithm>
#include <functional>

namespace stint::http {
namespace {

constexpr std::string_view kCapacity = "Agent pool at capacity. Retry later.";

}  // namespace

Task<std::expected<engine::RunView, Response>> look_up(fleet::Fleet& fleet, std::string id) {
  auto found = co_await fleet.find(id);
  if (!found) co_return std::unexpected(problem(found.error()));
  if (!*found) co_return std::unexpected(problem_response(404, "there is no run '" + shown(id) + "'"));
  co_return std::move(**found);
}

/// Waits for the end of the run. A client that leaves cancels it, unless it can repeat the request with the same key
/// (`keep`). A wait that ends because this daemon drains cancels nothing.
Task<Result<std::unique_ptr<engine::RunView>>> Api::wait_for(std::string id, bool keep, Exchange& exchange) {
  auto ended = co_await exchange.while_connected(fleet_.wait(id));
  if (!ended && ended.error() == Errc::closed && !keep) (void)co_await fleet_.cancel(std::move(id));
  co_return ended;
}

namespace {

/// Looks the run up, acts on it by its full id, and answers with what came of it.
template <class Act, class Show>
Task<Response> act_on(fleet::Fleet& fleet, std::string named, Act act, Show show) {
  const auto run = co_await look_up(fleet, std::move(named));
  if (!run) co_return run.error();
  const auto done = co_await std::invoke(act, fleet, run->run.id);
  if (done) co_return show(run->run.id, done);
  if (done.error() == Errc::invalid) {  // it may have been deleted meanwhile
    const auto still = co_await look_up(fleet, run->run.id);
    if (!still) co_return still.error();
  }
  co_return problem(done.error());
}

/// 202 for a run that was accepted but can't be waited for here: the daemon drains, or the store fails for now. Not an
/// error status, since a client that repeats the request would start a second run.
Response accepted(const engine::Submitted& submitted, const Error& why) {
  Response response = json_response(wire::accepted_to_json(submitted, why.describe()), 202);
  response.headers.emplace_back("Location", "/v1/runs/" + submitted.id);
  return with_retry_after(std::move(response), why);
}

}  // namespace

Task<Response> Api::submit(Call call) {
  auto request = wire::read_submit(call.request.body);
  if (!request) co_return problem(request.error());
  if (request->wait && call.exchange.reserved()) co_return no_place();
  engine::Submission& submission = request->submission;
  const auto key = call.idempotency_key();
  if (!key) co_return problem(key.error());
  submission.key = *key;
  if (!call.caller.empty()) {
    submission.parent_waits |= request->wait;
    // `stint run` within a run carries that run's token: a parent among the caller's descendants is accepted.
    const auto below = co_await is_below(submission.parent, call.caller);
    if (!below) co_return problem(below.error());
    if (!*below) submission.parent = call.caller;
    if (!submission.key.empty())
      submission.key = call.caller + "/" + submission.key;  // a run has its own key namespace
  }
  submission.trace = call.trace();
  const bool keep = !submission.key.empty();
  const std::string agent = submission.agent;
  std::vector<engine::Submission> submissions;
  submissions.push_back(std::move(submission));
  auto answers = co_await fleet_.submit(std::move(submissions));
  if (!answers) co_return problem(answers.error());
  if (!answers->front()) {
    const Error& error = answers->front().error();
    if (error != Errc::invalid || agent.empty())
      co_return problem(error);  // a full queue refuses often: answer without a lookup
    const auto known = co_await fleet_.agents();
    const bool unknown = known && std::ranges::find(*known, agent, &engine::AgentView::name) == known->end();
    if (unknown) co_return no_such("there is no agent '" + shown(agent) + "'", "/v1/agents");
    co_return problem(error);
  }
  const engine::Submitted submitted = *answers->front();
  if (request->wait) {
    const auto run = co_await wait_for(submitted.id, keep, call.exchange);
    if (!run) co_return accepted(submitted, run.error());
    Response response = json_response(wire::to_json(**run));
    response.headers.emplace_back("Location", "/v1/runs/" + submitted.id);
    co_return response;
  }
  domain::RunState state = domain::RunState::queued;
  if (!submitted.created) {
    const auto known = co_await fleet_.find(submitted.id);
    if (!known) co_return problem(known.error());
    if (*known) state = (*known)->run.state;
  }
  Response response = json_response(wire::to_json(submitted, state), submitted.created ? 201 : 200);
  response.headers.emplace_back("Location", "/v1/runs/" + submitted.id);
  co_return response;
}

Task<Response> Api::show(Call call) {
  const auto run = co_await look_up(fleet_, call.id);
  co_return run ? json_response(wire::to_json(*run)) : run.error();
}

Task<Response> Api::cancel(Call call) {
  return act_on(fleet_, std::move(call.id), &fleet::Fleet::cancel,
                [](const std::string&, const auto& receipt) { return json_response(wire::to_json(*receipt)); });
}

Task<Response> Api::retry(Call call) {
  return act_on(fleet_, std::move(call.id), &fleet::Fleet::retry, [](const std::string&, const auto& submitted) {
    Response response = json_response(wire::to_json(*submitted, domain::RunState::queued), 201);
    response.headers.emplace_back("Location", "/v1/runs/" + submitted->id);
    return response;
  });
}

Task<Response> Api::resolve(Call call) {
  const auto how = wire::read_resolve(call.request.body);
  if (!how) co_return problem(how.error());
  const auto act = [&how](fleet::Fleet& fleet, std::string id) { return fleet.resolve(std::move(id), *how); };
  co_return co_await act_on(fleet_, std::move(call.id), act, [](const std::string& id, const auto& state) {
    return json_response(wire::resolved_to_json(id, *state));
  });
}

Task<Response> Api::go_on(Call call) {
  return act_on(fleet_, std::move(call.id), &fleet::Fleet::answer, [](const std::string& id, const Result<>&) {
    return json_response(wire::resolved_to_json(id, domain::RunState::queued));
  });
}

Task<Response> Api::why(Call call) {
  return act_on(fleet_, std::move(call.id), &fleet::Fleet::why,
                [](const std::string&, const auto& why) { return json_response(wire::to_json(*why)); });
}

Task<Response> Api::timeline(Call call) {
  return act_on(fleet_, std::move(call.id), &fleet::Fleet::timeline,
                [](const std::string&, const auto& timeline) { return json_response(wire::to_json(*timeline)); });
}

Task<Response> Api::transcript(Call call) {
  engine::TranscriptPlace from;
  if (const auto given = call.request.parameter("from")) {
    const auto place = engine::parse_transcript_place(*given);
    if (!place) {
      co_return problem(Error(Errc::invalid, "'" + shown(*given) + "' is not a place in a transcript: start without"));
    }
    from = *place;
  }
  const auto run = co_await look_up(fleet_, call.id);
  if (!run) co_return run.error();
  const wire::RunCodec run_codec;
  const auto page = co_await fleet::read_transcript(fleet_, run_codec, run->run, from);
  co_return page ? json_response(wire::to_json(*page, run->run.id)) : problem(page.error());
}

Task<Response> Api::output(Call call) {
  const auto run = co_await look_up(fleet_, call.id);
  if (!run) co_return run.error();
  const auto from = call.number<std::int64_t>("from", 0, 0, kNumberMax);
  if (!from) co_return problem(from.error());
  const auto output = co_await fleet_.output(run->run.id);
  if (!output) co_return problem(output.error());
  if (!call.request.parameter("from")) co_return json_response(wire::to_json(*output));
  const bool ended = domain::is_finished(run->run.state);
  co_return json_response(wire::to_json(engine::slice_output(*output, static_cast<std::uint64_t>(*from), ended)));
}

/// The short form: prompt in, result out.
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
    co_return with_retry_after(json_response(wire::short_refusal(kCapacity), 503), Error(Errc::full, ""));
  std::vector<engine::Submission> submissions(1);
  engine::Submission& submission = submissions.front();
  if (options_.default_agent) submission.agent = options_.default_agent();
  submission.agent_by_default = true;
  submission.args["query"] = {std::string(*query)};
  submission.session = *session;
  submission.key = *key;
  submission.trace = call.trace();
  if (const auto checked = fleet::check_text(submission); !checked) co_return problem(checked.error());
  const bool keep = !submission.key.empty();
  auto answers = co_await fleet_.submit(std::move(submissions));
  const Error* refusal = nullptr;
  if (!answers) {
    refusal = &answers.error();
  } else if (!answers->front()) {
    refusal = &answers->front().error();
  }
  if (refusal != nullptr) {
    const bool full = *refusal == Errc::full || *refusal == Errc::closed || *refusal == Errc::unavailable;
    if (full) co_return with_retry_after(json_response(wire::short_refusal(kCapacity), 503), *refusal);
    co_return json_response(wire::short_error(refusal->describe()));
  }
  const std::string id = answers->front()->id;
  const auto run = co_await wait_for(id, keep, call.exchange);
  if (!run) {
    Response response = json_response(wire::short_pending(run.error().describe()), 202);
    response.headers.emplace_back("Location", "/v1/runs/" + id);
    co_return with_retry_after(std::move(response), run.error());
  }
  const store::Run& ended = (*run)->run;
  if (ended.state == domain::RunState::succeeded) co_return json_response(wire::short_success((*run)->memo.text));
  co_return json_response(wire::short_error(ended.error.empty() ? std::string(to_string(ended.state)) : ended.error));
}

}  // namespace stint::http
