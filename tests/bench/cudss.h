// NVIDIA's cuDSS, beside which sparse LU on a GPU is measured. Nothing is built or linked with it:
// its library is loaded where LD_LIBRARY_PATH or the system's directories have it.
#ifndef CROUT_TESTS_BENCH_CUDSS_H_
#define CROUT_TESTS_BENCH_CUDSS_H_

#include <library_types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/sparse_view.h"
#include "tests/bench/gpu_irr_bench.h"

namespace crout {

// The functions of cuDSS 1 that are wanted, by the types that its documentation gives them: opaque
// pointers, enumerations as int.
struct CudssFunctions {
  int (*create)(void** handle);
  int (*destroy)(void* handle);
  int (*set_threading_layer)(void* handle, const char* library);
  int (*get_property)(int property, int* value);
  int (*config_create)(void** config);
  int (*config_destroy)(void* config);
  int (*config_set)(void* config, int parameter, const void* value, size_t bytes);
  int (*data_create)(void* handle, void** data);
  int (*data_destroy)(void* handle, void* data);
  int (*data_get)(void* handle, void* data, int parameter, void* value, size_t bytes,
                  size_t* written);
  int (*matrix_create_csr)(void** matrix, int64_t rows, int64_t columns, int64_t nonzeros,
                           const void* row_start, const void* row_end, const void* column,
                           const void* value, cudaDataType_t offset_type, cudaDataType_t index_type,
                           cudaDataType_t value_type, int kind, int view, int base);
  int (*matrix_create_dense)(void** matrix, int64_t rows, int64_t columns, int64_t ld,
                             const void* value, cudaDataType_t value_type, int layout);
  int (*matrix_destroy)(void* matrix);
  int (*execute)(void* handle, int phase, void* config, void* data, void* a, void* x, void* b);
};

// The library on the current GPU.
class Cudss {
 public:
  // NOT_FOUND: there is no libcudss.so.1, or it lacks a function.
  static absl::StatusOr<std::unique_ptr<Cudss>> Load();
  ~Cudss();
  Cudss(const Cudss&) = delete;
  Cudss& operator=(const Cudss&) = delete;

  // Its version, and how its analysis runs: "cuDSS 1.0.0, with its threading layer".
  const std::string& description() const { return description_; }

 private:
  friend class CudssSolver;
  Cudss() = default;
  absl::Status Initialize();

  CudssFunctions functions_ = {};
  void* handle_ = nullptr;
  std::string description_;
};

// One system in the GPU's memory, with LU for a general matrix and without refinement. Each call
// blocks until the GPU is done.
class CudssSolver {
 public:
  // a: float64, in host memory. b: n x its columns, column-major, of which X is found.
  // `deterministic`: the same bits each time, as ours, which is not its default; then it takes one
  // right-hand side at a time.
  static absl::StatusOr<std::unique_ptr<CudssSolver>> Make(const Cudss& cudss, const AnySparse& a,
                                                           const std::vector<double>& b,
                                                           bool deterministic);
  ~CudssSolver();
  CudssSolver(const CudssSolver&) = delete;
  CudssSolver& operator=(const CudssSolver&) = delete;

  // Ordering and symbolic factorization, of which nothing is kept from an earlier one.
  absl::Status Analyze();
  absl::Status Factor();
  // With what the last factorization found, as for new values on the same pattern.
  absl::Status Refactor();
  // Of the first column of b, or of all of them.
  absl::Status SolveOne();
  absl::Status SolveAll();
  // Other values for the first column of b.
  void SetFirst(const std::vector<double>& b);
  std::vector<double> X() const { return x_.Download(); }

  // Entries of L and U.
  absl::StatusOr<int64_t> LuEntries() const;
  // Pivots that were too small and were made larger.
  absl::StatusOr<int64_t> PerturbedPivots() const;

 private:
  CudssSolver(const Cudss& cudss, const AnySparse& a, const std::vector<double>& b);
  absl::Status Describe(bool deterministic);
  absl::Status NewData();
  absl::Status Execute(int phase, void* x, void* b);
  absl::StatusOr<int64_t> Get(int parameter) const;

  const Cudss& cudss_;
  const int64_t n_;
  const int64_t nonzeros_;
  const int64_t columns_;  // of b
  // By rows.
  DeviceArray<int64_t> row_start_;
  DeviceArray<int32_t> column_;
  DeviceArray<double> value_;
  DeviceArray<double> b_, x_;
  void* config_ = nullptr;
  void* data_ = nullptr;
  void* a_matrix_ = nullptr;
  void* b_first_ = nullptr;
  void* x_first_ = nullptr;
  void* b_all_ = nullptr;
  void* x_all_ = nullptr;
};

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_CUDSS_H_
