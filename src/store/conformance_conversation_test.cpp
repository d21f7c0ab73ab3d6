// Conversations that drivers keep in every store.
#include "store/conformance.hpp"

namespace stint::store {
namespace {

using namespace std::chrono_literals;
using domain::OnCrash;
using domain::RunState;
using domain::Settle;
using Messages = std::vector<std::string>;

class Conversation {
 public:
  Conversation(World& world, std::string id) : world_(world), id_(std::move(id)) {}

  [[nodiscard]] Result<bool> put(NodeNumber node, const Claim& claim, std::uint32_t at, std::string body) {
    return world_.run(world_.store().put_message(node, claim.attempt_key(), {at, std::move(body)}));
  }
  /// All messages, page by page.
  [[nodiscard]] Messages all(std::size_t page_bytes = kMessagesPageMax) {
    Messages found;
    while (true) {
      const auto page = world_.run(world_.store().messages(id_, static_cast<std::uint32_t>(found.size()), page_bytes));
      if (!page) ADD_FAILURE() << page.error().describe();
      if (!page || page->empty()) return found;
      found.insert(found.end(), page->begin(), page->end());
    }
  }

 private:
  World& world_;
  std::string id_;
};

TEST_P(StoreTest, a_long_conversation_survives_the_death_of_its_owner) {
  define("a");
  const std::string id = submit("a", [](NewRun& run) { run.on_crash = OnCrash::resume; });
  Conversation conversation(world(), id);
  EXPECT_EQ(conversation.all(), Messages());
  const NodeNumber first = enrol();
  const Claim lost = claim_one(first, "a");
  Messages sent;
  for (std::uint32_t at = 0; at < 160; ++at) {  // 10 MiB
    sent.push_back(std::to_string(at) + std::string("\0\xFF\n", 3) + std::string(64 << 10, static_cast<char>(at)));
    EXPECT_TRUE(conversation.put(first, lost, at, sent.back()).value_or(false));
  }
  world().kill(first);
  const NodeNumber second = enrol();
  tick();
  const Claim next = claim_one(second, "a");
  EXPECT_EQ(next.id, id);
  EXPECT_TRUE(conversation.all() == sent);
  EXPECT_FALSE(conversation.put(first, lost, 160, "stale").value_or(true));
  EXPECT_FALSE(conversation.put(second, lost, 160, "stale").value_or(true)) << "the fence of another claim";
  EXPECT_FALSE(conversation.put(first, next, 160, "stale").value_or(true)) << "the claim of another node";
  sent.emplace_back("continued");
  EXPECT_TRUE(conversation.put(second, next, 160, sent.back()).value_or(false));
  EXPECT_EQ(settle(second, next, Settle::succeeded), RunState::succeeded);
  EXPECT_TRUE(conversation.all() == sent) << "kept as long as the run";
  EXPECT_FALSE(conversation.put(second, next, 161, "after the end").value_or(true));
}

TEST_P(StoreTest, a_message_replaces_all_that_follow) {
  define("a");
  Conversation conversation(world(), submit("a"));
  const NodeNumber node = enrol();
  const Claim claim = claim_one(node, "a");
  for (std::uint32_t at = 0; at < 4; ++at) EXPECT_TRUE(*conversation.put(node, claim, at, std::to_string(at)));
  EXPECT_TRUE(*conversation.put(node, claim, 3, "3")) << "a repeated call";
  EXPECT_EQ(conversation.all(), (Messages{"0", "1", "2", "3"}));
  EXPECT_TRUE(*conversation.put(node, claim, 1, "summary"));
  EXPECT_EQ(conversation.all(), (Messages{"0", "summary"}));
  EXPECT_EQ(conversation.put(node, claim, 3, "gap").error(), Errc::invalid);
  EXPECT_TRUE(*conversation.put(node, claim, 2, ""));
  EXPECT_EQ(conversation.all(), (Messages{"0", "summary", ""}));
  EXPECT_TRUE(*conversation.put(node, claim, 0, "anew"));
  EXPECT_EQ(conversation.all(), Messages{"anew"});
}

TEST_P(StoreTest, messages_are_read_in_pages) {
  define("a");
  const std::string id = submit("a");
  Conversation conversation(world(), id);
  const NodeNumber node = enrol();
  const Claim claim = claim_one(node, "a");
  const Messages sent{"aaaa", "bbbb", "cccccccccc", "", "d"};
  for (std::uint32_t at = 0; at < sent.size(); ++at) EXPECT_TRUE(*conversation.put(node, claim, at, sent[at]));
  EXPECT_EQ(get(store().messages(id, 0, 8)), (Messages{"aaaa", "bbbb"}));
  EXPECT_EQ(get(store().messages(id, 2, 8)), Messages{"cccccccccc"}) << "at least one";
  EXPECT_EQ(get(store().messages(id, 3, 8)), (Messages{"", "d"}));
  EXPECT_EQ(get(store().messages(id, 9, 8)), Messages());
  for (const std::size_t bytes : {1U, 5U, 1000U}) EXPECT_EQ(conversation.all(bytes), sent) << bytes;
  EXPECT_EQ(error_of(store().messages("zzzzzzzzzzzz", 0, 8)), Errc::invalid);
}

TEST_P(StoreTest, a_conversation_has_a_bound) {
  define("a");
  Conversation conversation(world(), submit("a"));
  const NodeNumber node = enrol();
  const Claim claim = claim_one(node, "a");
  constexpr std::uint32_t kMost = 16;
  for (std::uint32_t at = 0; at < kMost; ++at) {
    ASSERT_TRUE(conversation.put(node, claim, at, std::string(kConversationMax / kMost, 'x')).value_or(false));
  }
  const auto refused = conversation.put(node, claim, kMost, "z");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), Errc::exhausted);
  EXPECT_EQ(conversation.all().size(), kMost);
  EXPECT_TRUE(*conversation.put(node, claim, 0, "short again"));
  EXPECT_TRUE(*conversation.put(node, claim, 1, "z"));
}

TEST_P(StoreTest, prune_deletes_the_conversations_of_its_runs) {
  define("a");
  const std::string old = submit("a");
  NodeNumber node = enrol();
  const Claim claim = claim_one(node, "a");
  EXPECT_TRUE(get(store().put_message(node, claim.attempt_key(), {0, std::string(8 << 20, 'x')})));
  settle(node, claim, Settle::succeeded);
  world().advance(1h);
  EXPECT_EQ(get(store().prune(30min, 100)), 1U);
  EXPECT_EQ(error_of(store().messages(old, 0, 8)), Errc::invalid);
  EXPECT_EQ(get(store().check()), std::vector<std::string>());
}

}  // namespace
}  // namespace stint::store
