// SPDX-License-Identifier: Apache-2.0

// Tests the order in which a FairQueue serves tenants, and the priorities of one tenant.
#include "kernels/util/fair_queue.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace crout::fair_queue_test {
namespace {

using ::testing::ElementsAre;

constexpr auto kInteractive = QueuePriority::kInteractive;
constexpr auto kNormal = QueuePriority::kNormal;
constexpr auto kBatch = QueuePriority::kBatch;

std::vector<std::string> TakeAll(FairQueue<std::string>& queue) {
  std::vector<std::string> taken;
  while (const auto first = queue.Find([](const std::string&) { return true; })) {
    taken.push_back(queue.Dequeue(*first));
  }
  return taken;
}

TEST(FairQueueTest, TenantsTakeTurnsAndEachHasItsOrder) {
  FairQueue<std::string> queue;
  for (const char* item : {"a1", "a2", "a3"}) queue.Add("a", item);
  queue.Add("b", "b1");
  queue.Add("c", "c1");
  queue.Add("c", "c2");
  EXPECT_EQ(queue.size(), 6u);
  EXPECT_THAT(TakeAll(queue), ElementsAre("a1", "b1", "c1", "a2", "c2", "a3"));
  EXPECT_TRUE(queue.empty());
}

TEST(FairQueueTest, ATurnIsTakenAlsoByAnItemFurtherBehind) {
  FairQueue<std::string> queue;
  queue.Add("a", "large");
  queue.Add("a", "small1");
  queue.Add("a", "small2");
  queue.Add("b", "small3");
  const auto small = [](const std::string& item) { return item.starts_with("small"); };
  EXPECT_EQ(queue.Dequeue(*queue.Find(small)), "small1");
  EXPECT_EQ(queue.Dequeue(*queue.Find(small)), "small3");
  EXPECT_THAT(TakeAll(queue), ElementsAre("large", "small2"));
}

TEST(FairQueueTest, AnItemThatIsRemovedCostsNoTurn) {
  FairQueue<std::string> queue;
  const auto removed = queue.Add("a", "a1");
  queue.Add("a", "a2");
  queue.Add("b", "b1");
  EXPECT_EQ(queue.Remove(removed), "a1");
  EXPECT_THAT(TakeAll(queue), ElementsAre("a2", "b1"));
}

TEST(FairQueueTest, CountsTheItemsAheadByTurns) {
  FairQueue<std::string> queue;
  queue.Add("a", "a1");
  queue.Add("a", "a2");
  const auto a3 = queue.Add("a", "a3");
  const auto b1 = queue.Add("b", "b1");
  const auto b2 = queue.Add("b", "b2");
  EXPECT_EQ(queue.Ahead(b1), 1u);
  EXPECT_EQ(queue.Ahead(b2), 3u);
  EXPECT_EQ(queue.Ahead(a3), 4u);
}

TEST(FairQueueTest, TenantsGetEqualPartsOfTheCost) {
  FairQueue<std::string> queue;
  for (const char* item : {"a1", "a2", "a3"}) queue.Add("a", item, /*cost=*/3);
  for (const char* item : {"b1", "b2", "b3", "b4", "b5"}) queue.Add("b", item, /*cost=*/1);
  EXPECT_THAT(TakeAll(queue), ElementsAre("a1", "b1", "b2", "b3", "a2", "b4", "b5", "a3"));
}

TEST(FairQueueTest, CountsTheItemsAheadByCosts) {
  FairQueue<std::string> queue;
  queue.Add("a", "a1", /*cost=*/3);
  const auto a2 = queue.Add("a", "a2", /*cost=*/3);
  FairQueue<std::string>::Position last = a2;
  for (const char* item : {"b1", "b2", "b3", "b4"}) last = queue.Add("b", item, /*cost=*/1);
  EXPECT_EQ(queue.Ahead(a2), 4u) << "a1, b1, b2, b3";
  EXPECT_EQ(queue.Ahead(last), 5u);
}

TEST(FairQueueTest, ANewTenantIsNextAndGetsNoCreditForItsAbsence) {
  FairQueue<std::string> queue;
  for (const char* item : {"a1", "a2", "a3", "a4"}) queue.Add("a", item, /*cost=*/10);
  EXPECT_EQ(queue.Dequeue(*queue.Find([](const std::string&) { return true; })), "a1");
  EXPECT_EQ(queue.Dequeue(*queue.Find([](const std::string&) { return true; })), "a2");
  for (const char* item : {"b1", "b2", "b3"}) queue.Add("b", item, /*cost=*/10);
  EXPECT_THAT(TakeAll(queue), ElementsAre("b1", "a3", "b2", "a4", "b3"));
}

// A tenant that always waits for its last item cannot evade the cost of that item.
TEST(FairQueueTest, ATenantWithoutItemsStillOwesTheCostOfItsLast) {
  FairQueue<std::string> queue;
  const auto any = [](const std::string&) { return true; };
  queue.Add("a", "a1", /*cost=*/3);
  for (const char* item : {"b1", "b2", "b3", "b4"}) queue.Add("b", item, /*cost=*/1);
  EXPECT_EQ(queue.Dequeue(*queue.Find(any)), "a1");
  queue.Add("a", "a2", /*cost=*/3);
  EXPECT_THAT(TakeAll(queue), ElementsAre("b1", "b2", "b3", "a2", "b4"));
  queue.Add("b", "b5");
  queue.Add("a", "a3");
  EXPECT_THAT(TakeAll(queue), ElementsAre("b5", "a3")) << "an idle queue forgets the costs";
}

TEST(FairQueueTest, TheMeasuredCostReplacesThePrediction) {
  FairQueue<std::string> queue;
  const auto any = [](const std::string&) { return true; };
  for (const char* item : {"a1", "a2"}) queue.Add("a", item, /*cost=*/1);
  for (const char* item : {"b1", "b2", "b3"}) queue.Add("b", item, /*cost=*/1);
  const auto first = *queue.Find(any);
  EXPECT_EQ(queue.Begin(first), "a1");
  queue.End(first.tenant, kNormal, /*correction=*/1.5);
  EXPECT_THAT(TakeAll(queue), ElementsAre("b1", "b2", "b3", "a2"));

  queue.Add("a", "a3", /*cost=*/9);
  queue.Add("b", "b4", /*cost=*/1);
  const auto second = *queue.Find(any);
  EXPECT_EQ(queue.Begin(second), "a3");
  queue.End(second.tenant, kNormal, /*correction=*/-9);
  queue.Add("a", "a4");
  EXPECT_THAT(TakeAll(queue), ElementsAre("b4", "a4"));
}

TEST(FairQueueTest, ATenantInServiceKeepsItsCosts) {
  FairQueue<std::string> queue;
  const auto any = [](const std::string&) { return true; };
  queue.Add("a", "a1", /*cost=*/1);
  const auto first = *queue.Find(any);
  EXPECT_EQ(queue.Begin(first), "a1");
  EXPECT_TRUE(queue.empty());
  queue.Add("b", "b1", /*cost=*/1);
  queue.Add("b", "b2", /*cost=*/1);
  queue.End(first.tenant, kNormal, /*correction=*/0.5);
  queue.Add("a", "a2");
  EXPECT_THAT(TakeAll(queue), ElementsAre("b1", "b2", "a2"));
}

TEST(FairQueueTest, TheTenantWithTheMostItemsLosesAPlace) {
  FairQueue<std::string> queue;
  for (const char* item : {"a1", "a2", "a3"}) queue.Add("a", item);
  queue.Add("b", "b1");
  EXPECT_FALSE(queue.Displaced("a").has_value());
  ASSERT_TRUE(queue.Displaced("b").has_value());
  EXPECT_EQ(queue.Displaced("b")->entry->item, "a3");
  EXPECT_EQ(queue.Displaced("new")->entry->item, "a3");
  queue.Add("b", "b2");
  EXPECT_FALSE(queue.Displaced("b").has_value()) << "it would have more than the other then";
}

// Adds `count` items of tenant "a" with the name `name`.
void AddMany(FairQueue<std::string>& queue, int count, const std::string& name,
             QueuePriority priority, double cost = 1) {
  for (int i = 0; i < count; ++i) queue.Add("a", name, cost, priority);
}

TEST(FairQueueTest, HigherPrioritiesOfATenantAreServedFirst) {
  FairQueue<std::string> queue;
  for (const char* item : {"b1", "b2"}) queue.Add("a", item, 1, kBatch);
  for (const char* item : {"n1", "n2"}) queue.Add("a", item, 1, kNormal);
  for (const char* item : {"i1", "i2"}) queue.Add("a", item, 1, kInteractive);
  EXPECT_THAT(TakeAll(queue), ElementsAre("i1", "i2", "n1", "n2", "b1", "b2"));
}

TEST(FairQueueTest, PrioritiesDivideThePartOfTheTenant) {
  FairQueue<std::string> queue;
  AddMany(queue, 100, "batch", kBatch);
  AddMany(queue, 100, "normal", kNormal);
  AddMany(queue, 100, "interactive", kInteractive);
  std::vector<std::string> taken = TakeAll(queue);
  ASSERT_EQ(taken.size(), 300u);
  EXPECT_EQ(std::count(taken.begin(), taken.begin() + 20, "batch"), 0);
  taken.resize(5 * 21);
  EXPECT_EQ(std::count(taken.begin(), taken.end(), "interactive"), 5 * 16);
  EXPECT_EQ(std::count(taken.begin(), taken.end(), "normal"), 5 * 4);
  EXPECT_EQ(std::count(taken.begin(), taken.end(), "batch"), 5);
}

TEST(FairQueueTest, APriorityGetsNoCreditForItsAbsence) {
  FairQueue<std::string> queue;
  const auto any = [](const std::string&) { return true; };
  AddMany(queue, 100, "interactive", kInteractive);
  for (int i = 0; i < 50; ++i) queue.Dequeue(*queue.Find(any));
  AddMany(queue, 9, "batch", kBatch);
  const std::vector<std::string> taken = TakeAll(queue);
  EXPECT_EQ(std::count(taken.begin(), taken.begin() + 14, "batch"), 0);
  EXPECT_EQ(std::count(taken.begin(), taken.begin() + 34, "batch"), 2);
}

TEST(FairQueueTest, AnInteractiveItemPassesTheLongItemsOfItsTenant) {
  FairQueue<std::string> queue;
  const auto any = [](const std::string&) { return true; };
  for (const char* item : {"b1", "b2", "b3"}) queue.Add("a", item, /*cost=*/1000, kBatch);
  EXPECT_EQ(queue.Dequeue(*queue.Find(any)), "b1");
  queue.Add("a", "i1", 1, kInteractive);
  queue.Add("a", "n1", 1, kNormal);
  queue.Add("a", "i2", 1, kInteractive);
  EXPECT_THAT(TakeAll(queue), ElementsAre("i1", "i2", "n1", "b2", "b3"));
}

TEST(FairQueueTest, PrioritiesDoNotChangeThePartsOfTenants) {
  FairQueue<std::string> queue;
  for (const char* item : {"a1", "a2", "a3"}) queue.Add("a", item, 1, kInteractive);
  for (const char* item : {"b1", "b2", "b3"}) queue.Add("b", item, 1, kBatch);
  EXPECT_THAT(TakeAll(queue), ElementsAre("a1", "b1", "a2", "b2", "a3", "b3"));
}

TEST(FairQueueTest, CountsTheItemsAheadByPriorities) {
  FairQueue<std::string> queue;
  const auto batch = queue.Add("a", "batch", 1, kBatch);
  const auto normal = queue.Add("a", "normal", 1, kNormal);
  const auto other = queue.Add("b", "other", 1, kBatch);
  const auto interactive = queue.Add("a", "interactive", 1, kInteractive);
  EXPECT_EQ(queue.Ahead(interactive), 0u);
  EXPECT_EQ(queue.Ahead(other), 1u);
  EXPECT_EQ(queue.Ahead(normal), 2u);
  EXPECT_EQ(queue.Ahead(batch), 3u);
  EXPECT_THAT(TakeAll(queue), ElementsAre("interactive", "other", "normal", "batch"));
}

TEST(FairQueueTest, TheMeasuredCostCountsForThePriority) {
  FairQueue<std::string> queue;
  const auto any = [](const std::string&) { return true; };
  for (const char* item : {"i1", "i2", "i3"}) queue.Add("a", item, 1, kInteractive);
  queue.Add("a", "n1", 1, kNormal);
  const auto first = *queue.Find(any);
  EXPECT_EQ(queue.Begin(first), "i1");
  queue.End(first.tenant, kInteractive, /*correction=*/9);
  EXPECT_THAT(TakeAll(queue), ElementsAre("n1", "i2", "i3"));
}

TEST(FairQueueTest, TheLowestPriorityLosesAPlaceFirst) {
  FairQueue<std::string> queue;
  for (const char* item : {"b1", "b2"}) queue.Add("a", item, 1, kBatch);
  queue.Add("a", "i1", 1, kInteractive);
  ASSERT_TRUE(queue.Displaced("new").has_value());
  EXPECT_EQ(queue.Remove(*queue.Displaced("new")), "b2");
  EXPECT_EQ(queue.Queued("a"), 2u);
  EXPECT_EQ(queue.Remove(*queue.Displaced("new")), "b1");
  EXPECT_THAT(TakeAll(queue), ElementsAre("i1"));
}

}  // namespace
}  // namespace crout::fair_queue_test
