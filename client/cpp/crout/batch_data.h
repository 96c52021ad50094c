// What goes to a server and comes back from it where many matrices go at once.
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

// Matrices of one type and of any sizes, empty and rectangular ones among them: those of a batch,
// or right-hand sides for members of one. Refers to the caller's memory, which must stay as it is
// until the call that was given the source returns; it is sent without a copy of the whole. What
// cannot be sent the call tells: INVALID_ARGUMENT, with the matrix's index.
class BatchSource {
 public:
  // Of this type, where no matrix says so: an empty batch is one too.
  explicit BatchSource(v1::Dtype dtype = v1::DTYPE_FLOAT64) : dtype_(dtype) {}

  // One more matrix, by columns; column j starts at values + j * stride, or at values + j * rows
  // without a stride. It is member size() of a batch, and of right-hand sides that for member
  // size(). INVALID_ARGUMENT from the call for a negative size, a stride shorter than a column, a
  // null pointer to a matrix that is not empty, and a type that another matrix has not.
  void Add(const double* values, int64_t rows, int64_t cols, std::optional<int64_t> stride = {});
  void Add(const float* values, int64_t rows, int64_t cols, std::optional<int64_t> stride = {});
  void Add(const std::complex<double>* values, int64_t rows, int64_t cols,
           std::optional<int64_t> stride = {});
  void Add(const std::complex<float>* values, int64_t rows, int64_t cols,
           std::optional<int64_t> stride = {});

  // The same for that member, counted from 0, of right-hand sides: in any order, each member once,
  // else INVALID_ARGUMENT from the call. T: as above.
  template <class T>
  void AddFor(int64_t member, const T* values, int64_t rows, int64_t cols,
              std::optional<int64_t> stride = {}) {
    Add(values, rows, cols, stride);
    items_.back().member = member;
  }

  int64_t size() const { return static_cast<int64_t>(items_.size()); }
  v1::Dtype dtype() const { return dtype_; }

  // What is declared of it as a batch. INVALID_ARGUMENT as the call.
  absl::StatusOr<v1::BatchSpec> Spec() const;

 private:
  friend class Client;
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
  // Their indices by ascending member. INVALID_ARGUMENT as AddFor.
  absl::StatusOr<std::vector<size_t>> Order() const;
  // From the first to the end of the last, in this order.
  int64_t ValueBytes(const std::vector<size_t>& order) const;
  // A pass over the bytes: of a batch, or of right-hand sides, in ascending order of their members.
  absl::StatusOr<std::unique_ptr<ChunkReader>> Open(bool sides) const;

  v1::Dtype dtype_;
  bool mixed_ = false;  // two types were added
  std::vector<Item> items_;
};

// Matrices that came back, each by columns without gaps, in memory of their own.
class BatchMatrices {
 public:
  int64_t size() const { return static_cast<int64_t>(places_.size()); }
  v1::Dtype dtype() const { return dtype_; }
  // Of matrix k, 0 <= k < size().
  int64_t rows(int64_t k) const { return places_[static_cast<size_t>(k)].rows; }
  int64_t cols(int64_t k) const { return places_[static_cast<size_t>(k)].cols; }
  // Its rows(k) * cols(k) elements. T: of dtype().
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

// A member's size.
struct BatchShape {
  int64_t rows = 0;
  int64_t cols = 0;
};

// What is told of a batch's members, each array with as many numbers as there are members.
struct BatchFigures {
  // LAPACK's: 0, or the 1-based index of the first pivot that is exactly zero.
  std::vector<int32_t> info;
  // As v1::Factor has them of one matrix; +Infinity where L or U holds an Infinity or NaN.
  std::vector<double> pivot_growth;
  std::vector<double> quality;
};

struct FactoredBatch {
  v1::Factor factor;  // of all: the worst growth and quality, and factor.batch()
  BatchFigures figures;
};

// What came of right-hand sides, in the order in which they were added.
struct BatchSolution {
  v1::SolveBatchResult result;
  BatchMatrices x;  // NaN where the member is singular
  // A plain number, as SolveResult has it; NaN where it was not verified.
  std::vector<double> backward_error;
  std::vector<int32_t> info;  // of the members that were solved with
};

struct BatchDownload {
  v1::Factor factor;  // the version that was sent
  // Of the members that were asked for: L strictly below the diagonal, with the unit diagonal, and
  // U above and on it.
  BatchMatrices lu;
  // Of matrix k of these, min(rows, cols) row interchanges as LAPACK has them: row i, from 1, was
  // interchanged with row ipiv(k)[i - 1].
  absl::Span<const int32_t> ipiv(int64_t k) const {
    const auto begin = static_cast<size_t>(first_interchange[static_cast<size_t>(k)]);
    const auto end = static_cast<size_t>(first_interchange[static_cast<size_t>(k) + 1]);
    return absl::MakeConstSpan(interchanges).subspan(begin, end - begin);
  }

  std::vector<int32_t> interchanges;       // of all, one after the other
  std::vector<int64_t> first_interchange;  // where those of each begin, and those of all end
};

}  // namespace crout::client

#endif  // CROUT_CROUT_BATCH_DATA_H_
