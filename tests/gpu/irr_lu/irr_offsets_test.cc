// SPDX-License-Identifier: Apache-2.0

// Tests irr_getf2 and irr_trsm on the GPU without the rest of irr_lu: with offsets, and with
// members that are not finite.
#include "tests/gpu/irr_lu/irr_block_cases.h"
#include "tests/gpu/irr_lu/irr_lu_testing.h"

namespace crout::cuda::irr_offsets_test {
namespace {

class IrrOffsetsTest : public IrrLuTest {
 protected:
  struct OnGpu {
    static constexpr bool kThreadsOfHost = false;
    template <class T>
    using Batch = GpuBatch<T>;
    template <class V>
    static auto Send(const std::vector<V>& values) {
      return KernelTest::Send(values);
    }
    template <class V>
    static std::vector<V> Receive(const OnDevice<V>& array, size_t count) {
      return KernelTest::Receive(array, count);
    }
  };

  // Returns the first columns of the first, second and fourth block.
  template <class T>
  static std::vector<int> Begins() {
    constexpr int kBlock = MemberBlocking<DeviceType<T>>::kBlock;
    return {0, kBlock, 3 * kBlock};
  }
};

TEST_F(IrrOffsetsTest, Getf2) {
  ForTypes([](auto x) {
    for (const int begin : Begins<decltype(x)>()) ExpectGetf2From<OnGpu, decltype(x)>(begin);
  });
}

TEST_F(IrrOffsetsTest, Getf2OfBadMembers) {
  ForTypes([](auto x) {
    for (const int begin : Begins<decltype(x)>()) {
      ExpectGetf2OfBadMembersFrom<OnGpu, decltype(x)>(begin);
    }
  });
}

TEST_F(IrrOffsetsTest, Trsm) {
  ForTypes([](auto x) {
    for (const Op op : {Op::kNone, Op::kTranspose, Op::kConjugateTranspose}) {
      for (const bool lower : {false, true}) {
        for (const bool unit : {false, true}) {
          for (const int m : {7, 33, 100}) {
            ExpectTrsmAtOffsets<OnGpu, decltype(x)>(op, lower, unit, m);
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace crout::cuda::irr_offsets_test
