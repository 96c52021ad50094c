// SPDX-License-Identifier: Apache-2.0

#include "rank/cusolvermp_engine.h"

#include <climits>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "rank/gpu.h"
#include "rank/gpu_matrix.h"
#include "rank/layout.h"
#include "rank/memory.h"

namespace crout::rank {
namespace {

constexpr int kNoTranspose = 0;  // CUBLAS_OP_N, the only operation of getrs

// Values of cudaDataType.
template <class T>
constexpr int kCudaType = 0;  // float
template <>
constexpr int kCudaType<double> = 1;
template <>
constexpr int kCudaType<std::complex<float>> = 4;
template <>
constexpr int kCudaType<std::complex<double>> = 5;

// A factor in the GPU's memory.
struct GpuFactor {
  uint64_t number = 0;  // 0: it is not kept
  Gpu::Memory matrix;
  Gpu::Memory pivots;
};

// Describes the pivots of this rank's rows.
v1::Part PivotPart(const GridContext& grid, const LocalShape& shape, const v1::Range& ipiv) {
  return PivotPart(grid, ipiv, shape.n, shape.layout.block);
}

// All ranks enter the library together, or none: it would wait for a rank that lacks memory.
class CusolvermpEngine final : public Engine {
 public:
  CusolvermpEngine(const GridContext& grid, int device) : grid_(grid), gpu_(grid, device) {}

  std::string method() const override { return "cusolvermp"; }
  bool Accepts(const v1::Job& job) const override {
    return job.factor().on_gpus() || job.solve().on_gpus();
  }

  void Run(GroupMemory& memory, const v1::Job& job, v1::Result* result) override {
    if (job.has_factor()) {
      result->set_info(DispatchType(job.factor().a().dtype(), [&]<class T>(ElementType<T>) {
        return RunFactor<T>(memory, job.factor());
      }));
    } else {
      DispatchType(job.solve().lu().dtype(),
                   [&]<class T>(ElementType<T>) { RunSolve<T>(memory, job.solve()); });
    }
    grid_.FinishSends();
  }

  void Forget(uint64_t factor) override {
    std::erase_if(kept_, [factor](const GpuFactor& kept) { return kept.number == factor; });
  }

  uint64_t GpuBytes() const override { return gpu_.FreeBytes(); }

 private:
  // Frees kept factors, the least recently used ones first, if memory is short.
  Gpu::Memory Allocate(size_t bytes) {
    while (true) {
      if (std::optional<Gpu::Memory> memory = gpu_.Allocate(bytes)) return *std::move(memory);
      if (kept_.empty()) {
        throw OutOfMemory(gpu_.name() + " has " + std::to_string(gpu_.FreeBytes()) +
                          " bytes free, and the job needs " + std::to_string(bytes) +
                          " more. Use a group of more GPUs, or algorithm=scalapack");
      }
      kept_.pop_front();
    }
  }

  // Calls `allocate` on all ranks. If one lacks memory, all throw.
  template <class F>
  void Together(F allocate) {
    std::optional<OutOfMemory> error;
    try {
      allocate();
    } catch (const OutOfMemory& caught) {
      error = caught;
    }
    if (grid_.Least(error ? 0 : 1) == 1) return;
    grid_.FinishSends();
    throw error.value_or(OutOfMemory(""));
  }

  GpuFactor AllocateFactor(const LocalShape& shape) {
    GpuFactor factor;
    factor.matrix = Allocate(shape.MatrixBytes());
    factor.pivots = Allocate(shape.PivotCount() * sizeof(int64_t));
    return factor;
  }

  Gpu::Memory AllocateWork(size_t device_bytes, size_t host_bytes) {
    if (host_bytes > static_cast<size_t>(GpuLayout::kLibraryBytes)) {
      throw OutOfMemory("cuSOLVERMp needs " + std::to_string(host_bytes) +
                        " bytes of host memory; the limit is " +
                        std::to_string(GpuLayout::kLibraryBytes));
    }
    return Allocate(std::max<size_t>(1, device_bytes));
  }

  // Waits for the library, and returns the info of LAPACK.
  int ReadInfo(const Gpu::Memory& info) const {
    int value = 0;
    gpu_.CopyToHost(&value, info.get(), sizeof value);
    gpu_.Synchronize();
    if (value < 0) {
      throw LibraryFailure(gpu_.name() + ": cuSOLVERMp refused argument " + std::to_string(-value));
    }
    return value;
  }

  template <class T>
  int64_t RunFactor(GroupMemory& memory, const v1::Factor& job) {
    const v1::Matrix& a = job.a();
    if (a.rows() != a.cols()) Refuse("the matrix is not square");
    const LocalShape shape(grid_, a.rows(), sizeof(T));
    memory.Check(MatrixPart(a, sizeof(T)));
    const v1::Part pivots_part = PivotPart(grid_, shape, job.ipiv());
    memory.Check(pivots_part);
    const Staging staging(grid_, gpu_, memory, job.workspace(), shape.layout);
    GpuFactor local;
    Gpu::Memory info, work;
    Together([&] {
      local = AllocateFactor(shape);
      info = Allocate(sizeof(int));
    });
    auto* const pivots = static_cast<int64_t*>(local.pivots.get());
    const Gpu::Descriptor descriptor =
        gpu_.Describe(kCudaType<T>, shape.n, shape.n, shape.layout.block, shape.ld);
    size_t device_bytes = 0;
    size_t host_bytes = 0;
    gpu_.CheckSolver(gpu_.solver().getrf_sizes(gpu_.handle(), shape.n, shape.n, local.matrix.get(),
                                               1, 1, descriptor.get(), pivots, kCudaType<T>,
                                               &device_bytes, &host_bytes),
                     "cusolverMpGetrf_bufferSize");
    Together([&] { work = AllocateWork(device_bytes, host_bytes); });
    CopyBlocksToGpu(grid_, gpu_, memory, staging, shape, a, local.matrix.get());
    gpu_.CheckSolver(
        gpu_.solver().getrf(gpu_.handle(), shape.n, shape.n, local.matrix.get(), 1, 1,
                            descriptor.get(), pivots, kCudaType<T>, work.get(), device_bytes,
                            staging.for_library(), host_bytes, static_cast<int*>(info.get())),
        "cusolverMpGetrf");
    const int zero_pivot = ReadInfo(info);
    CopyBlocksToHost(grid_, gpu_, memory, staging, shape, a, local.matrix.get());
    if (grid_.col() == 0 && shape.rows > 0) {
      std::vector<int64_t> ipiv(shape.rows);
      gpu_.CopyToHost(ipiv.data(), pivots, ipiv.size() * sizeof(int64_t));
      gpu_.Synchronize();
      memory.Write(pivots_part, ipiv.data());
    }
    // The first zero pivot, even if not all ranks have it.
    const int first = grid_.Least(zero_pivot > 0 ? zero_pivot : INT_MAX);
    return first == INT_MAX ? 0 : first;
  }

  // Returns the kept factor with this number, which is then not kept; nothing if there is none.
  std::optional<GpuFactor> Take(uint64_t number) {
    for (auto kept = kept_.begin(); number != 0 && kept != kept_.end(); ++kept) {
      if (kept->number != number) continue;
      GpuFactor factor = std::move(*kept);
      kept_.erase(kept);
      return factor;
    }
    return std::nullopt;
  }

  void Load(GroupMemory& memory, const Staging& staging, const LocalShape& shape,
            const v1::Solve& job, GpuFactor* factor) {
    CopyBlocksToGpu(grid_, gpu_, memory, staging, shape, job.lu(), factor->matrix.get());
    std::vector<int64_t> ipiv(shape.PivotCount());
    if (shape.rows > 0) memory.Read(PivotPart(grid_, shape, job.ipiv()), ipiv.data());
    gpu_.CopyToGpu(factor->pivots.get(), ipiv.data(), ipiv.size() * sizeof(int64_t));
    gpu_.Synchronize();
    factor->number = job.factor();
  }

  // The library solves one column. The columns lie on the first process column.
  template <class T>
  void RunSolve(GroupMemory& memory, const v1::Solve& job) {
    const v1::Matrix& lu = job.lu();
    const v1::Matrix& b = job.b();
    if (lu.rows() != lu.cols() || b.rows() != lu.rows()) {
      Refuse("the shapes of factor and columns differ");
    }
    if (b.dtype() != lu.dtype()) Refuse("the types of factor and columns differ");
    if (job.op() != v1::OP_NONE) Refuse("cuSOLVERMp solves no transposed systems");
    const LocalShape shape(grid_, lu.rows(), sizeof(T));
    memory.Check(MatrixPart(lu, sizeof(T)));
    memory.Check(MatrixPart(b, sizeof(T)));
    memory.Check(PivotPart(grid_, shape, job.ipiv()));
    const Staging staging(grid_, gpu_, memory, job.workspace(), shape.layout);
    std::optional<GpuFactor> factor = Take(job.factor());
    const bool has_factor = factor.has_value();
    const int64_t most_cols = std::min(shape.layout.block, b.cols());
    const size_t column_bytes = shape.ld * sizeof(T);
    Gpu::Memory columns, info, work;
    Together([&] {
      if (!has_factor) factor = AllocateFactor(shape);
      columns = Allocate(most_cols * column_bytes);
      info = Allocate(sizeof(int));
    });
    const Gpu::Descriptor descriptor =
        gpu_.Describe(kCudaType<T>, shape.n, shape.n, shape.layout.block, shape.ld);
    const Gpu::Descriptor descriptor_b =
        gpu_.Describe(kCudaType<T>, shape.n, 1, shape.layout.block, shape.ld);
    auto* const pivots = static_cast<int64_t*>(factor->pivots.get());
    size_t device_bytes = 0;
    size_t host_bytes = 0;
    gpu_.CheckSolver(
        gpu_.solver().getrs_sizes(gpu_.handle(), kNoTranspose, shape.n, 1, factor->matrix.get(), 1,
                                  1, descriptor.get(), pivots, columns.get(), 1, 1,
                                  descriptor_b.get(), kCudaType<T>, &device_bytes, &host_bytes),
        "cusolverMpGetrs_bufferSize");
    Together([&] { work = AllocateWork(device_bytes, host_bytes); });
    if (!has_factor) Load(memory, staging, shape, job, &*factor);

    const bool has_columns = grid_.col() == 0 && shape.rows > 0;
    for (int64_t first = 0; first < b.cols(); first += most_cols) {
      const int64_t count = std::min(most_cols, b.cols() - first);
      const v1::Part part = RowsOf(grid_, shape, b, first, count);
      if (has_columns) {
        memory.Read(part, staging.half(0));
        gpu_.CopyToGpu(columns.get(), staging.half(0), count * column_bytes);
      }
      for (int64_t j = 0; j < count; ++j) {
        gpu_.CheckSolver(
            gpu_.solver().getrs(gpu_.handle(), kNoTranspose, shape.n, 1, factor->matrix.get(), 1, 1,
                                descriptor.get(), pivots,
                                static_cast<std::byte*>(columns.get()) + j * column_bytes, 1, 1,
                                descriptor_b.get(), kCudaType<T>, work.get(), device_bytes,
                                staging.for_library(), host_bytes, static_cast<int*>(info.get())),
            "cusolverMpGetrs");
        ReadInfo(info);
      }
      if (!has_columns) continue;
      gpu_.CopyToHost(staging.half(0), columns.get(), count * column_bytes);
      gpu_.Synchronize();
      memory.Write(part, staging.half(0));
    }
    if (factor->number != 0) kept_.push_back(*std::move(factor));
  }

  const GridContext& grid_;
  const Gpu gpu_;
  std::list<GpuFactor> kept_;  // least recently used first
};

}  // namespace

std::unique_ptr<Engine> MakeCusolvermpEngine(const GridContext& grid, int device) {
  return std::make_unique<CusolvermpEngine>(grid, device);
}

}  // namespace crout::rank
