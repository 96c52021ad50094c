// SPDX-License-Identifier: Apache-2.0

// Inputs and methods of the benchmarks of dense LU on a GPU. Functions exit on an error.
#ifndef CROUT_TESTS_BENCH_DENSE_LU_RUNS_H_
#define CROUT_TESTS_BENCH_DENSE_LU_RUNS_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/cuda/crout_lu/crout_lu.h"
#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/cuda_context.h"
#include "kernels/cuda/device/cuda_status.h"
#include "tests/bench/dense/factor_residual.h"
#include "tests/bench/harness/bench_result.h"

namespace crout {

struct LuShape {
  int64_t rows;
  int64_t cols;
};

// A matrix in device memory, and the copy that methods factor.
template <class T>
class LuInput {
 public:
  // `host` is the matrix, column-major. `context` must outlive the object.
  LuInput(cuda::Context& context, LuShape shape, const std::vector<T>& host)
      : context_(context),
        shape_(shape),
        bytes_(static_cast<size_t>(shape.rows * shape.cols) * sizeof(T)),
        original_(Allocate(bytes_)),
        a_(Allocate(bytes_)),
        ipiv_(Allocate(std::min(shape.rows, shape.cols) * sizeof(int64_t))) {
    Check(context.ops().CopyToDevice(host.data(), original_.data(), bytes_));
    Check(context.Synchronize());
  }

  Buffer Allocate(size_t bytes) { return Check(context_.device().memory().Allocate(bytes)); }
  MatrixView<T> a() { return {a_.as<T>(), shape_.rows, shape_.cols, shape_.rows}; }
  int64_t* ipiv() { return ipiv_.as<int64_t>(); }

  // Restores the copy. Returns the seconds of enqueue(), which factors the copy, until its end on
  // the device.
  double Factor(const std::function<void()>& enqueue) {
    Check(context_.ops().CopyOnDevice(original_.data(), a_.data(), bytes_));
    Check(context_.Synchronize());
    return Time([&] {
      enqueue();
      Check(context_.Synchronize());
    });
  }

  // Returns |PA - LU|_1 / (n |A|_1 eps) of the last factor, which must be square.
  double FactorRatio() {
    return FactorRatioOnDevice(context_, View(original_), {View(a_), ipiv(), UnitDiagonal::kL});
  }
  // Returns the largest magnitude in the last U over `max_abs`, the largest in the matrix.
  double Growth(double max_abs) {
    Check(context_.ops().InspectFactor(View(a_), /*unit_in_u=*/false, ipiv(), {}));
    Check(context_.Synchronize());
    return context_.report().factor.max_abs_u / max_abs;
  }
  cuda::Context& context() { return context_; }

 private:
  AnyMatrix View(const Buffer& buffer) const {
    return {buffer.data(), kDTypeOf<T>, shape_.rows, shape_.cols, shape_.rows};
  }

  cuda::Context& context_;
  const LuShape shape_;
  const size_t bytes_;
  Buffer original_;
  Buffer a_;
  Buffer ipiv_;
};

// Waits for all enqueued work and returns the value at `from` in device memory.
inline int ReadInt(cuda::Context& context, const int* from) {
  int value = 0;
  Check(context.ops().CopyToHost(from, &value, sizeof(value)));
  Check(context.Synchronize());
  return value;
}

// Runs cusolverDnXgetrf for a matrix of any shape. Info() returns the info of the last run.
template <class T>
class Getrf {
 public:
  explicit Getrf(LuInput<T>& input) : input_(input), context_(input.context()) {
    const MatrixView<T> a = input.a();
    size_t host = 0;
    Check(cuda::CusolverStatus(
        cusolverDnXgetrf_bufferSize(context_.cusolver(), context_.getrf_params(), a.rows, a.cols,
                                    kType, a.data, a.ld, kType, &bytes_, &host),
        "cusolverDnXgetrf_bufferSize"));
    workspace_ = input.Allocate(bytes_);
    host_workspace_.resize(host);
  }

  void operator()() {
    const MatrixView<T> a = input_.a();
    Check(cuda::CusolverStatus(
        cusolverDnXgetrf(context_.cusolver(), context_.getrf_params(), a.rows, a.cols, kType,
                         a.data, a.ld, input_.ipiv(), kType, workspace_.data(), bytes_,
                         host_workspace_.data(), host_workspace_.size(), context_.info()),
        "cusolverDnXgetrf"));
  }

  int Info() { return ReadInt(context_, context_.info()); }

 private:
  static constexpr cudaDataType kType = cuda::CudaTypeOf(kDTypeOf<T>);

  LuInput<T>& input_;
  cuda::Context& context_;
  size_t bytes_ = 0;
  Buffer workspace_;
  std::vector<std::byte> host_workspace_;
};

// Runs crout_lu for a matrix of any shape. Info() returns the info of the last run.
template <class T>
class CroutLuRun {
 public:
  CroutLuRun(LuInput<T>& input, const cuda::LuPanelKernels& kernels)
      : input_(input),
        context_(input.context()),
        kernels_(kernels),
        columns_(std::min(input.a().rows, input.a().cols)),
        blocking_(cuda::LuBlocking::For(kDTypeOf<T>, columns_)),
        bytes_(
            cuda::CroutLuWorkspaceBytes(kernels, blocking_, kDTypeOf<T>, input.a().rows, columns_)),
        workspace_(input.Allocate(bytes_)) {}

  void operator()() {
    const AnyMatrix a = input_.a();
    Check(cuda::EnqueueCroutLu(cuda::LuStreams::ForContext(context_), kernels_, blocking_,
                               a.As<cuda::DeviceType<T>>(), input_.ipiv(),
                               {workspace_.data(), bytes_}, [] { return false; }));
  }

  int Info() {
    return ReadInt(context_, cuda::CroutLuInfo(kDTypeOf<T>, {workspace_.data(), bytes_}));
  }

 private:
  LuInput<T>& input_;
  cuda::Context& context_;
  const cuda::LuPanelKernels& kernels_;
  const int64_t columns_;
  const cuda::LuBlocking blocking_;
  const size_t bytes_;
  const Buffer workspace_;
};

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_DENSE_LU_RUNS_H_
