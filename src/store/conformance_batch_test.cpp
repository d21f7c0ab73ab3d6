// Batches: one living node carries each, and every run of the set is counted once.
#include "store/conformance.hpp"

#include <algorithm>
#include <map>

namespace stint::store {
namespace {

using namespace std::chrono_literals;
using Ids = std::vector<std::string>;

constexpr std::string_view kBatch = "batchbatchba";

NewBatch batch_of(const Ids& runs, std::string key = {}) {
  NewBatch batch;
  batch.id = kBatch;
  batch.key = std::move(key);
  batch.action = BatchAction::retry;
  batch.filter = R"({"agent":"ä"})";
  batch.runs = runs;
  return batch;
}

Ids some_ids(std::size_t count) {
  Ids ids;
  for (std::size_t i = 0; i < count; ++i) {
    std::string id(domain::kRunIdLength, 'a');
    for (std::size_t rest = i, at = 0; rest > 0; rest /= 26, ++at) id[at] = static_cast<char>('a' + rest % 26);
    ids.push_back(std::move(id));
  }
  return ids;
}

BatchStep all_done(const BatchClaim& claim) {
  BatchStep step;
  step.done = claim.runs.size();
  return step;
}

TEST_P(StoreTest, a_batch_is_carried_in_steps_over_its_whole_set) {
  const NodeNumber node = enrol();
  const Ids ids = some_ids(2 * kBatchStepMax + 7);
  EXPECT_TRUE(get(store().begin_batch(batch_of(ids))).created);
  Batch batch = *get(store().batch(std::string(kBatch)));
  EXPECT_EQ(batch.matched, ids.size());
  EXPECT_EQ(batch.filter, R"({"agent":"ä"})");
  EXPECT_EQ(batch.action, BatchAction::retry);
  EXPECT_EQ(batch.state, BatchState::running);
  EXPECT_FALSE(batch.ended_at);
  Ids seen;
  auto claim = get(store().claim_batch(node));
  ASSERT_TRUE(claim);
  while (claim) {
    EXPECT_EQ(claim->at, seen.size());
    EXPECT_LE(claim->runs.size(), kBatchStepMax);
    ASSERT_FALSE(claim->runs.empty());
    // A part of the claim: the next one goes on after it.
    BatchClaim part = *claim;
    if (seen.empty()) part.runs.resize(3);
    seen.insert(seen.end(), part.runs.begin(), part.runs.end());
    claim = get(store().advance_batch(part, all_done(part)));
  }
  EXPECT_EQ(seen, ids);
  batch = *get(store().batch(std::string(kBatch)));
  EXPECT_EQ(batch.state, BatchState::done);
  EXPECT_EQ(batch.done, ids.size());
  EXPECT_TRUE(batch.ended_at);
  EXPECT_FALSE(batch.node);
  EXPECT_FALSE(get(store().claim_batch(node)));
}

TEST_P(StoreTest, a_batch_counts_what_was_skipped_and_lists_the_first_failures) {
  const NodeNumber node = enrol();
  const Ids ids = some_ids(kBatchFailuresMax + 30);
  get(store().begin_batch(batch_of(ids)));
  auto claim = get(store().claim_batch(node));
  std::vector<BatchFailure> failures;
  while (claim) {
    BatchStep step;
    step.skipped = 1;
    for (std::size_t i = 1; i < claim->runs.size(); ++i)
      step.failed.push_back({claim->runs[i], "no 'quote\" " + claim->runs[i]});
    failures.insert(failures.end(), step.failed.begin(), step.failed.end());
    claim = get(store().advance_batch(*claim, step));
  }
  const Batch batch = *get(store().batch(std::string(kBatch)));
  EXPECT_EQ(batch.done, 0U);
  EXPECT_EQ(batch.failed, failures.size());
  EXPECT_EQ(batch.acted(), ids.size());
  failures.resize(kBatchFailuresMax);
  EXPECT_EQ(batch.failures, failures);
  EXPECT_TRUE(get(store().batches(BatchNumber(), 10)).front().failures.empty());
}

TEST_P(StoreTest, a_batch_begins_once_per_id_and_key) {
  EXPECT_TRUE(get(store().begin_batch(batch_of(some_ids(2), "k"))).created);
  EXPECT_FALSE(get(store().begin_batch(batch_of(some_ids(2), "k"))).created) << "a repeated call";
  NewBatch other = batch_of(some_ids(3), "k");
  other.id = "otherotherot";
  const Accepted known = get(store().begin_batch(other));
  EXPECT_FALSE(known.created);
  EXPECT_EQ(known.id, kBatch);
  other.key = "";
  EXPECT_TRUE(get(store().begin_batch(other)).created);
  other.id = "thirdthirdth";
  EXPECT_TRUE(get(store().begin_batch(other)).created) << "no key is not a key";
  const auto all = get(store().batches(BatchNumber(), 10));
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].id, "thirdthirdth");
  EXPECT_EQ(get(store().batches(all[0].number, 1)).at(0).id, "otherotherot");
  other.id = "no";
  EXPECT_EQ(error_of(store().begin_batch(other)), Errc::invalid);
  other.id = "fourthfourth";
  other.runs = {"x"};
  EXPECT_EQ(error_of(store().begin_batch(other)), Errc::invalid);
  EXPECT_FALSE(get(store().batch("nosuchbatchx")));
}

TEST_P(StoreTest, a_batch_without_a_run_has_ended) {
  get(store().begin_batch(batch_of({})));
  const Batch batch = *get(store().batch(std::string(kBatch)));
  EXPECT_EQ(batch.state, BatchState::done);
  EXPECT_TRUE(batch.ended_at);
  EXPECT_FALSE(get(store().claim_batch(enrol())));
}

TEST_P(StoreTest, one_node_carries_a_batch_until_it_dies) {
  const NodeNumber one = enrol(), two = enrol();
  get(store().begin_batch(batch_of(some_ids(60))));
  const auto first = get(store().claim_batch(one));
  ASSERT_TRUE(first);
  EXPECT_FALSE(get(store().claim_batch(two))) << "a living node carries it";
  const auto again = get(store().claim_batch(one));
  ASSERT_TRUE(again) << "after a lost answer it claims again";
  EXPECT_GT(again->fence, first->fence);
  EXPECT_FALSE(get(store().advance_batch(*first, all_done(*first)))) << "the earlier claim is stale";
  EXPECT_EQ(get(store().batch(std::string(kBatch)))->done, 0U);
  BatchClaim part = *again;
  part.runs.resize(10);
  ASSERT_TRUE(get(store().advance_batch(part, all_done(part))));
  world().kill(one);
  const NodeNumber three = enrol();
  tick();
  const auto taken = get(store().claim_batch(three));
  ASSERT_TRUE(taken) << "its node is dead";
  EXPECT_EQ(taken->at, 10U) << "it goes on at the last recorded step";
  EXPECT_FALSE(get(store().advance_batch(*again, all_done(*again)))) << "the dead node comes back too late";
  EXPECT_EQ(get(store().batch(std::string(kBatch)))->done, 10U);
}

TEST_P(StoreTest, a_repeated_advance_of_a_batch_counts_once) {
  const NodeNumber node = enrol();
  get(store().begin_batch(batch_of(some_ids(60))));
  const auto claim = get(store().claim_batch(node));
  BatchStep step = all_done(*claim);
  step.failed.push_back({claim->runs.back(), "e"});
  --step.done;
  const auto next = get(store().advance_batch(*claim, step));
  const auto repeated = get(store().advance_batch(*claim, step));
  ASSERT_TRUE(next && repeated);
  EXPECT_EQ(repeated->at, next->at);
  EXPECT_EQ(repeated->runs, next->runs);
  const Batch batch = *get(store().batch(std::string(kBatch)));
  EXPECT_EQ(batch.done, kBatchStepMax - 1);
  EXPECT_EQ(batch.failed, 1U);
  BatchStep too_many;
  too_many.done = 1000;
  EXPECT_EQ(error_of(store().advance_batch(*next, too_many)), Errc::invalid);
}

TEST_P(StoreTest, a_released_batch_is_carried_by_another_node) {
  const NodeNumber one = enrol(), two = enrol();
  get(store().begin_batch(batch_of(some_ids(5))));
  const auto claim = get(store().claim_batch(one));
  get(store().release_batch(*claim));
  EXPECT_FALSE(get(store().advance_batch(*claim, all_done(*claim)))) << "it was given up";
  EXPECT_TRUE(get(store().claim_batch(two)));
  get(store().release_batch(*claim));
  EXPECT_FALSE(get(store().claim_batch(one))) << "a stale release changes nothing";
  get(store().drain(one));
  world().kill(two);
  tick();
  EXPECT_FALSE(get(store().claim_batch(one))) << "a draining node takes none";
}

TEST_P(StoreTest, a_batch_stops_between_two_steps) {
  const NodeNumber node = enrol();
  get(store().begin_batch(batch_of(some_ids(70))));
  const auto claim = get(store().claim_batch(node));
  EXPECT_EQ(get(store().stop_batch(std::string(kBatch)))->state, BatchState::stopping) << "a step is under way";
  EXPECT_FALSE(get(store().advance_batch(*claim, all_done(*claim))));
  Batch batch = *get(store().batch(std::string(kBatch)));
  EXPECT_EQ(batch.state, BatchState::stopped);
  EXPECT_EQ(batch.done, kBatchStepMax) << "what was done is counted";
  EXPECT_TRUE(batch.ended_at);
  EXPECT_EQ(get(store().stop_batch(std::string(kBatch)))->state, BatchState::stopped);
  EXPECT_FALSE(get(store().stop_batch("nosuchbatchx")));

  NewBatch idle = batch_of(some_ids(3));
  idle.id = "otherotherot";
  get(store().begin_batch(idle));
  EXPECT_EQ(get(store().stop_batch(idle.id))->state, BatchState::stopped) << "no node carries it";
}

TEST_P(StoreTest, a_stopping_batch_of_a_dead_node_ends_without_another_run) {
  const NodeNumber one = enrol();
  get(store().begin_batch(batch_of(some_ids(70))));
  get(store().claim_batch(one));
  get(store().stop_batch(std::string(kBatch)));
  world().kill(one);
  const NodeNumber two = enrol();
  tick();
  const auto claim = get(store().claim_batch(two));
  ASSERT_TRUE(claim);
  EXPECT_TRUE(claim->runs.empty());
  EXPECT_FALSE(get(store().advance_batch(*claim, {})));
  EXPECT_EQ(get(store().batch(std::string(kBatch)))->state, BatchState::stopped);
}

TEST_P(StoreTest, an_ended_batch_is_pruned_like_a_run) {
  get(store().begin_batch(batch_of(some_ids(2))));
  world().advance(48h);
  get(store().prune(24h, 100));
  EXPECT_TRUE(get(store().batch(std::string(kBatch)))) << "it has not ended";
  const auto claim = get(store().claim_batch(enrol()));
  ASSERT_TRUE(claim);
  BatchStep step;
  step.failed = {{claim->runs[0], "e"}, {claim->runs[1], "e"}};
  get(store().advance_batch(*claim, step));
  world().advance(12h);
  get(store().prune(24h, 100));
  EXPECT_TRUE(get(store().batch(std::string(kBatch))));
  world().advance(13h);
  get(store().prune(24h, 100));
  EXPECT_FALSE(get(store().batch(std::string(kBatch))));
}

TEST_P(StoreTest, the_feed_tells_of_a_batch) {
  const NodeNumber node = enrol();
  get(store().begin_batch(batch_of(some_ids(2))));
  const auto claim = get(store().claim_batch(node));
  get(store().advance_batch(*claim, all_done(*claim)));
  std::map<std::string, std::string> data;
  for (const Event& event : get(store().feed("", 100)).events) {
    if (event.run.empty()) data[event.cause] = event.data;
  }
  EXPECT_EQ(
      data["batch_began"],
      R"({"batch":"batchbatchba","action":"retry","state":"running","matched":2,"done":0,"skipped":0,"failed":0})");
  EXPECT_EQ(data["batch_ended"],
            R"({"batch":"batchbatchba","action":"retry","state":"done","matched":2,"done":2,"skipped":0,"failed":0})");
}

TEST_P(StoreTest, batches_that_have_not_ended_are_bounded) {
  for (std::size_t i = 0; i < kBatchesOpenMax; ++i) {
    NewBatch batch = batch_of(some_ids(1));
    batch.id = some_ids(kBatchesOpenMax)[i];
    ASSERT_TRUE(get(store().begin_batch(batch)).created);
  }
  EXPECT_EQ(error_of(store().begin_batch(batch_of(some_ids(1)))), Errc::full);
}

}  // namespace
}  // namespace stint::store
