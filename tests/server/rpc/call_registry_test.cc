// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/call_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace crout::call_registry_test {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class NumberedCall : public LiveCall {
 public:
  explicit NumberedCall(uint64_t number) : number_(number) {}
  void Abort(absl::Status) override {}
  void EnforceLimits(Clock::time_point) override {}
  OpenCall Describe() override {
    OpenCall call;
    call.id = number_;
    return call;
  }

 private:
  const uint64_t number_;
};

TEST(CallRegistryTest, ListsTheOldestCallsInOrder) {
  CallRegistry registry;
  std::vector<std::shared_ptr<LiveCall>> calls;
  std::vector<CallRegistry::Ticket> tickets;
  for (uint64_t i = 0; i < 100; ++i) {
    calls.push_back(std::make_shared<NumberedCall>(i));
    tickets.push_back(*registry.Enter(calls.back()));
  }
  calls[1].reset();                     // the call is destroyed, but its ticket is open
  tickets[2] = CallRegistry::Ticket();  // the ticket is closed
  std::vector<uint64_t> numbers;
  for (const OpenCall& call : registry.Oldest(4)) numbers.push_back(call.id);
  EXPECT_THAT(numbers, ElementsAre(0, 3, 4, 5));
  EXPECT_THAT(registry.Oldest(1000), SizeIs(98));
  EXPECT_EQ(registry.in_flight(), 99u);
  EXPECT_EQ(registry.entered(), 100u);
}

}  // namespace
}  // namespace crout::call_registry_test
