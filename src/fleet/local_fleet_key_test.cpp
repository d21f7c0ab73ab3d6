// An idempotency key stands for the submission, however the agent's file has changed since.
#include "agent/text.hpp"
#include "domain/bounds.hpp"
#include "engine/engine_world.hpp"
#include "fleet/local_fleet.hpp"

namespace stint::fleet {
namespace {

using namespace engine;

/// Records what it writes.
class KeepingRunCodec final : public pool::RunCodec {
 public:
  [[nodiscard]] std::string write(const domain::RunInput& input) const override {
    kept_.push_back(input);
    return std::to_string(kept_.size());
  }
  [[nodiscard]] Result<domain::RunInput> read_input(std::string_view text) const override {
    const auto number = static_cast<std::size_t>(std::stoll(std::string(text)));
    return number == 0 ? domain::RunInput() : kept_.at(number - 1);
  }
  [[nodiscard]] std::string write(const domain::RunMemo&) const override { return ""; }
  [[nodiscard]] Result<domain::RunMemo> read_memo(std::string_view) const override { return domain::RunMemo(); }
  [[nodiscard]] std::string write_note(std::string_view text) const override { return std::string(text); }
  [[nodiscard]] std::string write_span(const domain::Span& span) const override { return span.name; }
  [[nodiscard]] std::string read_note(std::string_view data) const override { return std::string(data); }

 private:
  mutable std::vector<domain::RunInput> kept_;
};

class KeyTest : public EngineTest {
 protected:
  KeyTest() {
    add_agent("review", OnCrash::rerun);
    registry_["review"].agent.args = {argument("pr", {}), argument("depth", "1")};
    define_all();
  }
  static domain::ArgumentSpec argument(std::string name, std::optional<std::string> fallback) {
    domain::ArgumentSpec spec;
    spec.name = std::move(name);
    spec.required = !fallback;
    spec.fallback = std::move(fallback);
    return spec;
  }
  void define_all() {
    std::vector<store::AgentEntry> entries;
    for (const auto& [name, spec] : registry_) entries.push_back(spec.entry);
    get(store_.define(entries));
  }
  static Submission submission(std::vector<std::string> pr) {
    Submission asked;
    asked.agent = "review";
    if (!pr.empty()) asked.args["pr"] = std::move(pr);
    asked.key = "k";
    return asked;
  }
  Result<Submitted> ask(Submission asked) {
    std::vector<Submission> submissions;
    submissions.push_back(std::move(asked));
    return get(fleet_.submit(std::move(submissions))).front();
  }
  /// Expects that the key names this run.
  void expect_known(const std::string& id, Submission asked) {
    const auto again = ask(std::move(asked));
    ASSERT_TRUE(again) << again.error().describe();
    EXPECT_EQ(again->id, id);
    EXPECT_FALSE(again->created);
  }
  void expect_refused(const std::string& id, Submission asked) {
    const auto again = ask(std::move(asked));
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code(), Errc::conflict) << again.error().describe();
    EXPECT_NE(again.error().describe().find(id), std::string::npos) << again.error().describe();
  }

  KeepingRunCodec keeps_;
  LocalFleet fleet_{{sim_, store_, keeps_, system_, [this]() -> const AgentRegistry& { return registry_; }, nullptr},
                    {}};
};

TEST_F(KeyTest, the_same_submission_gives_the_same_run_after_the_agent_changed) {
  const auto first = ask(submission({"42"}));
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->created);
  domain::Agent& agent = registry_["review"].agent;
  expect_known(first->id, submission({"42"}));
  agent.args[1].fallback = "2";
  expect_known(first->id, submission({"42"}));
  agent.args[0].name = "number";
  expect_known(first->id, submission({"42"}));
  agent.args.push_back(argument("new", {}));
  expect_known(first->id, submission({"42"}));
  registry_["review"].refused = Error(Errc::denied, "it needs trust");
  expect_known(first->id, submission({"42"}));
  registry_["review"].gone = true;
  expect_known(first->id, submission({"42"}));
  registry_.erase("review");
  expect_known(first->id, submission({"42"}));
  for (const char* const other : {"43", ""}) expect_refused(first->id, submission({other}));
  Submission unknown = submission({"42"});
  unknown.key = "new";
  EXPECT_EQ(ask(unknown).error().code(), Errc::invalid)
      << "an unknown key submits a run of an agent that does not exist";
}

TEST_F(KeyTest, another_submission_is_refused) {
  const auto first = ask(submission({"42"}));
  ASSERT_TRUE(first);
  const auto change = [&](const std::function<void(Submission&)>& how) {
    Submission asked = submission({"42"});
    how(asked);
    expect_refused(first->id, asked);
  };
  change([](Submission& asked) { asked.args["pr"] = {"43"}; });
  change([](Submission& asked) { asked.args["pr"] = {"4", "2"}; });
  change([](Submission& asked) { asked.args["depth"] = {"3"}; });
  change([](Submission& asked) { asked.session = "s"; });
  change([](Submission& asked) { asked.model = "opus"; });
  change([](Submission& asked) { asked.driver = "claude"; });
  change([](Submission& asked) { asked.args = {}; });
  expect_known(first->id, submission({"42"}));
}

TEST_F(KeyTest, priority_deadline_delay_and_budget_are_not_compared) {
  const auto first = ask(submission({"42"}));
  ASSERT_TRUE(first);
  Submission again = submission({"42"});
  again.priority = 3;
  again.deadline = 1h;
  again.budget.tokens = 7;
  again.trace = "0123456789abcdef0123456789abcdef";
  expect_known(first->id, again);
  Submission words = submission({});
  words.words = {"42"};
  expect_known(first->id, words);
}

TEST_F(KeyTest, a_key_of_the_default_agent_survives_a_new_default) {
  add_agent("answer", OnCrash::rerun);
  add_agent("reply", OnCrash::rerun);
  for (const char* const name : {"answer", "reply"}) registry_[name].agent.args = {argument("query", {})};
  define_all();
  const auto short_form = [](std::string agent, std::string query) {
    Submission asked;
    asked.agent = std::move(agent);
    asked.agent_by_default = true;
    asked.args["query"] = {std::move(query)};
    asked.session = "s";
    asked.key = "k";
    return asked;
  };
  const auto first = ask(short_form("answer", "why?"));
  ASSERT_TRUE(first && first->created);
  expect_known(first->id, short_form("answer", "why?"));
  expect_refused(first->id, short_form("answer", "how?"));
  expect_known(first->id, short_form("reply", "why?"));
  const auto named = ask(submission({"42"}));
  ASSERT_TRUE(named);
  EXPECT_TRUE(named->created) << "the key of an agent by its name is another";
}

TEST_F(KeyTest, a_known_key_costs_nothing_of_the_parents_budget) {
  add_agent("head", OnCrash::rerun);
  define_all();
  store::NewRun head;
  head.id = "aaaaaaaaaaaa";
  head.agent = "head";
  head.input = "0";
  registry_["head"].budget.tokens = 10;
  EXPECT_TRUE(get(store_.enqueue({head})).front());
  const store::NodeNumber worker = get(store_.enrol("test"));
  const auto claims = get(store_.claim(worker, "head", 1));
  ASSERT_EQ(claims.size(), 1U);
  Submission below = submission({"42"});
  below.parent = head.id;
  const auto first = ask(below);
  ASSERT_TRUE(first);
  get(store_.report(worker, claims[0].attempt_key(), {.tokens = 10}));
  expect_known(first->id, below);
  below.key = "new";
  EXPECT_EQ(ask(below).error().code(), Errc::exhausted);
}

TEST_F(KeyTest, texts_that_identify_a_run_are_bounded) {
  struct Bound {
    const char* name;
    std::string Submission::* text;
    std::size_t bytes_max;
  };
  for (const Bound& bound : {Bound{"session", &Submission::session, domain::kSessionBytesMax},
                             Bound{"Idempotency-Key", &Submission::key, domain::kKeyBytesMax},
                             Bound{"model", &Submission::model, domain::kModelBytesMax}}) {
    const auto with = [&](std::string text) {
      Submission asked = submission({"1"});
      asked.key.clear();
      asked.*bound.text = std::move(text);
      return ask(std::move(asked));
    };
    EXPECT_TRUE(with(std::string(bound.bytes_max, 'x'))) << bound.name;
    for (const std::string& wrong : {std::string(bound.bytes_max + 1, 'x'), std::string(4 << 20, 'x'),
                                     std::string("\xff"), std::string("a\0b", 3)}) {
      const auto refused = with(wrong);
      ASSERT_FALSE(refused) << bound.name;
      EXPECT_EQ(refused.error(), Errc::invalid);
      EXPECT_TRUE(refused.error().what().contains(bound.name)) << refused.error().what();
    }
  }
}

TEST_F(KeyTest, a_title_is_cut_between_two_characters) {
  registry_["review"].agent.title.text = "review {{pr}}";
  for (std::size_t length = 240; length < 270; ++length) {
    Submission asked = submission({std::string(length, 'x') + "äöü"});
    asked.key.clear();
    const auto made = ask(std::move(asked));
    ASSERT_TRUE(made);
    const std::string title = get(fleet_.find(made->id))->input.title;
    EXPECT_LE(title.size(), domain::kTitleBytesMax);
    EXPECT_GE(title.size() + 6, std::min(domain::kTitleBytesMax, length + 13));
    EXPECT_FALSE(agent::utf8_error(title)) << title;
  }
}

}  // namespace
}  // namespace stint::fleet
