// SPDX-License-Identifier: Apache-2.0

// Tests to which phases the timings of a reply attribute time.
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "kernels/util/stopwatch.h"
#include "tests/server/rpc/fixture.h"

namespace crout::testing::timings_test {
namespace {

constexpr int64_t kN = 5;

class RpcTimingsTest : public RpcTest {
 protected:
  // Runs `call` and holds the copy of its first payload for some time after the job begins to wait
  // for it. Expects that this time is attributed to the copy and to no other phase.
  void ExpectCopyIsMeasured(const std::function<v1::Timings()>& call) {
    constexpr auto kHeld = std::chrono::milliseconds(20);
    device().copy_gate().Close();
    v1::Timings timings;
    std::thread client([&] { timings = call(); });
    device().copy_gate().WaitUntilHeld();
    Stopwatch watch;
    std::this_thread::sleep_for(kHeld);
    const double held = watch.Lap();
    device().copy_gate().Open();
    client.join();
    EXPECT_GE(timings.host_to_device_seconds(), held);
    EXPECT_LE(timings.host_to_device_seconds() + timings.factor_seconds() +
                  timings.solve_seconds() + timings.refine_seconds() +
                  timings.device_to_host_seconds(),
              timings.total_seconds());
  }
};

TEST_F(RpcTimingsTest, ACopyAfterTheReceiveIsASeparatePhase) {
  StartServer();
  std::string handle;
  {
    SCOPED_TRACE("Factorize");
    ExpectCopyIsMeasured([&] {
      v1::Factor factor;
      EXPECT_TRUE(Factorize(kN, &factor).ok());
      handle = factor.handle();
      return factor.timings();
    });
  }
  {
    SCOPED_TRACE("Solve");
    ExpectCopyIsMeasured([&] {
      Solved solved;
      EXPECT_TRUE(Solve(handle, std::vector<double>(kN, 1.0), &solved).ok());
      return solved.result.timings();
    });
  }
}

TEST_F(RpcTimingsTest, AreReportedForAMethodWithoutFactors) {
  StartServer();
  ExpectCopyIsMeasured([&] {
    v1::FactorizeAndSolveHeader header;
    *header.mutable_matrix() = Dense(2, 2);
    *header.mutable_rhs() = Dense(2, 1);
    header.mutable_options()->set_algorithm(v1::ALGORITHM_GAUSS_JORDAN);
    const SolvedAtOnce answer = FactorizeAndSolve(header, Bytes({0, 2, 4, 1}), Bytes({8, 4}));
    EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
    return answer.result.timings();
  });
}

}  // namespace
}  // namespace crout::testing::timings_test
