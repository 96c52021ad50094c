// SPDX-License-Identifier: Apache-2.0

// Compares irr_lu on a GPU with calls of cuSOLVER for each member in 16 streams, and with cuBLAS's
// batched routine for members padded to the largest. Batches have 1000 square members in float64;
// all orders are N, or uniform in [1, N]. For large members, also compares with crout_lu for each
// member in several streams. All methods take turns on the same matrices in each round. Handles,
// streams and workspaces exist before; times are from the first call to the last result on the
// device. Writes one JSON object: to FILE after each case, so that an interrupted run leaves its
// results, otherwise to standard output at the end.
//   gpu_irr_bench [--output=FILE] [N ...]    without N: all kept cases
//   gpu_irr_bench [--output=FILE] large      only the large members
//   gpu_irr_bench [--output=FILE] blocks     the building blocks (gpu_irr_blocks.cc)
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cusolverDn.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/algorithm_registry.h"
#include "kernels/cuda/device/cuda_device.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/irr_lu/irr_lu.h"
#include "tests/bench/irregular_batches/gpu_irr_bench.h"

namespace crout {
namespace {

// Calls cuSOLVER's getrf and getrs for each member, in kStreams streams.
class CusolverStreams {
 public:
  explicit CusolverStreams(const Batch& a) : a_(a), pivots_(Offsets(a)), info_(kStreams) {
    int largest = 0;
    for (const BatchMember& member : a.members()) largest = std::max(largest, member.rows);
    for (int s = 0; s < kStreams; ++s) {
      CheckCuda(cudaStreamCreateWithFlags(&streams_[s], cudaStreamNonBlocking));
      Check(cuda::CusolverStatus(cusolverDnCreate(&handles_[s]), "cusolverDnCreate"));
      Check(cuda::CusolverStatus(cusolverDnSetStream(handles_[s], streams_[s]), "SetStream"));
      int doubles = 0;
      Check(cuda::CusolverStatus(cusolverDnDgetrf_bufferSize(handles_[s], largest, largest,
                                                             a.Member(0), largest, &doubles),
                                 "bufferSize"));
      workspaces_.emplace_back(static_cast<size_t>(doubles));
    }
  }
  ~CusolverStreams() {
    for (int s = 0; s < kStreams; ++s) {
      cusolverDnDestroy(handles_[s]);
      cudaStreamDestroy(streams_[s]);
    }
  }

  void Factor() {
    for (size_t i = 0; i < a_.members().size(); ++i) {
      const BatchMember& member = a_.members()[i];
      const int s = static_cast<int>(i % kStreams);
      cusolverDnDgetrf(handles_[s], member.rows, member.cols, a_.Member(i), member.ld,
                       workspaces_[s].get(), pivots_.get() + member.first_diagonal,
                       info_.get() + s);
    }
    Wait();
  }
  void Solve(const Batch& b) {
    for (size_t i = 0; i < a_.members().size(); ++i) {
      const BatchMember& member = a_.members()[i];
      const BatchMember& x = b.members()[i];
      const int s = static_cast<int>(i % kStreams);
      cusolverDnDgetrs(handles_[s], CUBLAS_OP_N, member.rows, x.cols, a_.Member(i), member.ld,
                       pivots_.get() + member.first_diagonal, b.Member(i), x.ld, info_.get() + s);
    }
    Wait();
  }

 private:
  static size_t Offsets(const Batch& a) {
    size_t count = 0;
    for (const BatchMember& member : a.members()) count += member.diagonal();
    return count;
  }
  void Wait() { CheckCuda(cudaDeviceSynchronize()); }

  const Batch& a_;
  cudaStream_t streams_[kStreams] = {};
  cusolverDnHandle_t handles_[kStreams] = {};
  std::vector<DeviceArray<double>> workspaces_;
  DeviceArray<int> pivots_;
  DeviceArray<int> info_;
};

// Calls cuBLAS's batched getrf for matrices of order `largest`. Each member is the upper left part
// of such a matrix, and the rest is the identity. Times exclude this padding.
class PaddedCublas {
 public:
  PaddedCublas(const Batch& a, int largest)
      : a_(a),
        n_(largest),
        count_(static_cast<int>(a.members().size())),
        identity_(Identity(largest)),
        padded_(static_cast<size_t>(count_) * largest * largest),
        pointers_(Pointers()),
        pivots_(static_cast<size_t>(count_) * largest),
        info_(count_) {
    Check(cuda::CublasStatus(cublasCreate(&handle_), "cublasCreate"));
  }
  ~PaddedCublas() { cublasDestroy(handle_); }

  void Reset() {
    const size_t pitch = sizeof(double) * n_;
    for (int i = 0; i < count_; ++i) {
      const BatchMember& member = a_.members()[i];
      double* const to = padded_.get() + static_cast<size_t>(i) * n_ * n_;
      CheckCuda(cudaMemcpyAsync(to, identity_.get(), pitch * n_, cudaMemcpyDeviceToDevice));
      CheckCuda(cudaMemcpy2DAsync(to, pitch, a_.Member(i), sizeof(double) * member.ld,
                                  sizeof(double) * member.rows, member.cols,
                                  cudaMemcpyDeviceToDevice));
    }
    CheckCuda(cudaDeviceSynchronize());
  }
  void Factor() {
    Check(cuda::CublasStatus(
        cublasDgetrfBatched(handle_, n_, pointers_.get(), n_, pivots_.get(), info_.get(), count_),
        "cublasDgetrfBatched"));
    CheckCuda(cudaDeviceSynchronize());
  }

 private:
  static std::vector<double> Identity(int n) {
    std::vector<double> identity(static_cast<size_t>(n) * n);
    for (int i = 0; i < n; ++i) identity[static_cast<size_t>(i) * (n + 1)] = 1;
    return identity;
  }
  std::vector<double*> Pointers() const {
    std::vector<double*> pointers;
    for (int i = 0; i < count_; ++i) {
      pointers.push_back(padded_.get() + static_cast<size_t>(i) * n_ * n_);
    }
    return pointers;
  }

  const Batch& a_;
  const int n_;
  const int count_;
  cublasHandle_t handle_ = nullptr;
  DeviceArray<double> identity_;
  DeviceArray<double> padded_;
  DeviceArray<double*> pointers_;
  DeviceArray<int> pivots_;
  DeviceArray<int> info_;
};

// Runs irr_lu with memory that the constructor allocates, without the probe.
class IrrLu {
 public:
  IrrLu(const Batch& a, const cuda::DeviceLimits& limits)
      : a_(a),
        limits_(limits),
        host_order_(a.members().size()),
        parts_(cuda::OrderMembers(a.members(), host_order_)),
        order_(host_order_),
        ipiv_(a.view().extent.diagonals),
        info_(a.members().size()) {
    CheckCuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  ~IrrLu() { cudaStreamDestroy(stream_); }

  void Factor() {
    Check(cuda::IrrGetrf(a_.view(), factors(), parts_, order_.get(), limits_, stream_));
    CheckCuda(cudaStreamSynchronize(stream_));
  }
  void Solve(const Batch& b) {
    Check(cuda::IrrGetrs(Op::kNone, a_.view(), factors(), b.view(), parts_, order_.get(), limits_,
                         stream_));
    CheckCuda(cudaStreamSynchronize(stream_));
  }

 private:
  BatchFactors factors() const { return {ipiv_.get(), info_.get(), nullptr, nullptr}; }

  const Batch& a_;
  const cuda::DeviceLimits& limits_;
  std::vector<int32_t> host_order_;
  cuda::IrrOrder parts_;
  DeviceArray<int32_t> order_;
  DeviceArray<int64_t> ipiv_;
  DeviceArray<int32_t> info_;
  cudaStream_t stream_ = nullptr;
};

// Runs the device's irr_lu: with the probe, and with crout_lu for several large members at once.
class OfferedIrrLu {
 public:
  OfferedIrrLu(const Batch& a, Device& device)
      : a_(a),
        method_(*device.batch_lu()),
        context_(Check(device.CreateContext())),
        ipiv_(a.view().extent.diagonals),
        info_(a.members().size()),
        growth_(a.members().size()),
        quality_(a.members().size()) {
    const BatchLu::WorkspaceBytes bytes = Check(method_.FactorWorkspaceBytes(a.view().extent));
    workspace_ = Check(device.memory().Allocate(bytes.device));
    host_workspace_ = Check(device.staging_memory().Allocate(bytes.host));
  }

  void Factor() {
    const BatchFactors factors = {ipiv_.get(), info_.get(), growth_.get(), quality_.get()};
    const BatchLu::Workspace workspace = {{workspace_.data(), workspace_.size()},
                                          {host_workspace_.data(), host_workspace_.size()}};
    Check(method_.Factor(*context_, a_.view(), a_.members(), factors, workspace,
                         [] { return false; }));
    Check(context_->Synchronize());
  }

 private:
  const Batch& a_;
  const BatchLu& method_;
  const std::unique_ptr<ExecutionContext> context_;
  DeviceArray<int64_t> ipiv_;
  DeviceArray<int32_t> info_;
  DeviceArray<double> growth_;
  DeviceArray<double> quality_;
  Buffer workspace_;
  Buffer host_workspace_;
};

// Runs crout_lu for each member in several streams. Each stream has a context, a workspace and a
// thread, as in the service, and factors its members one after the other.
class CroutLuInStreams {
 public:
  CroutLuInStreams(const Batch& a, Device& device,
                   std::span<const std::unique_ptr<ExecutionContext>> contexts)
      : a_(a) {
    const int64_t largest = a.view().extent.max_diagonal;
    method_ = Check(FindAlgorithm(device, "crout_lu", DType::kFloat64, largest));
    size_t bytes = 0;
    for (const BatchMember& member : a.members()) {
      bytes = std::max(bytes, Check(method_->WorkspaceBytes(DType::kFloat64, member.rows, {})));
    }
    for (const auto& context : contexts) {
      workers_.push_back({context.get(), Check(device.memory().Allocate(bytes)),
                          DeviceArray<int64_t>(static_cast<size_t>(largest))});
    }
  }

  void Factor() {
    std::vector<std::jthread> threads;
    for (size_t first = 0; first < workers_.size(); ++first) {
      threads.emplace_back([this, first] { FactorFrom(first); });
    }
  }

 private:
  struct Worker {
    ExecutionContext* context;
    Buffer workspace;
    DeviceArray<int64_t> ipiv;
  };

  // Factors the members first, first + workers_.size(), and so on, with worker `first`.
  void FactorFrom(size_t first) {
    const Worker& worker = workers_[first];
    for (size_t i = first; i < a_.members().size(); i += workers_.size()) {
      const int64_t n = a_.members()[i].rows;
      Check(method_->Factor(*worker.context,
                            {reinterpret_cast<std::byte*>(a_.Member(i)), DType::kFloat64, n, n, n},
                            worker.ipiv.get(), {worker.workspace.data(), worker.workspace.size()},
                            {}, [] { return false; }));
    }
    Check(worker.context->Synchronize());
  }

  const Batch& a_;
  const LuAlgorithm* method_ = nullptr;
  std::vector<Worker> workers_;
};

double GetrfFlops(const std::vector<BatchMember>& members) {
  double flops = 0;
  for (const BatchMember& member : members) {
    const double n = member.rows;
    flops += 2 * n * n * n / 3 - n * n / 2 + 5 * n / 6;
  }
  return flops;
}

void BenchCase(const std::vector<MatrixShape>& shapes, const char* sizes, int largest, int rounds,
               const cuda::DeviceLimits& limits, Json& rows) {
  Batch a(shapes, 1);
  Batch a_of_vendor(a);
  IrrLu irr(a, limits);
  CusolverStreams cusolver(a_of_vendor);
  PaddedCublas cublas(a_of_vendor, largest);
  const auto row_of = [&](const char* operation, int nrhs) -> Json {
    return {{"operation", operation},
            {"members", shapes.size()},
            {"sizes", sizes},
            {"largest", largest},
            {"nrhs", nrhs}};
  };
  Json row = row_of("getrf", 0);
  CompareRunners({{"irr", [&] { a.Reset(); }, [&] { irr.Factor(); }},
                  {"cublas_padded",
                   [&] {
                     a_of_vendor.Reset();
                     cublas.Reset();
                   },
                   [&] { cublas.Factor(); }},
                  {"cusolver_streams", [&] { a_of_vendor.Reset(); }, [&] { cusolver.Factor(); }}},
                 rounds, row);
  row["irr_gflops"] = GetrfFlops(a.members()) / row["irr_ms"].get<double>() * 1e-6;
  rows.push_back(row);
  for (const int nrhs : {1, 16}) {
    std::vector<MatrixShape> of_b = shapes;
    for (MatrixShape& shape : of_b) shape.cols = nrhs;
    Batch b(of_b, 2);
    Batch b_of_vendor(b);
    Json solve = row_of("getrs", nrhs);
    CompareRunners(
        {{"irr", [&] { b.Reset(); }, [&] { irr.Solve(b); }},
         {"cusolver_streams", [&] { b_of_vendor.Reset(); }, [&] { cusolver.Solve(b_of_vendor); }}},
        rounds, solve);
    rows.push_back(solve);
  }
}

// Compares factorizations of large members, each of which occupies most of a GPU: by the device's
// method, only by teams of blocks, by crout_lu for each, and by the vendor. `contexts` has kStreams
// elements.
Json BenchFewLarge(const std::vector<MatrixShape>& shapes, int least, int largest, Device& device,
                   std::span<const std::unique_ptr<ExecutionContext>> contexts,
                   const cuda::DeviceLimits& limits) {
  Batch a(shapes, 1);
  OfferedIrrLu offered(a, device);
  CroutLuInStreams one_stream(a, device, contexts.first(1));
  CroutLuInStreams four_streams(a, device, contexts.first(4));
  CroutLuInStreams all_streams(a, device, contexts);
  IrrLu teams(a, limits);
  CusolverStreams cusolver(a);
  const auto reset = [&] { a.Reset(); };
  Json row = {{"members", shapes.size()}, {"least", least}, {"largest", largest}};
  CompareRunners({{"irr", reset, [&] { offered.Factor(); }},
                  {"crout_lu_1_stream", reset, [&] { one_stream.Factor(); }},
                  {"crout_lu_4_streams", reset, [&] { four_streams.Factor(); }},
                  {"crout_lu_16_streams", reset, [&] { all_streams.Factor(); }},
                  {"teams", reset, [&] { teams.Factor(); }},
                  {"cusolver_streams", reset, [&] { cusolver.Factor(); }}},
                 /*rounds=*/5, row);
  row["irr_gflops"] = GetrfFlops(a.members()) / row["irr_ms"].get<double>() * 1e-6;
  return row;
}

void BenchLarge(Device& device, const cuda::DeviceLimits& limits, Json& result,
                const std::string& output) {
  std::vector<std::unique_ptr<ExecutionContext>> contexts;
  for (int s = 0; s < kStreams; ++s) contexts.push_back(Check(device.CreateContext()));
  struct Case {
    int members, least, most;
  };
  for (const auto& [members, least, most] : {Case{16, 1024, 2048},
                                             {16, 2048, 4096},
                                             {16, 4096, 6144},
                                             {64, 2048, 3072},
                                             {200, 1024, 2048}}) {
    result["few_large"].push_back(
        BenchFewLarge(UniformShapes(members, least, most), least, most, device, contexts, limits));
    WriteResult(result, output);
  }
}

void BenchSize(int n, const cuda::DeviceLimits& limits, Json& result, const std::string& output) {
  constexpr int kMembers = 1000;
  const int rounds = n <= 128 ? 11 : n <= 512 ? 5 : 3;
  BenchCase(UniformShapes(kMembers, 1, n), "uniform", n, rounds, limits, result["cases"]);
  WriteResult(result, output);
  BenchCase(std::vector<MatrixShape>(kMembers, {n, n}), "equal", n, rounds, limits,
            result["cases"]);
  WriteResult(result, output);
}

int Main(int argc, char** argv) {
  if (cuda::CountCudaDevices() == 0) {
    std::cerr << "no CUDA device on this machine\n";
    return 1;
  }
  constexpr std::string_view kOutput = "--output=";
  std::string output;
  std::vector<std::string_view> wanted;
  for (const std::string_view argument : std::span(argv, argv + argc).subspan(1)) {
    if (argument.starts_with(kOutput)) {
      output = argument.substr(kOutput.size());
    } else {
      wanted.push_back(argument);
    }
  }
  if (wanted.empty()) wanted = {"32", "64", "128", "256", "512", "1024", "large"};
  const auto device = Check(cuda::MakeDevice(0, cuda::Options()));
  const cuda::DeviceLimits limits = Check(cuda::DeviceLimits::ForCurrentDevice());
  const bool blocks = wanted[0] == "blocks";
  Json result = ResultHeader(blocks ? "gpu_irr_blocks" : "gpu_irr", device->info());
  for (const std::string_view what : wanted) {
    if (what == "blocks") {
      BenchIrrBlocks(result, output);
    } else if (what == "large") {
      BenchLarge(*device, limits, result, output);
    } else {
      BenchSize(std::max(1, std::atoi(what.data())), limits, result, output);
    }
  }
  if (output.empty()) std::cout << FormatResult(result);
  return 0;
}

}  // namespace
}  // namespace crout

int main(int argc, char** argv) { return crout::Main(argc, argv); }
