// SPDX-License-Identifier: Apache-2.0

// Factors and solves irregular batches on a GPU. Errors of CUDA fail the test.
#ifndef CROUT_TESTS_GPU_IRR_LU_IRR_LU_TESTING_H_
#define CROUT_TESTS_GPU_IRR_LU_IRR_LU_TESTING_H_

#include <algorithm>
#include <complex>
#include <vector>

#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/device_limits.h"
#include "kernels/cuda/irr_lu/irr_lu.h"
#include "kernels/cuda/irr_lu/irr_matrix.h"
#include "tests/gpu/harness/kernel_test.h"
#include "tests/kernels/irregular_batch_testing.h"

namespace crout::cuda {

class IrrLuTest : public KernelTest {
 protected:
  // Members in GPU memory, in the layout of a HostBatch: `gap` unused rows follow each column.
  template <class T>
  class GpuBatch {
   public:
    explicit GpuBatch(const std::vector<testing::Member<T>>& members, int32_t gap = 0)
        : host_(members, gap), order_(members.size()) {
      bytes_ = Allocate<std::byte>(host_.extent().bytes);
      CopyElements(cudaMemcpyHostToDevice);
      parts_ = OrderMembers(host_.places(), order_);
      members_ = Send(host_.places());
      device_order_ = Send(order_);
    }

    IrregularBatch view() const { return {bytes_.get(), host_.extent(), members_.get()}; }
    const BatchExtent& extent() const { return host_.extent(); }
    const IrrOrder& parts() const { return parts_; }
    const int32_t* order() const { return device_order_.get(); }
    // Returns the members' submatrices whose first element is (row, col), 0-based.
    IrrMatrix<DeviceType<T>> Matrix(int row = 0, int col = 0) const {
      return {reinterpret_cast<DeviceType<T>*>(bytes_.get()), members_.get(), row, col};
    }
    IrrMatrix<const DeviceType<T>> Constant(int row = 0, int col = 0) const {
      return {reinterpret_cast<const DeviceType<T>*>(bytes_.get()), members_.get(), row, col};
    }
    IrrMembers all() const { return {device_order_.get(), static_cast<int>(order_.size())}; }
    const std::vector<BatchMember>& places() const { return host_.places(); }
    const BatchMember& place(size_t k) const { return host_.places()[k]; }

    // Returns the current values of all members.
    std::vector<testing::Member<T>> Get() {
      CopyElements(cudaMemcpyDeviceToHost);
      std::vector<testing::Member<T>> members;
      for (size_t k = 0; k < host_.places().size(); ++k) members.push_back(host_.Get(k));
      return members;
    }

   private:
    void CopyElements(cudaMemcpyKind kind) {
      std::byte* const on_host = host_.view().data;
      const bool up = kind == cudaMemcpyHostToDevice;
      EXPECT_EQ(cudaMemcpy(up ? bytes_.get() : on_host, up ? on_host : bytes_.get(),
                           host_.extent().bytes, kind),
                cudaSuccess);
    }

    testing::HostBatch<T> host_;
    std::vector<int32_t> order_;
    IrrOrder parts_;
    OnDevice<std::byte> bytes_{nullptr, &cudaFree};
    OnDevice<BatchMember> members_{nullptr, &cudaFree};
    OnDevice<int32_t> device_order_{nullptr, &cudaFree};
  };

  // A batch that the constructor factors on the GPU with irr_lu. All results are -1 before.
  template <class T>
  class GpuFactors {
   public:
    explicit GpuFactors(const std::vector<testing::Member<T>>& members, int32_t gap = 0)
        : lu_(members, gap),
          ipiv_(Send(std::vector<int64_t>(lu_.extent().diagonals, -1))),
          info_(Send(std::vector<int32_t>(lu_.extent().members, -1))),
          growth_(Send(std::vector<double>(lu_.extent().members, -1))),
          quality_(Send(std::vector<double>(lu_.extent().members, -1))) {
      std::vector<int64_t> places(members.size());
      const auto workspace = Allocate<std::byte>(PlaceIrrProbe(kDTypeOf<T>, lu_.places(), places));
      const auto on_gpu_places = Send(places);
      const IrrProbe probe = {
          workspace.get(), on_gpu_places.get(), {lu_.order(), lu_.parts().large()}};
      EXPECT_EQ(LaunchIrrProbeStart(lu_.view(), probe, stream_.get()), cudaSuccess);
      EXPECT_OK(IrrGetrf(lu_.view(), view(), lu_.parts(), lu_.order(), Limits(), stream_.get()));
      EXPECT_EQ(LaunchIrrProbeFinish(lu_.view(), view(), probe, stream_.get()), cudaSuccess);
      EXPECT_EQ(cudaStreamSynchronize(stream_.get()), cudaSuccess);
    }

    // Returns the factors, pivots, info, growth and quality of all members.
    std::vector<testing::FactoredMember<T>> Get() {
      const auto members = lu_.Get();
      const auto ipiv = Receive(ipiv_, lu_.extent().diagonals);
      const auto info = Receive(info_, lu_.extent().members);
      const auto growth = Receive(growth_, lu_.extent().members);
      const auto quality = Receive(quality_, lu_.extent().members);
      std::vector<testing::FactoredMember<T>> all;
      for (size_t k = 0; k < members.size(); ++k) {
        const auto first = ipiv.begin() + lu_.place(k).first_diagonal;
        all.push_back(
            {members[k], {first, first + lu_.place(k).diagonal()}, info[k], growth[k], quality[k]});
      }
      return all;
    }

    // Returns X with op(A) X = B for each member. B of member k is b[k], with the rows of A.
    std::vector<testing::Member<T>> Solved(Op op, const std::vector<testing::Member<T>>& b,
                                           int32_t gap = 0) {
      GpuBatch<T> x(b, gap);
      EXPECT_OK(IrrGetrs(op, lu_.view(), view(), x.view(), lu_.parts(), lu_.order(), Limits(),
                         stream_.get()));
      EXPECT_EQ(cudaStreamSynchronize(stream_.get()), cudaSuccess);
      return x.Get();
    }

   private:
    BatchFactors view() const { return {ipiv_.get(), info_.get(), growth_.get(), quality_.get()}; }
    static DeviceLimits Limits() {
      const auto limits = DeviceLimits::ForCurrentDevice();
      EXPECT_OK(limits);
      return *limits;
    }

    GpuBatch<T> lu_;
    OnDevice<int64_t> ipiv_;
    OnDevice<int32_t> info_;
    OnDevice<double> growth_;
    OnDevice<double> quality_;
    Stream stream_ = MakeStream();
  };

  template <class T>
  static std::vector<testing::FactoredMember<T>> Factored(
      const std::vector<testing::Member<T>>& members, int32_t gap = 0) {
    return GpuFactors<T>(members, gap).Get();
  }

  // Calls f(T{}) for every element type.
  template <class F>
  static void ForTypes(F f) {
    f(float{});
    f(double{});
    f(std::complex<float>{});
    f(std::complex<double>{});
  }

  // Returns one random member of each shape.
  template <class T>
  static std::vector<testing::Member<T>> RandomMembers(const std::vector<MatrixShape>& shapes) {
    std::vector<testing::Member<T>> members;
    for (const MatrixShape& shape : shapes) {
      members.push_back(testing::RandomMember<T>(shape.rows, shape.cols, members.size() + 1));
    }
    return members;
  }
};

}  // namespace crout::cuda

#endif  // CROUT_TESTS_GPU_IRR_LU_IRR_LU_TESTING_H_
