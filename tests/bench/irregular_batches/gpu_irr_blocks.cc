// SPDX-License-Identifier: Apache-2.0

// Measures the building blocks of irr_lu as in the paper (named in irregular_batch.h), in float64
// and with the paper's operation counts. Compares triangular solves and products with cuBLAS calls
// for each member in 16 streams, panels in registers with panels column by column, and combined
// interchanges with one launch per row.
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/irr_lu/irr_blas.h"
#include "kernels/cuda/irr_lu/lu_kernels.h"
#include "kernels/cuda/irr_lu/member_team.h"
#include "tests/bench/irregular_batches/gpu_irr_bench.h"
#include "tests/bench/irregular_batches/gpu_irr_panels.h"

namespace crout {
namespace {

constexpr int kMembers = 1000;
constexpr int kRounds = 7;

class Stream {
 public:
  Stream() { CheckCuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }
  // Checks the result of a launch and waits for the stream.
  void Await(cudaError_t enqueued) const {
    CheckCuda(enqueued);
    CheckCuda(cudaStreamSynchronize(stream_));
  }

 private:
  cudaStream_t stream_ = nullptr;
};

// kStreams streams with cuBLAS handles.
class CublasStreams {
 public:
  CublasStreams() {
    for (int s = 0; s < kStreams; ++s) {
      Check(cuda::CublasStatus(cublasCreate(&handles_[s]), "cublasCreate"));
      Check(cuda::CublasStatus(cublasSetStream(handles_[s], streams_[s].get()), "cublasSetStream"));
    }
  }
  ~CublasStreams() {
    for (cublasHandle_t handle : handles_) cublasDestroy(handle);
  }
  CublasStreams(const CublasStreams&) = delete;

  // Calls call(handle, i) for each member i, and waits for all streams.
  template <class F>
  void ForEach(size_t members, F call) const {
    for (size_t i = 0; i < members; ++i) {
      Check(cuda::CublasStatus(call(handles_[i % kStreams], i), "cuBLAS"));
    }
    CheckCuda(cudaDeviceSynchronize());
  }

 private:
  Stream streams_[kStreams];
  cublasHandle_t handles_[kStreams] = {};
};

// The order of the members for a launch: descending work.
class Members {
 public:
  explicit Members(const std::vector<double>& work)
      : order_(Descending(work)), count_(work.size()) {}
  cuda::IrrMembers get() const { return {order_.get(), static_cast<int>(count_)}; }

 private:
  static std::vector<int32_t> Descending(const std::vector<double>& work) {
    std::vector<int32_t> order(work.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t i, int32_t j) {
      return work[static_cast<size_t>(i)] > work[static_cast<size_t>(j)];
    });
    return order;
  }
  DeviceArray<int32_t> order_;
  size_t count_;
};

double Sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// Adds the Gflop/s of a runner to `row`, which has its milliseconds.
void AddRate(const char* runner, double flops, Json& row) {
  const std::string name = runner;
  row[name + "_gflops"] = flops / row[name + "_ms"].get<double>() * 1e-6;
}

// Returns the largest |b - T x| / (|T| |x|) of all members, in Frobenius norms. T is unit lower
// triangular.
double LargestError(const Batch& t, const Batch& b, const std::vector<double>& t_values,
                    const std::vector<double>& b_values, const std::vector<double>& x_values) {
  double largest = 0;
  for (size_t k = 0; k < t.members().size(); ++k) {
    const BatchMember& of_t = t.members()[k];
    const BatchMember& of_b = b.members()[k];
    const double* const a = t_values.data() + of_t.offset;
    double norm_t = of_t.rows, norm_x = 0, norm_r = 0;
    for (int j = 0; j < of_t.cols; ++j) {
      for (int i = j + 1; i < of_t.rows; ++i) norm_t += a[i + j * of_t.ld] * a[i + j * of_t.ld];
    }
    for (int c = 0; c < of_b.cols; ++c) {
      const double* const x = x_values.data() + of_b.offset + int64_t{c} * of_b.ld;
      const double* const rhs = b_values.data() + of_b.offset + int64_t{c} * of_b.ld;
      for (int i = 0; i < of_b.rows; ++i) {
        double r = rhs[i] - x[i];
        for (int j = 0; j < i; ++j) r -= a[i + j * of_t.ld] * x[j];
        norm_r += r * r;
        norm_x += x[i] * x[i];
      }
    }
    if (norm_x > 0) largest = std::max(largest, std::sqrt(norm_r / (norm_t * norm_x)));
  }
  return largest;
}

Json BenchTrsm() {
  constexpr int kLargest = 32;
  const CublasStreams cublas;
  const Stream stream;
  const std::vector<MatrixShape> of_t = UniformShapes(kMembers, 1, kLargest);
  const Batch t(of_t, 1);
  const std::vector<double> t_values = t.Download();
  Json rows = Json::array();
  for (const int nrhs : {1, 8, 32, 128, 512}) {
    std::vector<MatrixShape> of_b = of_t;
    std::vector<double> flops;
    for (MatrixShape& shape : of_b) {
      shape.cols = nrhs;
      flops.push_back(static_cast<double>(shape.rows * shape.rows) * nrhs);
    }
    Batch b(of_b, 2);
    Batch b_of_vendor(b);
    const std::vector<double> b_values = b.Download();
    const Members members(flops);
    cuda::IrrTrsm<double> trsm;
    trsm.m = kLargest;
    trsm.n = nrhs;
    trsm.t = t.constant();
    trsm.b = b.matrix();
    const double one = 1;
    const auto call = [&](cublasHandle_t handle, size_t i) {
      const BatchMember& x = b_of_vendor.members()[i];
      return cublasDtrsm(handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N,
                         CUBLAS_DIAG_UNIT, x.rows, x.cols, &one, t.Member(i), t.members()[i].ld,
                         b_of_vendor.Member(i), x.ld);
    };
    Json row = {{"members", kMembers}, {"largest", kLargest}, {"nrhs", nrhs}};
    CompareRunners({{"irr", [&] { b.Reset(); },
                     [&] { stream.Await(cuda::LaunchIrrTrsm(trsm, members.get(), stream.get())); }},
                    {"cublas_streams", [&] { b_of_vendor.Reset(); },
                     [&] { cublas.ForEach(of_b.size(), call); }}},
                   kRounds, row);
    AddRate("irr", Sum(flops), row);
    AddRate("cublas_streams", Sum(flops), row);
    row["irr_error"] = LargestError(t, b, t_values, b_values, b.Download());
    row["cublas_streams_error"] = LargestError(t, b, t_values, b_values, b_of_vendor.Download());
    rows.push_back(row);
  }
  return rows;
}

Json BenchPanels() {
  constexpr int kWidth = cuda::MemberBlocking<double>::kBlock;
  const Stream stream;
  Json rows = Json::array();
  for (const int tallest : {64, 128, 256, 512, 1024}) {
    std::vector<MatrixShape> shapes = UniformShapes(kMembers, 1, tallest);
    std::vector<double> flops;
    for (MatrixShape& shape : shapes) {
      shape.cols = kWidth;
      const auto m = static_cast<double>(std::max(shape.rows, shape.cols));
      const auto n = static_cast<double>(std::min(shape.rows, shape.cols));
      flops.push_back(m * n * n - n * n * n / 3 - n * n / 2 + 5 * n / 6);
    }
    Batch a(shapes, 1);
    const Members members(flops);
    const DeviceArray<int64_t> ipiv(static_cast<size_t>(a.view().extent.diagonals));
    const DeviceArray<int32_t> info(shapes.size());
    const cuda::IrrLuBatch<double> batch = {
        a.Member(0), a.view().members, ipiv.get(), info.get(), {}};
    const auto reset = [&] { a.Reset(); };
    Json row = {{"members", kMembers}, {"width", kWidth}, {"tallest", tallest}};
    CompareRunners(
        {{"in_registers", reset,
          [&] { stream.Await(cuda::LaunchIrrGetf2(batch, 0, members.get(), stream.get())); }},
         {"by_columns", reset,
          [&] { stream.Await(LaunchGetf2ByColumns(batch, members.get(), stream.get())); }}},
        kRounds, row);
    AddRate("in_registers", Sum(flops), row);
    AddRate("by_columns", Sum(flops), row);
    rows.push_back(row);
  }
  return rows;
}

// Returns 1-based interchanges. The first `count` rows of each member are exchanged with a random
// row at or below them, or with themselves if `on_diagonal`.
std::vector<int64_t> Interchanges(const Batch& a, int count, bool on_diagonal) {
  std::mt19937_64 random(3);
  std::vector<int64_t> ipiv(static_cast<size_t>(a.view().extent.diagonals));
  for (const BatchMember& member : a.members()) {
    for (int k = 0; k < member.diagonal(); ++k) {
      const int last = on_diagonal || k >= count ? k : member.rows - 1;
      ipiv[static_cast<size_t>(member.first_diagonal + k)] =
          std::uniform_int_distribution<int>(k, last)(random) + 1;
    }
  }
  return ipiv;
}

// Measures the interchanges of a panel of 32 columns in all columns of square members.
Json BenchLaswp() {
  constexpr int kHeight = 32;
  const Stream stream;
  Json rows = Json::array();
  for (const int largest : {64, 128, 256, 512, 1024}) {
    const std::vector<MatrixShape> shapes = UniformShapes(kMembers, 1, largest);
    std::vector<double> work;
    for (const MatrixShape& shape : shapes) work.push_back(static_cast<double>(shape.cols));
    Batch a(shapes, 1);
    const Members members(work);
    for (const bool on_diagonal : {false, true}) {
      const DeviceArray<int64_t> ipiv(Interchanges(a, kHeight, on_diagonal));
      cuda::IrrLaswp<double> laswp;
      laswp.end = kHeight;
      laswp.n = largest;
      laswp.ipiv = ipiv.get();
      laswp.pivots = a.view().members;
      laswp.a = a.matrix();
      const auto by_rows = [&] {
        cuda::IrrLaswp<double> one = laswp;
        for (int k = 0; k < kHeight; ++k) {
          one.begin = k;
          one.end = k + 1;
          CheckCuda(cuda::LaunchIrrLaswp(one, members.get(), stream.get()));
        }
        stream.Await(cudaSuccess);
      };
      const auto reset = [] {};  // times do not depend on the order of the rows
      Json row = {{"members", shapes.size()},
                  {"largest", largest},
                  {"pivots", on_diagonal ? "on the diagonal" : "anywhere"}};
      CompareRunners(
          {{"rehearsed", reset,
            [&] { stream.Await(cuda::LaunchIrrLaswp(laswp, members.get(), stream.get())); }},
           {"row_by_row", reset, by_rows}},
          kRounds, row);
      rows.push_back(row);
    }
  }
  return rows;
}

Json BenchGemm() {
  const CublasStreams cublas;
  const Stream stream;
  Json rows = Json::array();
  for (const auto& [largest, count] : {std::pair{32, kMembers},
                                       {64, kMembers},
                                       {128, kMembers},
                                       {256, kMembers},
                                       {512, 250},
                                       {1024, 100},
                                       {2048, 16}}) {
    std::mt19937_64 random(static_cast<uint64_t>(largest));
    std::uniform_int_distribution<int64_t> uniform(1, largest);
    std::vector<MatrixShape> of_a, of_b, of_c;
    std::vector<double> flops;
    for (int i = 0; i < count; ++i) {
      const int64_t m = uniform(random), n = uniform(random), k = uniform(random);
      of_a.push_back({m, k});
      of_b.push_back({k, n});
      of_c.push_back({m, n});
      flops.push_back(2.0 * static_cast<double>(m) * static_cast<double>(n) *
                      static_cast<double>(k));
    }
    const Batch a(of_a, 1), b(of_b, 2);
    const Batch c(of_c, 3);  // each run computes the same C := A B
    const Members members(flops);
    cuda::IrrGemm<double> gemm;
    gemm.m = gemm.n = gemm.k = largest;
    gemm.a = a.constant();
    gemm.b = b.constant();
    gemm.c = c.matrix();
    const double one = 1, zero = 0;
    const auto call = [&](cublasHandle_t handle, size_t i) {
      const BatchMember& of = c.members()[i];
      return cublasDgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, of.rows, of.cols, a.members()[i].cols,
                         &one, a.Member(i), a.members()[i].ld, b.Member(i), b.members()[i].ld,
                         &zero, c.Member(i), of.ld);
    };
    const auto reset = [] {};
    Json row = {{"members", count}, {"largest", largest}};
    CompareRunners({{"irr", reset,
                     [&] { stream.Await(cuda::LaunchIrrGemm(gemm, members.get(), stream.get())); }},
                    {"cublas_streams", reset, [&] { cublas.ForEach(of_c.size(), call); }}},
                   kRounds, row);
    AddRate("irr", Sum(flops), row);
    AddRate("cublas_streams", Sum(flops), row);
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

void BenchIrrBlocks(Json& result, const std::string& output) {
  const std::pair<const char*, Json (*)()> blocks[] = {{"block_trsm", BenchTrsm},
                                                       {"block_panel", BenchPanels},
                                                       {"block_laswp", BenchLaswp},
                                                       {"block_gemm", BenchGemm}};
  for (const auto& [name, bench] : blocks) {
    result[name] = bench();
    WriteResult(result, output);
  }
}

}  // namespace crout
