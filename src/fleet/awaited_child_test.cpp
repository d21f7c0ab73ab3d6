#include "fleet/awaited_child.hpp"

#include "engine/engine_world.hpp"
#include "fleet/local_fleet.hpp"
#include "fleet/submission_text.hpp"

namespace stint::fleet {
namespace {

using namespace engine;

using namespace std::chrono_literals;

/// Runs of `a` and `b` last until they are cancelled.
class AwaitedChild : public EngineTest {
 protected:
  AwaitedChild() {
    add_agent("a", OnCrash::rerun);
    add_agent("b", OnCrash::rerun);
    decide_ = [](const domain::WorkOrder&) {
      Script script;
      script.takes = 1h;
      script.outcome.kind = OutcomeKind::succeeded;
      return script;
    };
  }
  /// A limit of the host, whose files name the run of each unit.
  void limit(const std::string& name, std::uint32_t capacity, std::vector<std::string> runs) {
    LimitView& view = limits_.emplace_back();
    view.name = name;
    view.home = "host";
    view.capacity = capacity;
    view.held = static_cast<std::int64_t>(runs.size());
    for (std::string& run : runs) view.holders.push_back({.run = std::move(run)});
  }
  Result<std::string> submit_below(const std::string& parent, const std::string& agent, bool waits,
                                   const std::string& key = {}) {
    LocalFleet::Options options;
    options.host_limits = [this]() -> Task<Result<std::vector<LimitView>>> { co_return limits_; };
    LocalFleet fleet({sim_, store_, run_codec_, system_, [this]() -> const AgentRegistry& { return registry_; },
                      engine_.get(), nullptr},
                     std::move(options));
    std::vector<Submission> submissions(1);
    submissions[0].agent = agent;
    if (agent.empty()) submissions[0].prompt = "do";
    submissions[0].parent = parent;
    submissions[0].parent_waits = waits;
    submissions[0].key = key;
    std::optional<Result<std::vector<Result<Submitted>>>> done;
    auto body = [&]() -> Task<> { done = co_await fleet.submit(std::move(submissions)); };
    scope_.spawn(body());
    EXPECT_TRUE(sim_.run_until([&] { return done.has_value(); }));
    if (!done) return fail(Errc::failed, "no answer");
    if (!*done) return fail(done->error());
    const Result<Submitted>& first = (*done)->front();
    return first ? Result<std::string>(first->id) : fail(first.error());
  }
  /// Why the child is refused; empty: it is accepted.
  std::string check(const std::string& parent, const std::string& agent) {
    const auto done = submit_below(parent, agent, true);
    return done ? std::string() : std::string(done.error().what());
  }
  /// Begins a child, whatever it needs.
  std::string begin_below(const std::string& parent, const std::string& agent) {
    const auto child = submit_below(parent, agent, false);
    EXPECT_TRUE(child) << child.error().what();
    sim_.advance(1s);
    return child.value_or("");
  }
  std::vector<LimitView> limits_;
};

TEST_F(AwaitedChild, that_needs_permits_of_its_parent_is_refused_with_the_remedy) {
  registry_["a"].agent.max_concurrency = 1;
  start();
  const std::string parent = submit("a");
  sim_.advance(1s);
  limit("agent:a", 1, {parent});
  const std::string said = check(parent, "a");
  EXPECT_NE(said.find("holds 1 of 1 of agent:a"), std::string::npos) << said;
  EXPECT_NE(said.find("`stint run a`"), std::string::npos) << said;
  EXPECT_EQ(check(parent, "b"), "") << "it needs no such permit";
  EXPECT_EQ(check("", "a"), "") << "no run waits for it";
  EXPECT_TRUE(submit_below(parent, "a", false)) << "the parent does not wait for it";
}

TEST_F(AwaitedChild, that_fits_beside_its_parent_is_accepted) {
  registry_["a"].agent.max_concurrency = 2;
  start();
  const std::string parent = submit("a"), stranger = submit("a");
  sim_.advance(1s);
  limit("agent:a", 2, {parent, stranger});
  EXPECT_EQ(check(parent, "a"), "") << "the other one will end";
}

TEST_F(AwaitedChild, that_needs_permits_of_an_ancestor_is_refused_at_any_depth) {
  registry_["a"].agent.max_concurrency = 1;
  start();
  const std::string top = submit("a");
  sim_.advance(1s);
  limit("agent:a", 1, {top});
  std::string parent = top;
  for (int depth = 0; depth < 4; ++depth) {
    parent = begin_below(parent, "b");
    EXPECT_NE(check(parent, "a").find("with its ancestors holds 1 of 1 of agent:a"), std::string::npos) << depth;
  }
}

TEST_F(AwaitedChild, that_needs_permits_of_other_runs_is_accepted) {
  registry_["a"].agent.max_concurrency = 2;
  start();
  const std::string top = submit("a");
  sim_.advance(1s);
  const std::string parent = begin_below(top, "a");  // as `stint run` does: under the permit of `top`
  limit("agent:a", 2, {top, "a-run-of-another", ""});
  EXPECT_EQ(check(parent, "a"), "") << "an ancestor holds one unit of two: the other runs will end";
}

TEST_F(AwaitedChild, whose_key_names_an_existing_run_is_accepted) {
  registry_["a"].agent.max_concurrency = 1;
  start();
  const std::string parent = submit("a");
  sim_.advance(1s);
  const auto first = submit_below(parent, "a", false, "key");
  limit("agent:a", 1, {parent});
  EXPECT_EQ(submit_below(parent, "a", true, "key").value_or("refused"), first.value_or("-"));
  EXPECT_FALSE(submit_below(parent, "a", true, "other"));
}

TEST_F(AwaitedChild, counts_weights_and_the_limit_of_the_host) {
  for (const char* const name : {"a", "b"}) registry_[name].agent.limits.push_back({"gpu", 2, 1});
  start();
  const std::string parent = submit("a");
  sim_.advance(1s);
  limit("gpu", 3, {parent, parent});
  EXPECT_NE(check(parent, "b").find("holds 2 of 3 of gpu"), std::string::npos);
  limits_.clear();
  limit("host", 1, {parent});
  EXPECT_NE(check(parent, "a").find("holds 1 of 1 of host"), std::string::npos);
}

TEST(CheckAwaited, counts_what_ancestors_hold) {
  LimitView limit;
  limit.name = "gpu";
  limit.capacity = 4;
  limit.holders = {{.run = "two", .weight = 2}, {.run = "other", .weight = 2}};
  const auto refused = [&](std::uint64_t units, const std::vector<std::string>& above) {
    return !check_awaited("a", {{"gpu", units}}, above, {limit});
  };
  EXPECT_FALSE(refused(2, {"two"})) << "the other run will end";
  EXPECT_TRUE(refused(3, {"two"}));
  EXPECT_TRUE(refused(1, {"other", "two"}));
  EXPECT_TRUE(refused(3, {"none", "none", "two"}));
  EXPECT_FALSE(refused(2, {"shared", "two"})) << "a run that shares is no holder";
  EXPECT_FALSE(refused(4, {"none"})) << "only other runs hold it";
}

/// The store counts the limit: a run holds what it was claimed with, whatever the file of its agent says now.
TEST_F(AwaitedChild, that_needs_permits_its_parent_was_claimed_with_is_refused_after_a_reload) {
  const auto use = [this](const char* agent, std::uint32_t weight) {
    registry_[agent].agent.limits = {{"gpu", weight, 1}};
    registry_[agent].entry.limits = {{"gpu", weight}};
  };
  use("a", 3);
  use("b", 2);
  start();
  (void)get(store_.resize("gpu", 4));
  const std::string parent = submit("a");
  sim_.advance(1s);
  use("a", 1);
  EXPECT_NE(check(parent, "b").find("holds 3 of 4 of gpu"), std::string::npos) << check(parent, "b");
  EXPECT_EQ(check(parent, "a"), "") << "one unit is left";
  use("a", 4);
  use("b", 1);
  EXPECT_EQ(check(parent, "b"), "") << "it holds three, not four";
}

TEST(SubmissionText, bytes_that_are_no_text_are_refused_by_name) {
  Submission submission;
  submission.words = {"fine", "b\xC3\xA9"};
  EXPECT_TRUE(check_text(submission));
  submission.words[1] = "a\xff";
  EXPECT_NE(check_text(submission).error().what().find("argument 2 is not valid UTF-8 from byte 2 on"),
            std::string_view::npos);
  submission.words.clear();
  submission.prompt = "\xC3";
  EXPECT_NE(check_text(submission).error().what().find("the prompt"), std::string_view::npos);
}

}  // namespace
}  // namespace stint::fleet
