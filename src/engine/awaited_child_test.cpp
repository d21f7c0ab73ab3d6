#include "engine/awaited_child.hpp"

#include "engine/engine_world.hpp"
#include "engine/local_fleet.hpp"
#include "engine/submission_text.hpp"

namespace stint::engine {
namespace {

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
  void limit(const std::string& name, std::uint32_t capacity, std::int64_t held) {
    LimitView& view = limits_.emplace_back();
    view.name = name;
    view.home = "host";
    view.capacity = capacity;
    view.held = held;
  }
  std::string check(const std::string& parent, const std::string& agent) {
    LocalFleet::Options options;
    options.host_limits = [this] { return limits_; };
    LocalFleet fleet(
        {sim_, store_, scribe_, ambient_, [this]() -> const Book& { return book_; }, engine_.get(), nullptr},
        std::move(options));
    std::optional<Result<>> done;
    auto body = [&]() -> Task<> { done = co_await check_awaited(fleet, parent, agent); };
    scope_.spawn(body());
    EXPECT_TRUE(sim_.run_until([&] { return done.has_value(); }));
    return !done ? "no answer" : *done ? std::string() : std::string(done->error().what());
  }
  std::vector<LimitView> limits_;
};

TEST_F(AwaitedChild, that_needs_what_its_parent_holds_is_refused_with_the_remedy) {
  book_["a"].agent.max_concurrency = 1;
  start();
  const std::string parent = submit("a");
  sim_.advance(1s);
  limit("agent:a", 1, 1);
  const std::string said = check(parent, "a");
  EXPECT_NE(said.find("holds 1 of 1 of agent:a"), std::string::npos) << said;
  EXPECT_NE(said.find("`stint run a`"), std::string::npos) << said;
  EXPECT_EQ(check(parent, "b"), "") << "it needs nothing of that";
  EXPECT_EQ(check("", "a"), "") << "no run waits for it";
}

TEST_F(AwaitedChild, that_finds_room_beside_its_parent_may_be_waited_for) {
  book_["a"].agent.max_concurrency = 2;
  start();
  const std::string parent = submit("a");
  sim_.advance(1s);
  limit("agent:a", 2, 2);  // the other one is held by a run that does not wait for it
  EXPECT_EQ(check(parent, "a"), "");
}

TEST_F(AwaitedChild, counts_weights_and_the_limit_of_the_host) {
  for (const char* const name : {"a", "b"}) book_[name].agent.limits.push_back({"gpu", 2, 1});
  start();
  const std::string parent = submit("a");
  sim_.advance(1s);
  limit("gpu", 3, 2);
  EXPECT_NE(check(parent, "b").find("holds 2 of 3 of gpu"), std::string::npos);
  limits_.clear();
  limit("host", 1, 1);
  EXPECT_NE(check(parent, "").find("holds 1 of 1 of host"), std::string::npos);
}

TEST(SubmissionText, bytes_that_are_no_text_are_refused_by_name) {
  Submission wish;
  wish.words = {"fine", "b\xC3\xA9"};
  EXPECT_TRUE(check_text(wish));
  wish.words[1] = "a\xff";
  EXPECT_NE(check_text(wish).error().what().find("argument 2 is not valid UTF-8 from byte 2 on"),
            std::string_view::npos);
  wish.words.clear();
  wish.prompt = "\xC3";
  EXPECT_NE(check_text(wish).error().what().find("the prompt"), std::string_view::npos);
}

}  // namespace
}  // namespace stint::engine
