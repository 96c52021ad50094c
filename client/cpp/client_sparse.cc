// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/cpp/call_scope.h"
#include "client/cpp/retry.h"
#include "client/cpp/stream_call.h"
#include "client/cpp/wire.h"
#include "crout/client.h"
#include "crout/sparse_factors.h"

namespace crout::client {
namespace {

// Reads checked values from the front of the bytes of a server. After the first error all reads
// return unspecified values and AtEnd() is false.
class Received {
 public:
  explicit Received(const std::vector<std::byte>& bytes) : bytes_(bytes) {}

  bool AtEnd() const { return ok_ && at_ == bytes_.size(); }

  template <class T>
  std::vector<T> Take(int64_t count) {
    const size_t left = bytes_.size() - at_;
    if (!ok_ || count < 0 || static_cast<uint64_t>(count) > left / sizeof(T)) {
      ok_ = false;
      return {};
    }
    std::vector<T> values(static_cast<size_t>(count));
    if (count > 0) std::memcpy(values.data(), bytes_.data() + at_, values.size() * sizeof(T));
    at_ += values.size() * sizeof(T);
    return values;
  }

  // Reads `count` integers of `index_bytes` bytes each, which must be in [0, end).
  template <class T>
  std::vector<T> TakeIndices(int32_t index_bytes, int64_t count, int64_t end) {
    std::vector<T> indices;
    const auto take = [&](auto stored) {
      const auto values = Take<decltype(stored)>(count);
      indices.assign(values.begin(), values.end());
      for (const auto value : values) ok_ = ok_ && value >= 0 && value < end;
    };
    if (index_bytes == 8) {
      take(int64_t{});
    } else {
      take(int32_t{});
    }
    return indices;
  }

  CompressedRows TakeRows(const v1::SparseSpec& spec, int64_t n) {
    CompressedRows rows;
    rows.n = n;
    rows.dtype = spec.dtype();
    const int64_t entries = spec.entries();
    ok_ = ok_ && spec.rows() == n && spec.cols() == n && entries >= 0 &&
          spec.format() == v1::SPARSE_FORMAT_COMPRESSED_ROWS &&
          (spec.index_bytes() == 4 || spec.index_bytes() == 8) && ElementBytes(spec.dtype()) > 0;
    if (!ok_) return rows;
    rows.starts = TakeIndices<int64_t>(spec.index_bytes(), n + 1, entries + 1);
    rows.columns = TakeIndices<int32_t>(spec.index_bytes(), entries, n);
    ok_ = ok_ && rows.starts.front() == 0 && rows.starts.back() == entries &&
          std::is_sorted(rows.starts.begin(), rows.starts.end());
    if (!ok_) return rows;
    rows.value_bytes = Take<std::byte>(entries * ElementBytes(spec.dtype()));
    return rows;
  }

  std::vector<int32_t> TakePermutation(int64_t n) {
    std::vector<int32_t> order = TakeIndices<int32_t>(4, n, n);
    std::vector<bool> seen(order.size());
    for (const int32_t i : order) {
      ok_ = ok_ && !seen[static_cast<size_t>(i)];
      if (!ok_) return order;
      seen[static_cast<size_t>(i)] = true;
    }
    return order;
  }

 private:
  static int64_t ElementBytes(v1::Dtype dtype) {
    switch (dtype) {
      case v1::DTYPE_FLOAT32:
        return 4;
      case v1::DTYPE_FLOAT64:
      case v1::DTYPE_COMPLEX64:
        return 8;
      case v1::DTYPE_COMPLEX128:
        return 16;
      default:
        return 0;
    }
  }

  const std::vector<std::byte>& bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

absl::Status ReadFactors(const v1::SparseFactors& spec, const std::vector<std::byte>& bytes,
                         SparseFactors* factors) {
  const int64_t n = factors->factor.n();
  Received received(bytes);
  factors->lower = received.TakeRows(spec.lower(), n);
  factors->upper = received.TakeRows(spec.upper(), n);
  factors->row_permutation = received.TakePermutation(n);
  factors->column_permutation = received.TakePermutation(n);
  if (spec.scaled()) {
    factors->row_scales = received.Take<double>(n);
    factors->col_scales = received.Take<double>(n);
  }
  if (received.AtEnd()) return absl::OkStatus();
  return absl::InternalError("the server sent other factors than it announced");
}

}  // namespace

absl::StatusOr<SparseFactors> Client::GetSparseFactors(const std::string& handle,
                                                       const CallOptions& call) {
  v1::GetFactorsRequest request;
  request.set_handle(handle);
  request.set_take_sparse(true);
  v1::GetFactorsHeader header;
  std::vector<std::byte> bytes;
  const absl::Status status = Download(
      request, call,
      [&](v1::GetFactorsHeader* received) {
        header = std::move(*received);
        bytes.clear();
        return header.has_sparse()
                   ? absl::OkStatus()
                   : absl::FailedPreconditionError("the factor is dense: call GetFactors");
      },
      [&](absl::Span<const std::byte> piece) {
        bytes.insert(bytes.end(), piece.begin(), piece.end());
        return absl::OkStatus();
      });
  if (!status.ok()) return status;
  SparseFactors factors;
  factors.factor = std::move(*header.mutable_factor());
  const absl::Status read = ReadFactors(header.sparse(), bytes, &factors);
  if (!read.ok()) return read;
  return factors;
}

}  // namespace crout::client
