// SPDX-License-Identifier: Apache-2.0

// A fixture for regions of shared memory, and for payloads in them.
#ifndef CROUT_TESTS_SERVER_RPC_SHARED_MEMORY_SHARED_MEMORY_FIXTURE_H_
#define CROUT_TESTS_SERVER_RPC_SHARED_MEMORY_SHARED_MEMORY_FIXTURE_H_

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/rpc/fixture.h"
#include "tests/server/scrape.h"
#include "tests/support/peers/memory_peer.h"

namespace crout::shared_memory_test {

inline constexpr int64_t kN = 48;
inline constexpr size_t kMatrixBytes = kN * kN * sizeof(double);
inline constexpr size_t kRegionBytes = size_t{1} << 20;
inline constexpr uid_t kUser = 1234;

class SharedMemoryTest : public testing::RpcTest {
 protected:
  using Region = SharedRegions::Region;

  void Start(const testing::FakeDeviceOptions& device = {}) {
    Config config = SmallConfig();
    config.max_shared_memory_bytes = 16 * kRegionBytes;
    StartServer(device, config);
  }
  absl::StatusOr<Region> Add(OwnedFile file, uint64_t size, uid_t user = kUser) {
    std::promise<absl::StatusOr<Region>> done;
    core().shared_regions.Add(std::move(file), size, user, [&done](absl::StatusOr<Region> region) {
      done.set_value(std::move(region));
    });
    return done.get_future().get();
  }
  absl::StatusOr<Region> Add(const testing::MemoryFile& file, uid_t user = kUser) {
    return Add(file.Duplicate(), file.bytes().size(), user);
  }
  static v1::SharedRange Range(const Region& region, uint64_t offset, uint64_t size) {
    v1::SharedRange range;
    range.set_region(region->id());
    range.set_offset(offset);
    range.set_size(size);
    return range;
  }
  double Sample(const std::string& name) {
    return SampleOf(core().metrics.Scrape(), name).value_or(-1);
  }

  // Runs Factorize with messages that `fill` completes, one after the other while it returns true.
  template <class Fill>
  grpc::Status FactorizeWith(const v1::MatrixSpec& matrix, Fill fill, v1::Factor* factor) {
    grpc::ClientContext context;
    auto stream = stub().Factorize(&context);
    for (int i = 0;; ++i) {
      v1::FactorizeRequest request;
      if (i == 0) *request.mutable_header()->mutable_matrix() = matrix;
      if (!fill(i, request) || !stream->Write(request)) break;
    }
    stream->WritesDone();
    v1::FactorizeResponse response;
    while (stream->Read(&response)) {
      if (response.has_factor()) *factor = response.factor();
    }
    return stream->Finish();
  }
  grpc::Status FactorizeRange(const v1::MatrixSpec& matrix, const v1::SharedRange& range,
                              v1::Factor* factor) {
    return FactorizeWith(
        matrix,
        [&](int i, v1::FactorizeRequest& request) {
          *request.mutable_shared_data() = range;
          return i == 0;
        },
        factor);
  }
  // Expects that the factor solves a system with Matrix(kN).
  void ExpectSolves(const v1::Factor& factor) {
    Solved solved;
    const std::vector<double> b(kN, 1.0);
    ASSERT_TRUE(Solve(factor.handle(), b, &solved).ok());
    EXPECT_LT(solved.result.backward_error(), 1e-14);
  }
};

}  // namespace crout::shared_memory_test

#endif  // CROUT_TESTS_SERVER_RPC_SHARED_MEMORY_SHARED_MEMORY_FIXTURE_H_
