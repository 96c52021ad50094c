// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/int8_product/modular_product.h"

#include <algorithm>

#include "tests/bench/int8_product/cuda_check.h"

namespace crout::int8_product {
namespace {

constexpr int kStages = 4;
constexpr int kColumnBytes = kTileColumns * kTileInner;  // operand of the block alone
constexpr int kRowBytes = kTileRows * kTileInner;        // operand that all blocks read
constexpr int kStageBytes = kColumnBytes + kRowBytes;
constexpr int kConsumerWarps = 8;
constexpr int kThreads = 128 + 32 * kConsumerWarps;
constexpr int kAlignment = 1024;  // required by the swizzle of the operands
constexpr int kSharedBytes = kStages * kStageBytes + kAlignment;
constexpr int kGroupedColumns = 16;  // columns of tiles that are computed row by row

__device__ inline uint32_t SharedAddress(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ inline uint32_t ClusterRank() {
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ inline void SynchronizeCluster() {
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

__device__ inline void InitBarrier(uint32_t barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

__device__ inline void ExpectBytes(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

__device__ inline void WaitBarrier(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra finished;\n"
      "bra again;\n"
      "finished:\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// Arrives at the barrier with this address in block `rank` of the cluster.
__device__ inline void ArriveInCluster(uint32_t barrier, uint32_t rank) {
  asm volatile(
      "{\n.reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n}" ::"r"(barrier),
      "r"(rank)
      : "memory");
}

__device__ inline void LoadTile(uint32_t target, const CUtensorMap& map, uint32_t barrier,
                                int inner, int row, int plane) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(target),
      "l"(&map), "r"(barrier), "r"(inner), "r"(row), "r"(plane)
      : "memory");
}

// Loads a tile into all blocks of the cluster, and reports it to a barrier of each.
__device__ inline void LoadTileInCluster(uint32_t target, const CUtensorMap& map, uint32_t barrier,
                                         int inner, int row, int plane, uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(target),
      "l"(&map), "r"(barrier), "r"(inner), "r"(row), "r"(plane), "h"(blocks)
      : "memory");
}

// Returns the descriptor of an operand whose rows are 128 bytes long, with the swizzle of 128
// bytes.
__device__ inline uint64_t OperandDescriptor(uint32_t address) {
  constexpr uint64_t kEightRows = 1024 / 16;
  constexpr uint64_t kSwizzle128 = 1;
  return (address & 0x3ffff) >> 4 | uint64_t{1} << 16 | kEightRows << 32 | kSwizzle128 << 62;
}

__device__ inline void FenceAccumulators() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ inline void CommitProducts() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int kPending>
__device__ inline void WaitForProducts() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// Accumulates 64 x 256 products of 32 inner elements; starts at 0 unless `accumulate`.
__device__ inline void MultiplyAccumulate(int32_t (&d)[128], uint64_t columns, uint64_t rows,
                                          int accumulate) {
  // clang-format off
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
      "%128, %129, p;\n}\n"
      :
        "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]), "+r"(d[4]), "+r"(d[5]), "+r"(d[6]), "+r"(d[7]),
        "+r"(d[8]), "+r"(d[9]), "+r"(d[10]), "+r"(d[11]), "+r"(d[12]), "+r"(d[13]), "+r"(d[14]), "+r"(d[15]),
        "+r"(d[16]), "+r"(d[17]), "+r"(d[18]), "+r"(d[19]), "+r"(d[20]), "+r"(d[21]), "+r"(d[22]), "+r"(d[23]),
        "+r"(d[24]), "+r"(d[25]), "+r"(d[26]), "+r"(d[27]), "+r"(d[28]), "+r"(d[29]), "+r"(d[30]), "+r"(d[31]),
        "+r"(d[32]), "+r"(d[33]), "+r"(d[34]), "+r"(d[35]), "+r"(d[36]), "+r"(d[37]), "+r"(d[38]), "+r"(d[39]),
        "+r"(d[40]), "+r"(d[41]), "+r"(d[42]), "+r"(d[43]), "+r"(d[44]), "+r"(d[45]), "+r"(d[46]), "+r"(d[47]),
        "+r"(d[48]), "+r"(d[49]), "+r"(d[50]), "+r"(d[51]), "+r"(d[52]), "+r"(d[53]), "+r"(d[54]), "+r"(d[55]),
        "+r"(d[56]), "+r"(d[57]), "+r"(d[58]), "+r"(d[59]), "+r"(d[60]), "+r"(d[61]), "+r"(d[62]), "+r"(d[63]),
        "+r"(d[64]), "+r"(d[65]), "+r"(d[66]), "+r"(d[67]), "+r"(d[68]), "+r"(d[69]), "+r"(d[70]), "+r"(d[71]),
        "+r"(d[72]), "+r"(d[73]), "+r"(d[74]), "+r"(d[75]), "+r"(d[76]), "+r"(d[77]), "+r"(d[78]), "+r"(d[79]),
        "+r"(d[80]), "+r"(d[81]), "+r"(d[82]), "+r"(d[83]), "+r"(d[84]), "+r"(d[85]), "+r"(d[86]), "+r"(d[87]),
        "+r"(d[88]), "+r"(d[89]), "+r"(d[90]), "+r"(d[91]), "+r"(d[92]), "+r"(d[93]), "+r"(d[94]), "+r"(d[95]),
        "+r"(d[96]), "+r"(d[97]), "+r"(d[98]), "+r"(d[99]), "+r"(d[100]), "+r"(d[101]), "+r"(d[102]), "+r"(d[103]),
        "+r"(d[104]), "+r"(d[105]), "+r"(d[106]), "+r"(d[107]), "+r"(d[108]), "+r"(d[109]), "+r"(d[110]), "+r"(d[111]),
        "+r"(d[112]), "+r"(d[113]), "+r"(d[114]), "+r"(d[115]), "+r"(d[116]), "+r"(d[117]), "+r"(d[118]), "+r"(d[119]),
        "+r"(d[120]), "+r"(d[121]), "+r"(d[122]), "+r"(d[123]), "+r"(d[124]), "+r"(d[125]), "+r"(d[126]), "+r"(d[127])
      : "l"(columns), "l"(rows), "r"(accumulate));
  // clang-format on
}

// The place of a tile of a cluster.
struct ClusterTile {
  int plane;
  int64_t row;     // in tiles
  int64_t column;  // in tiles of a cluster
};

template <int kCluster>
struct Grid {
  static constexpr int kGroup = kGroupedColumns / kCluster;

  int64_t rows;     // in tiles
  int64_t columns;  // in tiles of a cluster
  int planes;

  __device__ int64_t Count() const { return rows * columns * planes; }
  // Consecutive tiles are near each other in rows and columns, so that their operands stay in L2.
  __device__ ClusterTile At(int64_t index) const {
    const int64_t in_plane = index % (rows * columns);
    const int64_t group = in_plane / (rows * kGroup);
    const int64_t width = min(int64_t{kGroup}, columns - group * kGroup);
    const int64_t in_group = in_plane % (rows * kGroup);
    return {static_cast<int>(index / (rows * columns)), in_group / width,
            group * kGroup + in_group % width};
  }
};

// The stage of the ring of operands in shared memory, and the parity of its use.
struct RingPosition {
  int stage = 0;
  uint32_t parity = 0;

  __device__ void Advance() {
    if (++stage < kStages) return;
    stage = 0;
    parity ^= 1;
  }
};

// Barriers of the ring, each an array with an element for each stage.
struct RingBarriers {
  uint64_t full[kStages];
  uint64_t empty[kStages];
};

// Loads the operands of all tiles of this cluster.
template <int kCluster>
__device__ void Produce(const ModularOperands& operands, const Grid<kCluster>& grid, int64_t first,
                        uint32_t ring, RingBarriers& barriers) {
  const uint32_t rank = ClusterRank();
  RingPosition at;
  for (int64_t index = blockIdx.x / kCluster; index < grid.Count(); index += gridDim.x / kCluster) {
    const ClusterTile tile = grid.At(index);
    const auto column = static_cast<int>(first + (tile.column * kCluster + rank) * kTileColumns);
    const auto row = static_cast<int>(tile.row * kTileRows + rank * (kTileRows / kCluster));
    for (int inner = 0; inner < operands.inner; inner += kTileInner) {
      const uint32_t full = SharedAddress(&barriers.full[at.stage]);
      const uint32_t target = ring + at.stage * kStageBytes;
      WaitBarrier(SharedAddress(&barriers.empty[at.stage]), at.parity ^ 1);
      ExpectBytes(full, kStageBytes);
      LoadTile(target, operands.columns, full, inner, column, tile.plane);
      const uint32_t shared_target = target + kColumnBytes + rank * (kRowBytes / kCluster);
      if constexpr (kCluster == 1) {
        LoadTile(shared_target, operands.rows, full, inner, row, tile.plane);
      } else {
        LoadTileInCluster(shared_target, operands.rows, full, inner, row, tile.plane,
                          (1 << kCluster) - 1);
      }
      at.Advance();
    }
  }
}

// Stores the residues of one thread's 128 products.
__device__ inline void StoreResidues(const int32_t (&products)[128], int32_t p, int32_t reciprocal,
                                     uint4* target) {
#pragma unroll
  for (int i = 0; i < 128; i += 16) {
    uint32_t words[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int32_t* four = products + i + 4 * j;
      words[j] = PackResidues(
          SymmetricResidue(four[0], p, reciprocal), SymmetricResidue(four[1], p, reciprocal),
          SymmetricResidue(four[2], p, reciprocal), SymmetricResidue(four[3], p, reciprocal));
    }
    __stcs(target + i / 16 * 128, make_uint4(words[0], words[1], words[2], words[3]));
  }
}

// Computes the tiles of this cluster. A warpgroup computes 64 columns of a tile. The products of
// kPending stages are in flight when the consumer waits for the next stage.
template <int kCluster, int kPending>
__device__ void Consume(const ModularOperands& operands, const ResidueSystem& system,
                        const Grid<kCluster>& grid, uint32_t ring, RingBarriers& barriers,
                        uint4* residues) {
  const int warpgroup = threadIdx.x / 128 - 1;
  const int thread = threadIdx.x % 128;
  const int lane = threadIdx.x % 32;
  const uint32_t rank = ClusterRank();
  const auto release = [&](int stage) {
    if (lane < kCluster) ArriveInCluster(SharedAddress(&barriers.empty[stage]), lane);
    __syncwarp();
  };
  RingPosition at;
  int32_t products[128];
  for (int64_t index = blockIdx.x / kCluster; index < grid.Count(); index += gridDim.x / kCluster) {
    int previous = -1;
    for (int inner = 0; inner < operands.inner; inner += kTileInner) {
      WaitBarrier(SharedAddress(&barriers.full[at.stage]), at.parity);
      const uint32_t operand = ring + at.stage * kStageBytes;
      const uint64_t columns = OperandDescriptor(operand + warpgroup * (kColumnBytes / 2));
      const uint64_t rows = OperandDescriptor(operand + kColumnBytes);
      FenceAccumulators();
#pragma unroll
      for (int step = 0; step < kTileInner / 32; ++step) {
        MultiplyAccumulate(products, columns + 2 * step, rows + 2 * step, inner + step);
      }
      CommitProducts();
      if constexpr (kPending == 0) {
        WaitForProducts<0>();
        release(at.stage);
      } else {
        if (previous >= 0) {
          WaitForProducts<1>();
          release(previous);
        }
        previous = at.stage;
      }
      at.Advance();
    }
    if constexpr (kPending > 0) {
      WaitForProducts<0>();
      release(previous);
    }
    const ClusterTile tile = grid.At(index);
    const Modulus& modulus = system.moduli[tile.plane];
    const int64_t tile_index =
        (tile.plane * grid.columns * kCluster + tile.column * kCluster + rank) * grid.rows +
        tile.row;
    StoreResidues(products, modulus.p, modulus.reciprocal,
                  residues + tile_index * (kTileWords / 4) + warpgroup * (kTileWords / 8) + thread);
  }
}

template <int kCluster, int kPending>
__global__ void __launch_bounds__(kThreads, 1)
    ModularProductKernel(const __grid_constant__ ModularOperands operands,
                         const __grid_constant__ ResidueSystem system, Grid<kCluster> grid,
                         int64_t first, uint4* residues) {
  extern __shared__ uint8_t shared[];
  __shared__ RingBarriers barriers;
  const uint32_t ring = (SharedAddress(shared) + kAlignment - 1) / kAlignment * kAlignment;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      InitBarrier(SharedAddress(&barriers.full[stage]), 1);
      InitBarrier(SharedAddress(&barriers.empty[stage]), kCluster * kConsumerWarps);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  SynchronizeCluster();
  if (threadIdx.x >= 128) {
    Consume<kCluster, kPending>(operands, system, grid, ring, barriers, residues);
  } else if (threadIdx.x == 0) {
    Produce(operands, grid, first, ring, barriers);
  }
  __syncwarp();
  SynchronizeCluster();  // other blocks report to barriers of this one until then
}

using EncodeTiled = decltype(&cuTensorMapEncodeTiled);

EncodeTiled FindEncodeTiled() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  Require(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                           cudaEnableDefault, &found),
          "cudaGetDriverEntryPointByVersion");
  if (found != cudaDriverEntryPointSuccess) {
    std::fprintf(stderr, "The driver has no cuTensorMapEncodeTiled.\n");
    std::exit(1);
  }
  return reinterpret_cast<EncodeTiled>(function);
}

// Describes planes of `rows` rows of `inner` bytes, loaded in boxes of `box_rows` rows and 128
// bytes.
CUtensorMap DescribePlanes(const int8_t* data, int64_t rows, int inner, int planes, int box_rows) {
  static const EncodeTiled encode = FindEncodeTiled();
  CUtensorMap map;
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(inner), static_cast<cuuint64_t>(rows),
                              static_cast<cuuint64_t>(planes)};
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(inner),
                                static_cast<cuuint64_t>(inner) * static_cast<cuuint64_t>(rows)};
  const cuuint32_t box[] = {kTileInner, static_cast<cuuint32_t>(box_rows), 1};
  const cuuint32_t steps[] = {1, 1, 1};
  const CUresult result =
      encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 3, const_cast<int8_t*>(data), sizes, strides, box,
             steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result == CUDA_SUCCESS) return map;
  std::fprintf(stderr, "cuTensorMapEncodeTiled failed with code %d.\n", static_cast<int>(result));
  std::exit(1);
}

int ClusterOf(Schedule schedule) {
  switch (schedule) {
    case Schedule::kPairs:
    case Schedule::kPairsEarly:
      return 2;
    case Schedule::kQuadsEarly:
      return 4;
    case Schedule::kSinglesEarly:
      return 1;
  }
  return 1;
}

// Returns the number of clusters that run at the same time. A cluster that waits for another one to
// end would double the time.
template <class Kernel>
int CountResidentClusters(Kernel* kernel, const cudaLaunchConfig_t& config) {
  Require(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes),
          "cudaFuncSetAttribute");
  int clusters = 0;
  Require(cudaOccupancyMaxActiveClusters(&clusters, kernel, &config),
          "cudaOccupancyMaxActiveClusters");
  std::printf("clusters of %u blocks: %d\n", config.attrs[0].val.clusterDim.x, clusters);
  return clusters;
}

template <int kCluster, int kPending>
void Launch(const ModularOperands& operands, const ResidueSystem& system, int64_t first,
            int64_t columns, uint4* residues, cudaStream_t stream) {
  auto* const kernel = ModularProductKernel<kCluster, kPending>;
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {kCluster, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = kCluster;
  config.blockDim = kThreads;
  config.dynamicSmemBytes = kSharedBytes;
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = 1;
  static const int resident = CountResidentClusters(kernel, config);
  const Grid<kCluster> grid = {operands.row_count / kTileRows, columns / (kCluster * kTileColumns),
                               system.count};
  const int64_t tiles = grid.rows * grid.columns * grid.planes;
  config.gridDim = static_cast<unsigned>(kCluster * std::min<int64_t>(resident, tiles));
  Require(cudaLaunchKernelEx(&config, kernel, operands, system, grid, first, residues),
          "ModularProductKernel");
}

}  // namespace

ModularOperands MakeModularOperands(const int8_t* a, int64_t rows, const int8_t* b, int64_t columns,
                                    int inner, int moduli, Schedule schedule) {
  return {DescribePlanes(a, rows, inner, moduli, kTileRows / ClusterOf(schedule)),
          DescribePlanes(b, columns, inner, moduli, kTileColumns), rows, inner, schedule};
}

void ModularProduct(const ModularOperands& operands, const ResidueSystem& system, int64_t first,
                    int64_t columns, uint4* residues, cudaStream_t stream) {
  switch (operands.schedule) {
    case Schedule::kPairs:
      return Launch<2, 1>(operands, system, first, columns, residues, stream);
    case Schedule::kPairsEarly:
      return Launch<2, 0>(operands, system, first, columns, residues, stream);
    case Schedule::kQuadsEarly:
      return Launch<4, 0>(operands, system, first, columns, residues, stream);
    case Schedule::kSinglesEarly:
      return Launch<1, 0>(operands, system, first, columns, residues, stream);
  }
}

}  // namespace crout::int8_product
