// Search and filters: one meaning in all stores.
#include "store/conformance.hpp"
#include "store/search_text.hpp"

#include <algorithm>

namespace stint::store {

std::vector<std::string> StoreTest::listed(const Filter& filter) {
  std::vector<std::string> found;
  for (const store::Run& run : get(store().list(filter))) found.push_back(run.id);
  EXPECT_EQ(matched(filter), found) << "match() and list() differ";
  return found;
}

std::vector<std::string> StoreTest::matched(Filter filter) {
  std::vector<std::string> found;
  while (true) {
    const Matches page = get(store().match(filter));
    for (const auto& match : page.runs) found.push_back(match.id);
    if (!page.next) return found;
    EXPECT_TRUE(filter.before.value == 0 || *page.next < filter.before) << "no progress";
    filter.before = *page.next;
  }
}

std::vector<std::string> StoreTest::searched(std::string_view text) {
  Filter filter;
  filter.search = fold_search(text);
  return listed(filter);
}

std::string StoreTest::titled(std::string_view json_title) {
  return submit("a", [&](NewRun& run) { run.input = R"({"title":")" + std::string(json_title) + "\"}"; });
}

namespace {

using namespace std::chrono_literals;
using domain::Hold;
using domain::RunState;
using domain::Settle;
using Ids = std::vector<std::string>;

TEST_P(StoreTest, a_search_finds_id_prefix_agent_title_arguments_prompt_and_error) {
  define("a");
  define("Reviewer");
  const NodeNumber node = enrol();
  const std::string one = submit("Reviewer", [](NewRun& run) {
    run.id = "abcdefghijkl";
    run.input = R"({"title":"Fix the bug","args":{"branch":"main-7"},"prompt":"Look at FOO"})";
  });
  const std::string two = submit("a", [](NewRun& run) { run.input = R"({"title":"other"})"; });
  const Claim claim = claim_one(node, "a");
  Settlement end;
  end.attempt = claim.attempt_key();
  end.settle = Settle::failed;
  end.error = "Exit status 3: No Space";
  get(store().settle(node, {end}));
  for (const char* const text : {"abcd", "reviewer", "FIX THE", "main-7", "look at foo", "viewer"}) {
    EXPECT_EQ(searched(text), Ids{one}) << text;
  }
  EXPECT_EQ(searched("no space"), Ids{two});
  EXPECT_EQ(searched("bcdefg"), Ids{}) << "an id matches only from its beginning";
  EXPECT_EQ(searched("branch"), Ids{}) << "names of arguments are not searched";
  EXPECT_EQ(searched("title"), Ids{}) << "nor is the form of the input";
  EXPECT_EQ(searched("bug\nmain"), Ids{}) << "a match does not cross from the title into an argument";
}

TEST_P(StoreTest, a_search_takes_every_character_as_itself) {
  define("a");
  const std::string percent = titled("100% done"), under = titled("a_b"), plain = titled("axb 100 done");
  const std::string slash = titled(R"(c:\\dir)"), quote = titled(R"(say \"hi\" it's)"), star = titled("*.[ch] (x|y)");
  EXPECT_EQ(searched("100%"), Ids{percent});
  EXPECT_EQ(searched("%"), Ids{percent});
  EXPECT_EQ(searched("a_b"), Ids{under});
  EXPECT_EQ(searched("_"), Ids{under});
  EXPECT_EQ(searched("\\"), Ids{slash});
  EXPECT_EQ(searched("c:\\d"), Ids{slash});
  EXPECT_EQ(searched("\"hi\""), Ids{quote});
  EXPECT_EQ(searched("it's"), Ids{quote});
  EXPECT_EQ(searched("'; DROP TABLE run; --"), Ids{});
  EXPECT_EQ(searched("*.[ch] (x|y)"), Ids{star});
  EXPECT_EQ(searched(".*"), Ids{});
  EXPECT_EQ(searched("$1"), Ids{});
  EXPECT_EQ(searched("{}"), Ids{});
  EXPECT_EQ(searched("axb"), Ids{plain});
}

TEST_P(StoreTest, a_search_folds_case_of_ascii_only_and_compares_other_letters_exactly) {
  define("a");
  const std::string umlaut = titled("ÄRGER in Köln"), sharp = titled("STRASSE"), emoji = titled("launch 🚀 now");
  const std::string turkish = titled("İstanbul ILIK"), combined = titled("Cafe\xCC\x81");
  EXPECT_EQ(searched("Ärger"), Ids{umlaut});
  EXPECT_EQ(searched("ärger"), Ids{}) << "only letters of ASCII have no case";
  EXPECT_EQ(searched("rger IN kÖln"), Ids{});
  EXPECT_EQ(searched("rger IN köln"), Ids{umlaut});
  EXPECT_EQ(searched("straße"), Ids{});
  EXPECT_EQ(searched("strasse"), Ids{sharp});
  EXPECT_EQ(searched("🚀"), Ids{emoji});
  EXPECT_EQ(searched("ilik"), Ids{turkish});
  EXPECT_EQ(searched("ISTANBUL"), Ids{});
  EXPECT_EQ(searched("Café"), Ids{}) << "é as one character is not e with an accent";
  EXPECT_EQ(searched("cafe\xCC\x81"), Ids{combined});
}

TEST_P(StoreTest, a_search_combines_with_every_other_filter) {
  define("a");
  define("b");
  Ids ids;
  for (int i = 0; i < 4; ++i) {
    ids.push_back(submit(i % 2 == 0 ? "a" : "b", [&](NewRun& run) {
      run.input = R"({"title":"needle )" + std::to_string(i) + "\"}";
      if (i == 3) run.delay = 1h;
      if (i == 0) run.session = "s";
    }));
    world().advance(10s);
  }
  submit("a", [](NewRun& run) { run.input = R"({"title":"hay"})"; });
  const Claim parent = claim_one(enrol(), "b");
  const std::string child = submit("a", [&](NewRun& run) {
    run.parent = parent.id;
    run.input = R"({"title":"needle c"})";
  });
  Filter filter;
  filter.search = "needle";
  EXPECT_EQ(listed(filter), (Ids{child, ids[3], ids[2], ids[1], ids[0]}));
  filter.most = 2;
  EXPECT_EQ(get(store().list(filter)).size(), 2U);
  EXPECT_EQ(matched(filter).size(), 5U) << "pages of two";
  filter.most = 100;
  filter.agent = "b";
  EXPECT_EQ(listed(filter), (Ids{ids[3], ids[1]}));
  filter.also_agents = {"a"};
  EXPECT_EQ(listed(filter).size(), 5U);
  filter.also_agents = {"unknown"};
  EXPECT_EQ(listed(filter), (Ids{ids[3], ids[1]}));
  filter.states = {RunState::queued};
  EXPECT_EQ(listed(filter), Ids{ids[3]});
  filter = {};
  filter.search = "needle";
  filter.holds = {Hold::delay};
  EXPECT_EQ(listed(filter), Ids{ids[3]});
  filter.holds = {Hold::none};
  EXPECT_EQ(listed(filter), (Ids{child, ids[2], ids[1], ids[0]}));
  filter.holds = {};
  filter.session = "s";
  EXPECT_EQ(listed(filter), Ids{ids[0]});
  filter.session = "";
  filter.parent = parent.id;
  EXPECT_EQ(listed(filter), Ids{child});
}

TEST_P(StoreTest, a_list_is_limited_to_moments_of_creation) {
  define("a");
  Ids ids;
  std::vector<WallTime> times;
  for (int i = 0; i < 3; ++i) {
    ids.push_back(submit("a"));
    times.push_back(look(ids.back()).created_at);
    world().advance(10s);
  }
  Filter filter;
  filter.since = times[1];
  EXPECT_EQ(listed(filter), (Ids{ids[2], ids[1]})) << "a moment includes itself";
  filter.until = times[2];
  EXPECT_EQ(listed(filter), Ids{ids[1]}) << "the end excludes itself";
  world().jump(24h);
  filter.since = look(ids[1]).created_at;
  filter.until = look(ids[2]).created_at;
  EXPECT_EQ(listed(filter), Ids{ids[1]});
}

TEST_P(StoreTest, a_list_has_exactly_the_runs_that_are_named) {
  define("a");
  Ids ids;
  std::vector<RunNumber> numbers;
  for (int i = 0; i < 4; ++i) {
    ids.push_back(submit("a"));
    numbers.push_back(look(ids.back()).number);
  }
  Filter filter;
  filter.only = {numbers[0], numbers[3], RunNumber{1 << 30}};
  filter.search = "anything";
  Ids found;
  for (const store::Run& run : get(store().list(filter))) found.push_back(run.id);
  EXPECT_EQ(found, (Ids{ids[3], ids[0]}));
}

}  // namespace
}  // namespace stint::store
