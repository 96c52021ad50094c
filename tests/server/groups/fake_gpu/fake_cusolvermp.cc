// SPDX-License-Identifier: Apache-2.0

// A fake cuSOLVERMp: checks calls, gathers the matrix in shared memory, and computes with it in
// rank 0 as LAPACK does.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <utility>

#include "tests/server/groups/fake_gpu/fake_gpu.h"

namespace {

using namespace crout::fake_gpu;

constexpr int kInvalidValue = 3;
constexpr size_t kHostWork = 4096;

struct Handle {
  void* stream = nullptr;
};

struct Grid {
  const Communicator* communicator = nullptr;
  int rows = 0;
  int cols = 0;
  int row() const { return communicator->rank / cols; }
  int col() const { return communicator->rank % cols; }
};

int64_t CountOf(int64_t count, int64_t block, int process, int processes) {
  int64_t local = 0;
  for (int64_t first = process * block; first < count; first += block * processes) {
    local += std::min(block, count - first);
  }
  return local;
}
int64_t ToGlobal(int64_t local, int64_t block, int process, int processes) {
  return (local / block * processes + process) * block + local % block;
}

struct Descriptor {
  const Grid* grid = nullptr;
  int type = 0;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t block = 0;
  int64_t ld = 0;

  int64_t local_rows() const { return CountOf(rows, block, grid->row(), grid->rows); }
  int64_t local_cols() const { return CountOf(cols, block, grid->col(), grid->cols); }
  size_t bytes(size_t element) const { return ld * local_cols() * element; }
};

template <class F>
int Dispatch(int type, F f) {
  switch (type) {
    case 0:
      return f(float());
    case 1:
      return f(double());
    case 4:
      return f(std::complex<float>());
    case 5:
      return f(std::complex<double>());
    default:
      return Require(false, "a known cudaDataType") ? 0 : kInvalidValue;
  }
}

size_t ElementBytes(int type) {
  size_t bytes = 0;
  Dispatch(type, [&](auto zero) {
    bytes = sizeof zero;
    return 0;
  });
  return bytes;
}

// Calls f(local element, global row, global column) for the blocks of this process.
template <class T, class F>
void ForBlocks(const Descriptor& d, T* local, F f) {
  for (int64_t j = 0; j < d.local_cols(); ++j) {
    for (int64_t i = 0; i < d.local_rows(); ++i) {
      f(local[i + j * d.ld], ToGlobal(i, d.block, d.grid->row(), d.grid->rows),
        ToGlobal(j, d.block, d.grid->col(), d.grid->cols));
    }
  }
}

// The shared block: pivots, info, a matrix and a column.
template <class T>
struct Shared {
  Shared(const Communicator& c, int64_t order)
      : n(order),
        ipiv(reinterpret_cast<int64_t*>(c.shared->data)),
        info(ipiv + n),
        a(reinterpret_cast<T*>(info + 1)),
        b(a + n * n) {}

  bool Fits() const {
    return static_cast<size_t>(n * n + n) * sizeof(T) + (n + 1) * sizeof(int64_t) <=
           SharedBlock::kDataBytes;
  }

  void Factor() const {
    *info = 0;
    for (int64_t k = 0; k < n; ++k) {
      const auto size = [&](int64_t i) { return std::abs(a[i + k * n]); };
      int64_t pivot = k;
      for (int64_t i = k + 1; i < n; ++i) {
        if (size(i) > size(pivot)) pivot = i;
      }
      ipiv[k] = pivot + 1;
      if (size(pivot) == 0) {
        if (*info == 0) *info = k + 1;
        continue;
      }
      for (int64_t j = 0; j < n; ++j) std::swap(a[k + j * n], a[pivot + j * n]);
      for (int64_t i = k + 1; i < n; ++i) a[i + k * n] /= a[k + k * n];
      for (int64_t j = k + 1; j < n; ++j) {
        for (int64_t i = k + 1; i < n; ++i) a[i + j * n] -= a[i + k * n] * a[k + j * n];
      }
    }
  }

  void Solve() const {
    for (int64_t k = 0; k < n; ++k) std::swap(b[k], b[ipiv[k] - 1]);
    for (int64_t k = 0; k < n; ++k) {
      for (int64_t i = k + 1; i < n; ++i) b[i] -= a[i + k * n] * b[k];
    }
    for (int64_t k = n - 1; k >= 0; --k) {
      b[k] /= a[k + k * n];
      for (int64_t i = 0; i < k; ++i) b[i] -= a[i + k * n] * b[k];
    }
  }

  int64_t n;
  int64_t* ipiv;
  int64_t* info;
  T* a;
  T* b;
};

// The sizes that a bufferSize function has returned, and for which call.
struct Sizes {
  const void* a = nullptr;
  int64_t n = 0;
  size_t device = 0;
};
Sizes getrf_sizes;
Sizes getrs_sizes;

bool CheckMatrix(const Descriptor& d, const void* a, int64_t n, int64_t ia, int64_t ja,
                 const int64_t* ipiv, int type) {
  const size_t pivot_bytes = (d.local_rows() + d.block) * sizeof(int64_t);
  return Require(ia == 1 && ja == 1 && d.rows == n && d.cols == n, "the whole square matrix") &&
         Require(d.type == type, "the type of the descriptor") &&
         Require(
             a != nullptr && FakeDeviceBytes(a) >= std::max<size_t>(1, d.bytes(ElementBytes(type))),
             "blocks in device memory") &&
         Require(ipiv != nullptr && FakeDeviceBytes(ipiv) >= pivot_bytes,
                 "LOCr(M) + MB pivots in device memory") &&
         Require(FakePendingError() == 0, "no earlier CUDA error");
}

bool CheckWork(const Sizes& sizes, const void* a, int64_t n, const void* device,
               size_t device_bytes, const void* host, size_t host_bytes, const int* info) {
  return Require(sizes.a == a && sizes.n == n, "bufferSize was called for this matrix") &&
         Require(device_bytes == sizes.device && FakeDeviceBytes(device) >= device_bytes,
                 "the workspace in device memory") &&
         Require(host != nullptr && FakeDeviceBytes(host) == 0 && host_bytes == kHostWork,
                 "the workspace in host memory") &&
         Require(FakeDeviceBytes(info) >= sizeof(int), "info in device memory");
}

// Copies this process's blocks of a matrix to the shared block, and its pivots if it has the first
// column of blocks.
template <class T>
void Gather(const Descriptor& d, T* a, const int64_t* ipiv, const Shared<T>& shared) {
  ForBlocks(d, a, [&](T& element, int64_t i, int64_t j) { shared.a[i + j * shared.n] = element; });
  if (ipiv == nullptr || d.grid->col() != 0) return;
  for (int64_t i = 0; i < d.local_rows(); ++i) {
    shared.ipiv[ToGlobal(i, d.block, d.grid->row(), d.grid->rows)] = ipiv[i];
  }
}

}  // namespace

extern "C" {

int cusolverMpCreate(void** handle, int device, void* stream) {
  if (!Require(device == FakeGpu(), "the GPU of cudaSetDevice") || !FakeRunStream(stream)) {
    return kInvalidValue;
  }
  *handle = new Handle{stream};
  return 0;
}

int cusolverMpGetVersion(void* handle, int* version) {
  constexpr int kVersion = 800;
  if (!Require(handle != nullptr, "a handle")) return kInvalidValue;
  *version = static_cast<int>(FaultOf("cusolverMpGetVersion").value_or(kVersion));
  return 0;
}

int cusolverMpCreateDeviceGrid(void* handle, void** grid, const void* communicator, int32_t rows,
                               int32_t cols, int mapping) {
  const auto* const c = static_cast<const Communicator*>(communicator);
  constexpr int kRowMajor = 1;
  if (!Require(handle != nullptr && c != nullptr && rows * cols == c->ranks && rows <= cols &&
                   mapping == kRowMajor,
               "a grid of all ranks by rows")) {
    return kInvalidValue;
  }
  *grid = new Grid{c, rows, cols};
  return 0;
}

int cusolverMpCreateMatrixDesc(void** descriptor, void* grid, int type, int64_t rows, int64_t cols,
                               int64_t row_block, int64_t col_block, uint32_t row_source,
                               uint32_t col_source, int64_t ld) {
  auto* const made =
      new Descriptor{static_cast<const Grid*>(grid), type, rows, cols, row_block, ld};
  *descriptor = made;
  const bool valid =
      Require(row_block == col_block && row_block >= 1, "square blocks") &&
      Require(row_source == 0 && col_source == 0, "a matrix that starts on the first process") &&
      Require(ld >= std::max<int64_t>(1, made->local_rows()), "ld >= max(1, LOCr(M))");
  return valid ? 0 : kInvalidValue;
}

int cusolverMpDestroyMatrixDesc(void* descriptor) {
  delete static_cast<Descriptor*>(descriptor);
  return 0;
}

int cusolverMpGetrf_bufferSize(void* /*handle*/, int64_t rows, int64_t cols, void* a, int64_t ia,
                               int64_t ja, void* descriptor, int64_t* ipiv, int type,
                               size_t* device, size_t* host) {
  const auto& d = *static_cast<const Descriptor*>(descriptor);
  if (!Require(rows == cols, "a square matrix") || !CheckMatrix(d, a, rows, ia, ja, ipiv, type)) {
    return kInvalidValue;
  }
  if (const auto fault = FaultOf("cusolverMpGetrf_bufferSize")) return static_cast<int>(*fault);
  *device = d.ld * ElementBytes(type) + 256;
  *host = kHostWork;
  getrf_sizes = {a, rows, *device};
  return 0;
}

int cusolverMpGetrf(void* handle, int64_t rows, int64_t cols, void* a, int64_t ia, int64_t ja,
                    void* descriptor, int64_t* ipiv, int type, void* work, size_t work_bytes,
                    void* host, size_t host_bytes, int* info) {
  const auto& d = *static_cast<const Descriptor*>(descriptor);
  const Communicator& c = *d.grid->communicator;
  if (!Require(rows == cols, "a square matrix") || !CheckMatrix(d, a, rows, ia, ja, ipiv, type) ||
      !CheckWork(getrf_sizes, a, rows, work, work_bytes, host, host_bytes, info) ||
      !FakeRunStream(static_cast<Handle*>(handle)->stream)) {
    return kInvalidValue;
  }
  Record("cusolverMpGetrf", 0);
  if (const auto fault = FaultOf("cusolverMpGetrf")) return static_cast<int>(*fault);
  return Dispatch(type, [&](auto zero) {
    using T = decltype(zero);
    const Shared<T> shared(c, rows);
    if (!Require(shared.Fits(), "a small matrix")) return kInvalidValue;
    auto* const local = static_cast<T*>(a);
    Gather<T>(d, local, nullptr, shared);
    c.Await();
    if (c.rank == 0) shared.Factor();
    c.Await();
    ForBlocks(d, local,
              [&](T& element, int64_t i, int64_t j) { element = shared.a[i + j * rows]; });
    for (int64_t i = 0; i < d.local_rows(); ++i) {
      ipiv[i] = shared.ipiv[ToGlobal(i, d.block, d.grid->row(), d.grid->rows)];
    }
    *info = static_cast<int>(*shared.info);
    c.Await();
    return 0;
  });
}

int cusolverMpGetrs_bufferSize(void* /*handle*/, int op, int64_t n, int64_t nrhs, const void* a,
                               int64_t ia, int64_t ja, void* descriptor, const int64_t* ipiv,
                               void* b, int64_t ib, int64_t jb, void* descriptor_b, int type,
                               size_t* device, size_t* host) {
  const auto& d = *static_cast<const Descriptor*>(descriptor);
  const auto& db = *static_cast<const Descriptor*>(descriptor_b);
  if (!CheckMatrix(d, a, n, ia, ja, ipiv, type) ||
      !Require(op == 0 && nrhs == 1 && ib == 1 && jb == 1, "one column, not transposed") ||
      !Require(db.rows == n && db.cols == 1 && db.block == d.block && db.type == type,
               "a column in blocks as the matrix has") ||
      !Require(FakeDeviceBytes(b) >= std::max<size_t>(1, db.bytes(ElementBytes(type))),
               "the column in device memory")) {
    return kInvalidValue;
  }
  *device = db.ld * ElementBytes(type) + 256;
  *host = kHostWork;
  getrs_sizes = {a, n, *device};
  return 0;
}

int cusolverMpGetrs(void* handle, int op, int64_t n, int64_t nrhs, const void* a, int64_t ia,
                    int64_t ja, void* descriptor, const int64_t* ipiv, void* b, int64_t ib,
                    int64_t jb, void* descriptor_b, int type, void* work, size_t work_bytes,
                    void* host, size_t host_bytes, int* info) {
  const auto& d = *static_cast<const Descriptor*>(descriptor);
  const auto& db = *static_cast<const Descriptor*>(descriptor_b);
  const Communicator& c = *d.grid->communicator;
  if (!CheckMatrix(d, a, n, ia, ja, ipiv, type) ||
      !Require(op == 0 && nrhs == 1 && ib == 1 && jb == 1, "one column, not transposed") ||
      !Require(FakeDeviceBytes(b) >= std::max<size_t>(1, db.bytes(ElementBytes(type))),
               "the column in device memory") ||
      !CheckWork(getrs_sizes, a, n, work, work_bytes, host, host_bytes, info) ||
      !FakeRunStream(static_cast<Handle*>(handle)->stream)) {
    return kInvalidValue;
  }
  Record("cusolverMpGetrs", 0);
  if (const auto fault = FaultOf("cusolverMpGetrs")) return static_cast<int>(*fault);
  return Dispatch(type, [&](auto zero) {
    using T = decltype(zero);
    const Shared<T> shared(c, n);
    auto* const column = static_cast<T*>(b);
    Gather<T>(d, static_cast<T*>(const_cast<void*>(a)), ipiv, shared);
    ForBlocks(db, column, [&](T& element, int64_t i, int64_t) { shared.b[i] = element; });
    c.Await();
    if (c.rank == 0) shared.Solve();
    c.Await();
    ForBlocks(db, column, [&](T& element, int64_t i, int64_t) { element = shared.b[i]; });
    *info = 0;
    c.Await();
    return 0;
  });
}

}  // extern "C"
