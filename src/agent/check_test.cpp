#include "agent/check.hpp"

#include <gtest/gtest.h>

namespace stint::agent {
namespace {

domain::Agent agent(std::string name) {
  domain::Agent out;
  out.file = name + ".md";
  out.name = std::move(name);
  return out;
}

std::string said(const Catalogue& catalogue, std::string_view toml) {
  const LoadedSettings loaded = read_settings({{{OriginKind::project, "stint.toml", std::string(toml)}}, {}, {}});
  EXPECT_TRUE(loaded.problems.empty());
  std::string out;
  for (const Problem& problem : check_whole(catalogue, loaded.settings)) out += describe(problem) + "\n";
  return out;
}

TEST(CheckWhole, a_limit_that_is_defined_nowhere_is_an_error) {
  Catalogue catalogue;
  catalogue.agents = {agent("review")};
  catalogue.agents[0].limits = {{"gpu", 1, 4}};
  EXPECT_EQ(
      said(catalogue, ""),
      "review.md:4: error: limits: the limit 'gpu' is defined nowhere; add \"gpu\" = 1 to [limits] of stint.toml\n");
  EXPECT_EQ(said(catalogue, "[limits]\ngpus = 1\n"),
            "review.md:4: error: limits: the limit 'gpu' is defined nowhere; did you mean 'gpus'?\n");
  EXPECT_EQ(said(catalogue, "[limits]\ngpu = 1\n"), "");
}

TEST(CheckWhole, a_weight_that_can_never_be_granted_is_an_error) {
  Catalogue catalogue;
  catalogue.agents = {agent("review")};
  catalogue.agents[0].limits = {{"gpu", 3, 4}};
  EXPECT_EQ(said(catalogue, "[limits]\ngpu = 2\n"),
            "review.md:4: error: limits: requests 3 units of 'gpu', whose capacity is 2: it can never be granted\n");
  EXPECT_EQ(said(catalogue, "[limits]\ngpu = 3\n"), "");
  EXPECT_EQ(said(catalogue, "[limits]\ngpu = \"auto\"\n"), "");
}

TEST(CheckWhole, another_agents_limit_exists_if_that_agent_has_one) {
  Catalogue catalogue;
  catalogue.agents = {agent("a"), agent("b")};
  catalogue.agents[0].limits = {{"agent:b", 1, 2}};
  EXPECT_NE(said(catalogue, "").find("'agent:b' is defined nowhere"), std::string::npos);
  catalogue.agents[1].max_concurrency = 1;
  EXPECT_EQ(said(catalogue, ""), "");
}

TEST(CheckWhole, one_limit_is_set_in_one_place) {
  Catalogue catalogue;
  catalogue.agents = {agent("review")};
  EXPECT_EQ(said(catalogue, "[limits]\n\"agent:review\" = 2\n"), "");
  catalogue.agents[0].max_concurrency = 3;
  EXPECT_EQ(
      said(catalogue, "[limits]\n\"agent:review\" = 2\n"),
      "review.md: error: max_concurrency: is 3, but stint.toml:2 sets agent:review as well; remove one of the two\n");
}

TEST(CheckWhole, agents_that_do_not_exist_warn) {
  Catalogue catalogue;
  catalogue.agents = {agent("review")};
  catalogue.broken = {"dispatch"};
  catalogue.agents[0].next = {"dispatch", "land", "reveiw"};
  EXPECT_EQ(said(catalogue, "default_agent = \"revie\"\n[limits]\n\"agent:x\" = 1\n"),
            "review.md: warning: next: there is no agent 'reveiw'; did you mean 'review'?\n"
            "stint.toml:1: warning: default_agent: there is no agent 'revie' here; did you mean 'review'?\n"
            "stint.toml:3: warning: limits: 'agent:x' limits an agent that does not exist\n");
}

TEST(CheckWhole, a_model_must_name_an_existing_account) {
  EXPECT_NE(said({}, "[models.\"a/b\"]\naccount = \"x\"\n")
                .find("stint.toml:2: error: models.\"a/b\".account: there is no account 'x'"),
            std::string::npos);
}

}  // namespace
}  // namespace stint::agent
