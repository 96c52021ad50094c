// SPDX-License-Identifier: Apache-2.0

// Tests the device code of irr_getf2 and irr_trsm on host threads: with offsets, and with members
// that are not finite. tests/gpu/irr_lu/irr_offsets_test.cc runs the same cases on a GPU.
#include <complex>
#include <memory>
#include <numeric>
#include <vector>

#include "kernels/cuda/irr_lu/lu_kernels.cuh"
#include "tests/gpu/irr_lu/irr_block_cases.h"

namespace crout::cuda::irr_offsets_emulation_test {
namespace {

struct OnHost {
  static constexpr bool kThreadsOfHost = true;

  template <class T>
  class Batch {
   public:
    explicit Batch(const std::vector<Member<T>>& members, int32_t gap = 0)
        : host_(members, gap), order_(members.size()) {
      std::iota(order_.begin(), order_.end(), 0);
      data_ = reinterpret_cast<DeviceType<T>*>(host_.view().data);
    }

    const BatchExtent& extent() const { return host_.extent(); }
    IrrMatrix<DeviceType<T>> Matrix(int row = 0, int col = 0) const {
      return {data_, host_.places().data(), row, col};
    }
    IrrMatrix<const DeviceType<T>> Constant(int row = 0, int col = 0) const {
      return {data_, host_.places().data(), row, col};
    }
    IrrMembers all() const { return {order_.data(), static_cast<int>(order_.size())}; }
    const BatchMember& place(size_t k) const { return host_.places()[k]; }
    std::vector<Member<T>> Get() {
      std::vector<Member<T>> members;
      for (size_t k = 0; k < order_.size(); ++k) members.push_back(host_.Get(k));
      return members;
    }

   private:
    testing::HostBatch<T> host_;
    std::vector<int32_t> order_;
    DeviceType<T>* data_;
  };

  template <class V>
  struct Array {
    V* get() const { return values->data(); }
    std::shared_ptr<std::vector<V>> values;
  };
  template <class V>
  static Array<V> Send(const std::vector<V>& values) {
    return {std::make_shared<std::vector<V>>(values)};
  }
  template <class V>
  static std::vector<V> Receive(const Array<V>& array, size_t) {
    return *array.values;
  }
};

// A block of 512 emulated threads takes about a second, so the test has only one real and one
// complex type.
template <class T>
class Getf2EmulationTest : public ::testing::Test {};
using Getf2Types = ::testing::Types<double, std::complex<float>>;
TYPED_TEST_SUITE(Getf2EmulationTest, Getf2Types);

template <class T>
constexpr int kBlock = MemberBlocking<DeviceType<T>>::kBlock;

TYPED_TEST(Getf2EmulationTest, FactorsAtOffsets) {
  ExpectGetf2From<OnHost, TypeParam>(kBlock<TypeParam>);
}

TYPED_TEST(Getf2EmulationTest, BadMembersDoNotAffectOthers) {
  ExpectGetf2OfBadMembersFrom<OnHost, TypeParam>(kBlock<TypeParam>);
}

template <class T>
class TrsmEmulationTest : public ::testing::Test {};
using Types = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(TrsmEmulationTest, Types);

TYPED_TEST(TrsmEmulationTest, SolvesOneLeafAtOffsets) {
  ExpectTrsmAtOffsets<OnHost, TypeParam>(Op::kNone, /*lower=*/false, /*unit=*/false, 7);
  ExpectTrsmAtOffsets<OnHost, TypeParam>(Op::kConjugateTranspose, true, true, 5);
}

// The solve has two leaves with a product between them. The product is slow on the host, because
// every shuffle is a barrier.
TEST(TrsmRecursionEmulationTest, SolvesTwoLeavesAtOffsets) {
  constexpr int kOrder = kBlock<double> + 5;
  ExpectTrsmAtOffsets<OnHost, double>(Op::kNone, /*lower=*/false, /*unit=*/false, kOrder);
}

}  // namespace
}  // namespace crout::cuda::irr_offsets_emulation_test
