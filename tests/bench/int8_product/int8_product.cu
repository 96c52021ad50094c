// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/int8_product/int8_product.h"

namespace crout::int8_product {
namespace {

constexpr int kThreads = 256;
constexpr int kLanes = 32;
constexpr int kWarps = kThreads / kLanes;

unsigned BlocksFor(int64_t work) { return static_cast<unsigned>((work + kThreads - 1) / kThreads); }

// Computes the exponents of kLanes rows of A. A warp adds the squares of every kLanes-th column.
__global__ void RowExponentsKernel(const double* a, int64_t rows, int inner, double norm_bits,
                                   int* exponents) {
  __shared__ double sums[kLanes][kLanes + 1];
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kLanes + threadIdx.x;
  double sum = 0;
  for (int column = threadIdx.y; column < inner; column += kLanes) {
    const double x = a[column * rows + row];
    sum = fma(x, x, sum);
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0) return;
  for (int i = 1; i < kLanes; ++i) sum += sums[i][threadIdx.x];
  exponents[row] = ScalingExponent(sum, norm_bits);
}

// Computes the exponent of a column of B in each warp.
__global__ void ColumnExponentsKernel(const double* b, int64_t columns, int inner, double norm_bits,
                                      int* exponents) {
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kLanes;
  if (column >= columns) return;
  const int lane = threadIdx.x % kLanes;
  double sum = 0;
  for (int i = lane; i < inner; i += kLanes) {
    const double x = b[column * inner + i];
    sum = fma(x, x, sum);
  }
  for (int step = kLanes / 2; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (lane == 0) exponents[column] = ScalingExponent(sum, norm_bits);
}

// Stores the residues of four elements of a row in all planes of `plane_words` words.
__device__ inline void StoreWords(const double (&elements)[4], int exponent,
                                  const ResidueSystem& system, int64_t plane_words,
                                  uint32_t* target) {
  const double scale = PowerOfTwo(exponent);
  int32_t digits[4][kDigits];
#pragma unroll
  for (int i = 0; i < 4; ++i) SplitDigits(elements[i] * scale, digits[i]);
  for (int i = 0; i < system.count; ++i) {
    const Modulus& m = system.moduli[i];
    target[i * plane_words] =
        PackResidues(ResidueOfDigits(digits[0], m), ResidueOfDigits(digits[1], m),
                     ResidueOfDigits(digits[2], m), ResidueOfDigits(digits[3], m));
  }
}

constexpr int kTransposed = 128;  // columns of A that a block transposes

// Stores the residues of kLanes rows and kTransposed columns of A, row by row.
__global__ void RowResiduesKernel(const double* a, int64_t rows, int inner, const int* exponents,
                                  const __grid_constant__ ResidueSystem system,
                                  uint32_t* residues) {
  __shared__ double tile[kLanes][kTransposed + 1];
  const int lane = threadIdx.x % kLanes;
  const int warp = threadIdx.x / kLanes;
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * kLanes;
  const int first_column = blockIdx.y * kTransposed;
  for (int column = warp; column < kTransposed; column += kWarps) {
    tile[lane][column] = a[(first_column + column) * rows + first_row + lane];
  }
  __syncthreads();
  for (int row = warp; row < kLanes; row += kWarps) {
    double elements[4];
    for (int i = 0; i < 4; ++i) elements[i] = tile[row][4 * lane + i];
    StoreWords(elements, exponents[first_row + row], system, rows * inner / 4,
               residues + ((first_row + row) * inner + first_column) / 4 + lane);
  }
}

// Stores the residues of B, column by column.
__global__ void ColumnResiduesKernel(const double* b, int64_t columns, int inner,
                                     const int* exponents,
                                     const __grid_constant__ ResidueSystem system,
                                     uint32_t* residues) {
  const int64_t word = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t words = columns * inner / 4;
  if (word >= words) return;
  const auto* pairs = reinterpret_cast<const double2*>(b) + 2 * word;
  const double2 low = pairs[0];
  const double2 high = pairs[1];
  StoreWords({low.x, low.y, high.x, high.y}, exponents[word / (inner / 4)], system, words,
             residues + word);
}

// Reduces int32 products modulo one modulus.
__global__ void ReduceKernel(const int4* products, int64_t words, Modulus modulus,
                             uint32_t* residues) {
  const int64_t word = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (word >= words) return;
  const int4 four = products[word];
  residues[word] = PackResidues(SymmetricResidue(four.x, modulus.p, modulus.reciprocal),
                                SymmetricResidue(four.y, modulus.p, modulus.reciprocal),
                                SymmetricResidue(four.z, modulus.p, modulus.reciprocal),
                                SymmetricResidue(four.w, modulus.p, modulus.reciprocal));
}

// The places of the elements of a word: those of the first two, and those of the other two.
struct WordPlaces {
  int64_t row[2];
  int64_t column[2];
};

__device__ inline WordPlaces PlacesInColumns(int64_t word, int64_t rows) {
  const int64_t row = word % (rows / 4) * 4;
  const int64_t column = word / (rows / 4);
  return {{row, row + 2}, {column, column}};
}

__device__ inline WordPlaces PlacesInFragments(int64_t word, int64_t rows) {
  const FragmentPlace place = PlaceOfWord(word, rows);
  return {{place.row, place.row}, {place.column, place.column + 8}};
}

// Subtracts products from C, given their residues. A thread reconstructs the elements of a word.
template <int kCount, bool kFragments>
__global__ void ReconstructKernel(const uint32_t* residues, int64_t rows, int64_t columns,
                                  const int* row_exponents, const int* column_exponents,
                                  const __grid_constant__ ResidueSystem system, double* c) {
  const int64_t word = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t words = rows * columns / 4;
  if (word >= words) return;
  uint32_t packed[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) packed[i] = __ldcs(residues + i * words + word);
  const WordPlaces places =
      kFragments ? PlacesInFragments(word, rows) : PlacesInColumns(word, rows);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    Reconstruction sums[2];
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      sums[0].Add(system, i, UnpackResidue(packed[i], 2 * half));
      sums[1].Add(system, i, UnpackResidue(packed[i], 2 * half + 1));
    }
    const int64_t row = places.row[half];
    const int64_t column = places.column[half];
    const int2 row_exponent = *reinterpret_cast<const int2*>(row_exponents + row);
    const double column_scale = PowerOfTwo(-column_exponents[column]);
    auto* target = reinterpret_cast<double2*>(c + column * rows + row);
    double2 pair = *target;
    pair.x -= sums[0].Value(system) * PowerOfTwo(-row_exponent.x) * column_scale;
    pair.y -= sums[1].Value(system) * PowerOfTwo(-row_exponent.y) * column_scale;
    *target = pair;
  }
}

template <bool kFragments, int kCount = kMinModuli>
void Reconstruct(const uint32_t* residues, int64_t rows, int64_t columns, const int* row_exponents,
                 const int* column_exponents, const ResidueSystem& system, double* c,
                 cudaStream_t stream) {
  if constexpr (kCount < kMaxModuli) {
    if (system.count > kCount) {
      Reconstruct<kFragments, kCount + 1>(residues, rows, columns, row_exponents, column_exponents,
                                          system, c, stream);
      return;
    }
  }
  ReconstructKernel<kCount, kFragments><<<BlocksFor(rows * columns / 4), kThreads, 0, stream>>>(
      residues, rows, columns, row_exponents, column_exponents, system, c);
  Require(cudaGetLastError(), "ReconstructKernel");
}

}  // namespace

StageEvents::~StageEvents() {
  for (const cudaEvent_t event : events_) cudaEventDestroy(event);
}

void StageEvents::Record(cudaStream_t stream) {
  if (used_ == events_.size()) {
    events_.emplace_back();
    Require(cudaEventCreate(&events_.back()), "cudaEventCreate");
  }
  Require(cudaEventRecord(events_[used_++], stream), "cudaEventRecord");
}

void StageEvents::Start(cudaStream_t stream) {
  used_ = 0;
  stages_.clear();
  Record(stream);
}

void StageEvents::Mark(Stage stage, cudaStream_t stream) {
  Record(stream);
  stages_.push_back(stage);
}

std::vector<float> StageEvents::Milliseconds() const {
  std::vector<float> result(kStages);
  for (size_t i = 0; i < stages_.size(); ++i) {
    float milliseconds = 0;
    Require(cudaEventElapsedTime(&milliseconds, events_[i], events_[i + 1]),
            "cudaEventElapsedTime");
    result[stages_[i]] += milliseconds;
  }
  return result;
}

Int8Product::Int8Product(const Shape& shape, int moduli, Multiplication multiplication,
                         Schedule schedule)
    : shape_(shape),
      system_(MakeResidueSystem(moduli)),
      multiplication_(multiplication),
      row_exponents_(shape.rows),
      column_exponents_(shape.columns),
      a_(moduli * shape.rows * shape.inner),
      b_(moduli * shape.columns * shape.inner),
      products_(multiplication == Multiplication::kLibrary ? shape.rows * shape.slab : 0),
      residues_(moduli * shape.rows * shape.slab / sizeof(uint4)),
      fused_(MakeModularOperands(a_.get(), shape.rows, b_.get(), shape.columns, shape.inner, moduli,
                                 schedule)) {}

void Int8Product::MultiplyByLibrary(int64_t first, cublasHandle_t library, cudaStream_t stream,
                                    StageEvents& events) {
  const auto [rows, columns, inner, slab] = shape_;
  const int32_t one = 1;
  const int32_t zero = 0;
  const int64_t words = rows * slab / 4;
  for (int i = 0; i < system_.count; ++i) {
    Require(cublasGemmEx(library, CUBLAS_OP_T, CUBLAS_OP_N, static_cast<int>(rows),
                         static_cast<int>(slab), inner, &one, a_.get() + i * rows * inner,
                         CUDA_R_8I, inner, b_.get() + (i * columns + first) * inner, CUDA_R_8I,
                         inner, &zero, products_.get(), CUDA_R_32I, static_cast<int>(rows),
                         CUBLAS_COMPUTE_32I, CUBLAS_GEMM_DEFAULT),
            "cublasGemmEx");
    events.Mark(kMultiply, stream);
    ReduceKernel<<<BlocksFor(words), kThreads, 0, stream>>>(
        reinterpret_cast<const int4*>(products_.get()), words, system_.moduli[i],
        reinterpret_cast<uint32_t*>(residues_.get()) + i * words);
    Require(cudaGetLastError(), "ReduceKernel");
    events.Mark(kReduce, stream);
  }
}

void Int8Product::Enqueue(const Operands& operands, cublasHandle_t library, cudaStream_t stream,
                          StageEvents& events) {
  const auto [rows, columns, inner, slab] = shape_;
  events.Start(stream);
  RowExponentsKernel<<<static_cast<unsigned>(rows / kLanes), dim3(kLanes, kLanes), 0, stream>>>(
      operands.a, rows, inner, system_.norm_bits, row_exponents_.get());
  ColumnExponentsKernel<<<static_cast<unsigned>((columns + kWarps - 1) / kWarps), kThreads, 0,
                          stream>>>(operands.b, columns, inner, system_.norm_bits,
                                    column_exponents_.get());
  const dim3 blocks(static_cast<unsigned>(rows / kLanes),
                    static_cast<unsigned>(inner / kTransposed));
  RowResiduesKernel<<<blocks, kThreads, 0, stream>>>(operands.a, rows, inner, row_exponents_.get(),
                                                     system_,
                                                     reinterpret_cast<uint32_t*>(a_.get()));
  ColumnResiduesKernel<<<BlocksFor(columns * inner / 4), kThreads, 0, stream>>>(
      operands.b, columns, inner, column_exponents_.get(), system_,
      reinterpret_cast<uint32_t*>(b_.get()));
  Require(cudaGetLastError(), "kernels of the residues of A and B");
  events.Mark(kScale, stream);
  for (int64_t first = 0; first < columns; first += slab) {
    const auto* residues = reinterpret_cast<const uint32_t*>(residues_.get());
    double* c = operands.c + first * rows;
    const int* column_exponents = column_exponents_.get() + first;
    if (multiplication_ == Multiplication::kLibrary) {
      MultiplyByLibrary(first, library, stream, events);
      Reconstruct<false>(residues, rows, slab, row_exponents_.get(), column_exponents, system_, c,
                         stream);
    } else {
      ModularProduct(fused_, system_, first, slab, residues_.get(), stream);
      events.Mark(kMultiply, stream);
      Reconstruct<true>(residues, rows, slab, row_exponents_.get(), column_exponents, system_, c,
                        stream);
    }
    events.Mark(kReconstruct, stream);
  }
}

}  // namespace crout::int8_product
