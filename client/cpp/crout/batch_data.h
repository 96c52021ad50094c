// SPDX-License-Identifier: Apache-2.0

// Matrices of a batch: the data that a client sends and receives.
#ifndef CROUT_CROUT_BATCH_DATA_H_
#define CROUT_CROUT_BATCH_DATA_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "crout/v1/factor.pb.h"
#include "crout/v1/factorization_service.pb.h"
#include "crout/v1/matrix.pb.h"

namespace crout::client {

class ChunkReader;
class MatrixSource;

// Matrices of one type and of any sizes, including empty and rectangular ones: a batch, or
// right-hand sides for members of one. Refers to the caller's memory, which must stay valid and
// unchanged until the call with this source returns. The data are sent without a full copy. Invalid
// matrices are reported by the call: INVALID_ARGUMENT, with the matrix's index.
class BatchSource {
 public:
  // `dtype` applies if no matrix is added, as for an empty batch.
  explicit BatchSource(v1::Dtype dtype = v1::DTYPE_FLOAT64) : dtype_(dtype) {}

  // Adds a column-major matrix. Column j starts at values + j * stride; the default stride is
  // `rows`. The matrix becomes member size() of a batch, or the right-hand side for member size().
  // The call returns INVALID_ARGUMENT for a negative size, a stride shorter than a column, a null
  // pointer to a matrix that is not empty, and a type that differs from that of another matrix.
  void Add(const double* values, int64_t rows, int64_t cols, std::optional<int64_t> stride = {});
  void Add(const float* values, int64_t rows, int64_t cols, std::optional<int64_t> stride = {});
  void Add(const std::complex<double>* values, int64_t rows, int64_t cols,
           std::optional<int64_t> stride = {});
  void Add(const std::complex<float>* values, int64_t rows, int64_t cols,
           std::optional<int64_t> stride = {});

  // Adds a right-hand side for `member`, 0-based, as Add() does. Any order; a member that occurs
  // twice is INVALID_ARGUMENT from the call. T: one of the types of Add().
  template <class T>
  void AddFor(int64_t member, const T* values, int64_t rows, int64_t cols,
              std::optional<int64_t> stride = {}) {
    Add(values, rows, cols, stride);
    items_.back().member = member;
  }

  int64_t size() const { return static_cast<int64_t>(items_.size()); }
  v1::Dtype dtype() const { return dtype_; }

 private:
  friend class Client;
  friend class MatrixSource;  // opens it
  struct Item {
    const std::byte* values;
    int64_t rows;
    int64_t cols;
    int64_t stride;  // elements
    int64_t member;
  };
  class Reader;

  void AddItem(v1::Dtype dtype, const void* values, int64_t rows, int64_t cols,
               std::optional<int64_t> stride);
  // Declares the batch. INVALID_ARGUMENT as from the call.
  absl::StatusOr<v1::BatchSpec> Spec() const;
  // Indices of the matrices in ascending order of their members. INVALID_ARGUMENT as for AddFor.
  absl::StatusOr<std::vector<size_t>> Order() const;
  // Bytes from the first matrix to the end of the last, in this order.
  int64_t ValueBytes(const std::vector<size_t>& order) const;
  // The batch, or right-hand sides for one, as the source of a request. Refers to this object.
  MatrixSource AsMatrices() const;
  MatrixSource AsSides() const;
  // Starts a pass over the bytes of a valid batch or, with `sides`, of valid right-hand sides in
  // ascending order of their members.
  std::unique_ptr<ChunkReader> Open(bool sides) const;

  v1::Dtype dtype_;
  bool mixed_ = false;  // two types were added
  std::vector<Item> items_;
};

// Received matrices, each column-major without gaps, in memory that the object owns.
class BatchMatrices {
 public:
  int64_t size() const { return static_cast<int64_t>(places_.size()); }
  v1::Dtype dtype() const { return dtype_; }
  // Rows of matrix k, 0 <= k < size().
  int64_t rows(int64_t k) const { return places_[static_cast<size_t>(k)].rows; }
  int64_t cols(int64_t k) const { return places_[static_cast<size_t>(k)].cols; }
  // The rows(k) * cols(k) elements of matrix k. T: the type dtype().
  template <class T>
  absl::Span<const T> values(int64_t k) const {
    const Place& place = places_[static_cast<size_t>(k)];
    return {reinterpret_cast<const T*>(bytes_.data() + place.offset),
            static_cast<size_t>(place.rows * place.cols)};
  }

 private:
  friend class Client;
  struct Place {
    int64_t rows;
    int64_t cols;
    size_t offset;  // bytes
  };

  v1::Dtype dtype_ = v1::DTYPE_FLOAT64;
  std::vector<Place> places_;
  std::vector<std::byte> bytes_;
};

// Size of a member.
struct BatchShape {
  int64_t rows = 0;
  int64_t cols = 0;
};

// Figures of the members of a batch; each array has one value a member.
struct BatchFigures {
  // LAPACK's info: 0, or the 1-based index of the first pivot that is exactly zero.
  std::vector<int32_t> info;
  // Figures as in v1::Factor; +Infinity if L or U holds an Infinity or NaN.
  std::vector<double> pivot_growth;
  std::vector<double> quality;
};

struct FactoredBatch {
  v1::Factor factor;  // summary of all members: largest growth and quality, and factor.batch()
  BatchFigures figures;
};

// Solutions, in the order in which the right-hand sides were added.
struct BatchSolution {
  v1::SolveResult result;
  BatchMatrices x;  // NaN where the member is singular
  // Backward error as in SolveResult; NaN if it was not verified.
  std::vector<double> backward_error;
  std::vector<int32_t> info;  // of each system's member
};

struct BatchDownload {
  v1::Factor factor;  // the version that was sent
  // The requested members: L strictly below the diagonal (unit diagonal not stored), U on and above
  // it.
  BatchMatrices lu;
  // The min(rows, cols) row interchanges of matrix k, in LAPACK's form: row i, 1-based, was
  // interchanged with row ipiv(k)[i - 1].
  absl::Span<const int32_t> ipiv(int64_t k) const {
    const auto begin = static_cast<size_t>(first_interchange[static_cast<size_t>(k)]);
    const auto end = static_cast<size_t>(first_interchange[static_cast<size_t>(k) + 1]);
    return absl::MakeConstSpan(interchanges).subspan(begin, end - begin);
  }

  std::vector<int32_t> interchanges;       // of all members, concatenated
  std::vector<int64_t> first_interchange;  // where each member's interchanges begin; then the total
};

}  // namespace crout::client

#endif  // CROUT_CROUT_BATCH_DATA_H_
