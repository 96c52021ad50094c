// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <vector>

#include "tests/bench/dense/gpu_stripes.h"

namespace crout {
namespace {

constexpr int kStripe = 32;
constexpr double kZero = 1e-6;  // smaller elements are not eliminated, as in the published code

// Computes factors[r] := a_pp / a_yp for the rows y = first + r of the stripe, or 0 if a_yp needs
// no elimination.
__global__ void FactorsKernel(const double* a, int64_t ld, int64_t p, int64_t first, int64_t end,
                              double* factors) {
  const int64_t y = first + threadIdx.x;
  if (y >= end) return;
  const double element = a[y * ld + p];
  factors[threadIdx.x] = fabs(element) < kZero ? 0 : a[p * ld + p] / element;
}

// Eliminates with pivot p in the columns from `left` on.
__global__ void EliminateKernel(double* a, int64_t ld, int64_t p, int64_t first, int64_t end,
                                int64_t left, const double* factors) {
  const int64_t column = left + static_cast<int64_t>(blockIdx.x) * kStripe + threadIdx.x;
  const int64_t y = first + threadIdx.y;
  if (column >= ld || y >= end) return;
  const double factor = factors[threadIdx.y];
  if (factor == 0) return;
  a[y * ld + column] = column == p ? 0 : a[p * ld + column] - a[y * ld + column] * factor;
}

__global__ void DivideKernel(const double* a, int64_t n, double* x) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) x[i] = a[i * (n + 1) + n] / a[i * (n + 1) + i];
}

class Stripes {
 public:
  Stripes(double* a, int64_t n) : a_(a), n_(n), ld_(n + 1), streams_((n + kStripe - 1) / kStripe) {
    for (cudaStream_t& stream : streams_) Note(cudaStreamCreate(&stream));
    Note(cudaMalloc(&factors_, streams_.size() * kStripe * sizeof(double)));
  }
  Stripes(const Stripes&) = delete;
  ~Stripes() {
    for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
    cudaFree(factors_);
  }

  cudaError_t Run(double* x) {
    const auto count = static_cast<int64_t>(streams_.size());
    for (int64_t s = 0; s < count; ++s) Pass(s, true);
    for (int64_t s = count - 1; s >= 0; --s) Pass(s, false);
    DivideKernel<<<static_cast<unsigned>((n_ + 255) / 256), 256>>>(a_, n_, x);
    Note(cudaDeviceSynchronize());
    return error_;
  }

 private:
  int64_t Begin(int64_t s) const { return s * kStripe; }
  int64_t End(int64_t s) const { return std::min(Begin(s + 1), n_); }

  // Eliminates with the pivots of stripe s, first in its rows, then in the stripes below it if
  // `down`, otherwise in the stripes above it.
  void Pass(int64_t s, bool down) {
    for (int64_t k = Begin(s); k < End(s); ++k) {
      const int64_t p = down ? k : Begin(s) + End(s) - 1 - k;
      Eliminate(s, p, down ? p + 1 : Begin(s), down ? End(s) : p);
    }
    Note(cudaDeviceSynchronize());
    const int64_t last = down ? static_cast<int64_t>(streams_.size()) : s;
    for (int64_t other = down ? s + 1 : 0; other < last; ++other) {
      for (int64_t k = Begin(s); k < End(s); ++k) {
        const int64_t p = down ? k : Begin(s) + End(s) - 1 - k;
        Eliminate(other, p, Begin(other), End(other));
      }
    }
    Note(cudaDeviceSynchronize());
  }

  // Eliminates with pivot p in rows [first, end) of stripe s, on its stream. These rows are zero to
  // the left of their diagonal elements and, on the way down, to the left of the pivot.
  void Eliminate(int64_t s, int64_t p, int64_t first, int64_t end) {
    if (first >= end) return;
    const int64_t left = std::min(p, first);
    double* const factors = factors_ + s * kStripe;
    FactorsKernel<<<1, kStripe, 0, streams_[s]>>>(a_, ld_, p, first, end, factors);
    const auto blocks = static_cast<unsigned>((ld_ - left + kStripe - 1) / kStripe);
    EliminateKernel<<<blocks, dim3(kStripe, kStripe), 0, streams_[s]>>>(a_, ld_, p, first, end,
                                                                        left, factors);
    Note(cudaGetLastError());
  }

  void Note(cudaError_t error) {
    if (error_ == cudaSuccess) error_ = error;
  }

  double* const a_;
  const int64_t n_;
  const int64_t ld_;
  std::vector<cudaStream_t> streams_;
  double* factors_ = nullptr;
  cudaError_t error_ = cudaSuccess;
};

}  // namespace

cudaError_t SolveByStripes(double* ab, int64_t n, double* x) { return Stripes(ab, n).Run(x); }

}  // namespace crout
