#include "store/conformance.hpp"

namespace stint::store {

using namespace std::chrono_literals;
using domain::Settle;

void StoreTest::define(std::string name, const std::function<void(AgentEntry&)>& change) {
  AgentEntry entry;
  entry.name = std::move(name);
  if (change) change(entry);
  get(store().define({entry}));
}

NewRun StoreTest::fresh(std::string agent) {
  const domain::System counter{.wall_now = {}, .random = [this] { return ids_++ * 0x9E3779B97F4A7C15U >> 7U; }};
  NewRun run;
  run.id = domain::new_run_id(counter);
  run.agent = std::move(agent);
  run.on_crash = domain::OnCrash::rerun;
  return run;
}

Result<Accepted> StoreTest::try_submit(NewRun run) {
  auto answers = ask(store().enqueue({std::move(run)}));
  if (!answers) return fail(std::move(answers.error()));
  if (answers->size() != 1) return fail(Errc::failed, "not one answer");
  return std::move(answers->front());
}

std::string StoreTest::submit(std::string agent, const std::function<void(NewRun&)>& change) {
  NewRun run = fresh(std::move(agent));
  if (change) change(run);
  auto accepted = try_submit(std::move(run));
  if (!accepted) {
    ADD_FAILURE() << accepted.error().describe();
    return {};
  }
  return accepted->id;
}

Claim StoreTest::claim_one(NodeNumber node, std::string agent) {
  std::vector<Claim> claims = claim(node, std::move(agent));
  if (claims.size() != 1) {
    ADD_FAILURE() << claims.size() << " claims";
    return {};
  }
  return std::move(claims.front());
}

Claim StoreTest::claim_named(NodeNumber node, std::string id) {
  std::vector<Claim> claims = claim(node, "a", 1, id);
  if (claims.size() != 1) {
    ADD_FAILURE() << claims.size() << " claims of " << id;
    return {};
  }
  return std::move(claims.front());
}

std::string StoreTest::submit_below(std::string parent, std::vector<std::string> draws_on) {
  return submit("a", [&](NewRun& run) {
    run.parent = std::move(parent);
    run.draws_on = std::move(draws_on);
  });
}

Use StoreTest::used(std::string head) {
  const std::vector<FamilyUse> sums = get(store().used({std::move(head)}));
  if (sums.size() != 1) {
    ADD_FAILURE() << sums.size() << " sums";
    return {};
  }
  return sums.front().used;
}

std::optional<std::vector<FamilyUse>> StoreTest::report(NodeNumber node, const Claim& of, std::int64_t tokens,
                                                        std::int64_t cost_micros) {
  return get(store().report(node, of.attempt_key(), {.tokens = tokens, .cost_micros = cost_micros}));
}

std::vector<std::string> StoreTest::claimed_ids(NodeNumber node, std::string agent, std::uint32_t most) {
  std::vector<std::string> ids;
  for (Claim& one : claim(node, std::move(agent), most)) ids.push_back(std::move(one.id));
  return ids;
}

std::optional<domain::RunState> StoreTest::settle(NodeNumber node, const Claim& claim, domain::Settle settle,
                                                  const std::function<void(Settlement&)>& change) {
  Settlement settlement;
  settlement.attempt = claim.attempt_key();
  settlement.settle = settle;
  if (change) change(settlement);
  const auto states = get(store().settle(node, {settlement}));
  if (states.size() != 1) {
    ADD_FAILURE() << states.size() << " answers";
    return std::nullopt;
  }
  return states.front();
}

store::Run StoreTest::look(const std::string& id) {
  std::optional<store::Run> run = get(store().find(id));
  if (!run) ADD_FAILURE() << "no run " << id;
  return run.value_or(store::Run());
}

std::vector<std::string> StoreTest::causes(std::string id) {
  std::vector<std::string> found;
  for (const Event& event : get(store().events(std::move(id), 0, 1000))) found.push_back(event.cause);
  return found;
}

std::vector<std::string> StoreTest::reasons(std::string id) {
  std::vector<std::string> found;
  for (const Why& why : get(store().why(std::move(id)))) found.emplace_back(to_string(why.cause));
  return found;
}

void StoreTest::make_run_of_every_kind() {
  define("a", [](AgentEntry& agent) { agent.limits = {{"gpu", 2}, {"model:opus", 1}}; });
  define("b", [](AgentEntry& agent) { agent.queued_max = 7; });
  get(store().resize("gpu", 9U));
  get(store().pause("account:x", std::nullopt));
  submit("a", [](NewRun& run) { run.input = "{\"n\": 1, \"umlaut\": \"ä\"}"; });
  submit("a", [](NewRun& run) {
    run.priority = 5;
    run.key = "k1";
    run.session = "s";
  });
  submit("a", [](NewRun& run) { run.session = "s"; });
  submit("b", [](NewRun& run) { run.delay = 1h; });
  submit("b", [&](NewRun& run) { run.deadline = world().now() + 1h; });
  get(store().cancel(submit("b")));
  const NodeNumber node = enrol();
  define("c");
  for (int i = 0; i < 7; ++i) submit("c", [](NewRun& run) { run.budget = 10min; });
  const std::vector<Claim> claims = claim(node, "c", 7);
  ASSERT_EQ(claims.size(), 7U);
  submit("c", [&](NewRun& run) { run.parent = claims[0].id; });
  get(store().append_output(node, claims[0].attempt_key(), std::string(kOutputHeadMax + 10, 'h')));
  get(store().append_output(node, claims[0].attempt_key(), std::string(kOutputTailMax + 100, 't')));
  get(store().append_output(node, claims[1].attempt_key(), std::string("\0\xFF\n\"\\", 5)));
  get(store().put_message(node, claims[0].attempt_key(), {0, "{\"role\":\"user\"}"}));
  get(store().put_message(node, claims[0].attempt_key(), {1, std::string("\0\xFE", 2)}));
  get(store().put_message(node, claims[2].attempt_key(), {0, ""}));
  get(store().note(node, claims[0].attempt_key(), "tool", "{\"name\":\"grep\"}"));
  get(store().mark(node, claims[2].attempt_key(), true));
  settle(node, claims[0], Settle::succeeded, [](Settlement& end) {
    end.result = "{\"ok\":true}";
    end.tokens = 12'000;
    end.cost_micros = 340'000;
  });
  settle(node, claims[1], Settle::failed, [](Settlement& end) { end.error = "no \"luck\""; });
  settle(node, claims[2], Settle::retry, [](Settlement& end) { end.error = "lost the line"; });
  settle(node, claims[3], Settle::retry, [](Settlement& end) { end.retry_after = 1h; });
  settle(node, claims[4], Settle::park, [&](Settlement& end) {
    end.park_on = "account:x";
    end.park_for = 2h;
  });
  settle(node, claims[5], Settle::park);
  settle(node, claims[6], Settle::hand_back);
  get(store().leave(node));
}

}  // namespace stint::store
