// SPDX-License-Identifier: Apache-2.0

// C := C - A B for float64 matrices by products of int8 residues.
#ifndef CROUT_TESTS_BENCH_INT8_PRODUCT_INT8_PRODUCT_H_
#define CROUT_TESTS_BENCH_INT8_PRODUCT_INT8_PRODUCT_H_

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

#include "tests/bench/int8_product/cuda_check.h"
#include "tests/bench/int8_product/modular_product.h"
#include "tests/bench/int8_product/residue_system.h"

namespace crout::int8_product {

enum class Multiplication {
  kLibrary,  // int32 products by cuBLAS, reduced by a kernel
  kFused,    // ModularProduct()
};

// The order of the matrices: C is rows x columns, A is rows x inner. The columns of C are computed
// `slab` at a time, so that int32 products of a narrow slab remain in the L2 cache.
struct Shape {
  int64_t rows;
  int64_t columns;
  int inner;
  int64_t slab;
};

// Column-major matrices without gaps between the columns.
struct Operands {
  const double* a;
  const double* b;
  double* c;
};

enum Stage { kScale, kMultiply, kReduce, kReconstruct, kStages };

// Events around the stages of one product.
class StageEvents {
 public:
  StageEvents() = default;
  StageEvents(const StageEvents&) = delete;
  StageEvents& operator=(const StageEvents&) = delete;
  ~StageEvents();

  // Ends `stage` here; the next one starts.
  void Mark(Stage stage, cudaStream_t stream);
  void Start(cudaStream_t stream);
  // Returns the milliseconds of each stage since Start(), after the stream has finished.
  std::vector<float> Milliseconds() const;

 private:
  void Record(cudaStream_t stream);

  std::vector<cudaEvent_t> events_;
  std::vector<Stage> stages_;
  size_t used_ = 0;
};

class Int8Product {
 public:
  // rows are a multiple of kTileRows; columns, and the slab that divides them, of
  // kMaxClusterColumns; inner is a multiple of kTileInner, at most kMaxInner. `schedule` is that of
  // kFused.
  Int8Product(const Shape& shape, int moduli, Multiplication multiplication,
              Schedule schedule = Schedule::kPairs);

  // Enqueues C := C - A B.
  void Enqueue(const Operands& operands, cublasHandle_t library, cudaStream_t stream,
               StageEvents& events);

 private:
  void MultiplyByLibrary(int64_t first, cublasHandle_t library, cudaStream_t stream,
                         StageEvents& events);

  Shape shape_;
  ResidueSystem system_;
  Multiplication multiplication_;
  DeviceArray<int> row_exponents_;
  DeviceArray<int> column_exponents_;
  DeviceArray<int8_t> a_;
  DeviceArray<int8_t> b_;
  DeviceArray<int32_t> products_;
  DeviceArray<uint4> residues_;
  ModularOperands fused_;
};

}  // namespace crout::int8_product

#endif  // CROUT_TESTS_BENCH_INT8_PRODUCT_INT8_PRODUCT_H_
