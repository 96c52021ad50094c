// SPDX-License-Identifier: Apache-2.0

// Matrices of a batch: the data that a client sends and receives.
//
//   crout::BatchSource matrices, sides;
//   for (const Element& e : elements) matrices.Add(e.a.data(), e.n, e.n);
//   auto factor = crout::Factor::Make(client, crout::MatrixSource::Batch(matrices));
//   if (!factor.ok()) return factor.status();
//   sides.AddFor(7, b.data(), n, 1);
//   crout::BatchMatrices x;
//   auto result = factor->Solve(crout::MatrixSource::BatchRhs(sides), {}, &x);
//   if (!result.ok()) return result.status();
//   const absl::Span<const double> x7 = x.values<double>(0);
#ifndef CROUT_CROUT_BATCH_H_
#define CROUT_CROUT_BATCH_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "crout/matrix_sink.h"
#include "crout/results.h"
#include "crout/types.h"

namespace crout {
inline namespace api {

namespace internal {
class BatchPayload;
}

// Matrices of one type and of any sizes, including empty and rectangular ones: a batch, or
// right-hand sides for members of one. Refers to the caller's memory. The data are sent without a
// full copy. Invalid matrices are reported by the call: INVALID_ARGUMENT, with the matrix's index.
class BatchSource {
 public:
  // `dtype` applies if no matrix is added, as for an empty batch.
  explicit BatchSource(Dtype dtype = Dtype::kFloat64) : dtype_(dtype) {}

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
  Dtype dtype() const { return dtype_; }

 private:
  friend class internal::BatchPayload;  // reads it
  struct Item {
    const std::byte* values;
    int64_t rows;
    int64_t cols;
    int64_t stride;  // elements
    int64_t member;
  };

  void AddItem(Dtype dtype, const void* values, int64_t rows, int64_t cols,
               std::optional<int64_t> stride);

  Dtype dtype_;
  bool mixed_ = false;  // two types were added
  std::vector<Item> items_;
};

// Received matrices, each column-major without gaps, in memory that the object owns. As the sink of
// a solve it has the solutions in the order in which the right-hand sides were added; a solution is
// NaN if its member is singular.
class BatchMatrices : public MatrixSink {
 public:
  int64_t size() const { return static_cast<int64_t>(places_.size()); }
  Dtype dtype() const { return dtype_; }
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

  absl::Status BeginBatch(int64_t count) override;
  absl::Status Begin(const DenseSpec& spec) override;
  absl::Status Append(absl::Span<const std::byte> bytes) override;

 private:
  struct Place {
    int64_t rows;
    int64_t cols;
    size_t offset;  // bytes
  };

  Dtype dtype_ = Dtype::kFloat64;
  int64_t announced_ = 0;  // matrices that BeginBatch() announced
  std::vector<Place> places_;
  std::vector<std::byte> bytes_;
};

// Size of a member.
struct MemberShape {
  int64_t rows = 0;
  int64_t cols = 0;
};

// Downloaded factors of members of a batch.
struct MemberFactors {
  FactorDescription factor;  // the version that was sent
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

  std::vector<int32_t> interchanges;       // interchanges of all members, concatenated
  std::vector<int64_t> first_interchange;  // start of each member's interchanges; then the total
};

}  // namespace api
}  // namespace crout

#endif  // CROUT_CROUT_BATCH_H_
