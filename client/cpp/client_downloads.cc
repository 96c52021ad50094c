// SPDX-License-Identifier: Apache-2.0

// Downloads of factors.
#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/cpp/batch_layout.h"
#include "client/cpp/connection.h"
#include "client/cpp/convert.h"
#include "crout/client.h"
#include "crout/sparse_factors.h"

namespace crout {
inline namespace api {
namespace {

using internal::AlignBatch;
using internal::ArrayAt;
using internal::CheckPlace;
using internal::Read;
using internal::SolutionReceiver;

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
    rows.dtype = static_cast<Dtype>(spec.dtype());
    const int64_t entries = spec.entries();
    ok_ = ok_ && n <= std::numeric_limits<int32_t>::max() && spec.rows() == n && spec.cols() == n &&
          entries >= 0 && entries <= std::ssize(bytes_) &&
          spec.format() == v1::SPARSE_FORMAT_COMPRESSED_ROWS &&
          (spec.index_bytes() == 4 || spec.index_bytes() == 8) && ElementSize(rows.dtype) > 0;
    if (!ok_) return rows;
    rows.starts = TakeIndices<int64_t>(spec.index_bytes(), n + 1, entries + 1);
    rows.columns = TakeIndices<int32_t>(spec.index_bytes(), entries, n);
    ok_ = ok_ && rows.starts.front() == 0 && rows.starts.back() == entries &&
          std::is_sorted(rows.starts.begin(), rows.starts.end());
    if (!ok_) return rows;
    rows.value_bytes = Take<std::byte>(entries * static_cast<int64_t>(ElementSize(rows.dtype)));
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
  const std::vector<std::byte>& bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

absl::Status ReadFactors(const v1::SparseFactors& spec, const std::vector<std::byte>& bytes,
                         SparseFactors* factors) {
  const int64_t n = factors->factor.n;
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

// Bytes of the size of one member at the start of a payload.
constexpr int64_t kPairBytes = 2 * sizeof(int64_t);

absl::Status CheckBatch(const v1::GetFactorsHeader& header) {
  if (!header.has_batch()) {
    return absl::FailedPreconditionError("the handle belongs to a single matrix, not to a batch");
  }
  const int64_t members = header.batch().members();
  if (members >= 0 && members <= std::numeric_limits<int32_t>::max()) return absl::OkStatus();
  return absl::InternalError("the server announced an impossible batch");
}

// Reads the data of a download of members. INTERNAL if the bytes disagree with `spec`.
absl::Status ReadMembers(const v1::BatchSpec& spec, const std::vector<std::byte>& bytes,
                         MemberFactors* download) {
  const absl::Status wrong = absl::InternalError("the server sent no batch that it announced");
  const auto dtype = static_cast<Dtype>(spec.dtype());
  const auto element = static_cast<int64_t>(ElementSize(dtype));
  const auto size = static_cast<int64_t>(bytes.size());
  const int64_t values_at = kPairBytes * spec.members();
  if (element == 0 || values_at > size) return wrong;
  const auto pairs = ArrayAt<int64_t>(bytes, 0, 2 * spec.members());
  BatchMatrices& lu = download->lu;
  if (absl::Status begun = lu.BeginBatch(spec.members()); !begun.ok()) return begun;
  download->first_interchange = {0};
  int64_t end = 0, diagonals = 0;
  for (size_t k = 0; k < pairs.size(); k += 2) {
    const int64_t rows = pairs[k], cols = pairs[k + 1];
    const int64_t begin = AlignBatch(end);
    if (rows < 0 || cols < 0 || values_at + begin > size ||
        static_cast<__int128>(rows) * cols > (size - values_at - begin) / element) {
      return wrong;
    }
    end = begin + rows * cols * element;
    const auto values = absl::MakeConstSpan(bytes).subspan(static_cast<size_t>(values_at + begin),
                                                           static_cast<size_t>(end - begin));
    absl::Status added = lu.Begin({.dtype = dtype, .rows = rows, .cols = cols});
    if (added.ok()) added = lu.Append(values);
    if (!added.ok()) return added;
    diagonals += std::min(rows, cols);
    download->first_interchange.push_back(diagonals);
  }
  const int64_t pivots_at = spec.members() == 0 ? 0 : AlignBatch(values_at + end);
  if (size != pivots_at + diagonals * static_cast<int64_t>(sizeof(int32_t))) return wrong;
  download->interchanges = ArrayAt<int32_t>(bytes, pivots_at, diagonals);
  return absl::OkStatus();
}

// Appends the data of a download to *bytes.
auto AppendTo(std::vector<std::byte>* bytes) {
  return [bytes](absl::Span<const std::byte> piece) {
    bytes->insert(bytes->end(), piece.begin(), piece.end());
    return absl::OkStatus();
  };
}

}  // namespace

absl::Status Client::Download(const std::string& handle, DenseFactors* factors, MatrixSink* lu,
                              bool include_ipiv, const CallOptions& call) {
  if (absl::Status place = CheckPlace(factors, "factors"); !place.ok()) return place;
  if (absl::Status place = CheckPlace(lu, "the sink"); !place.ok()) return place;
  v1::GetFactorsRequest request;
  request.set_handle(handle);
  request.set_include_ipiv(include_ipiv);
  std::optional<SolutionReceiver> receiver;
  const absl::Status status = connection_->Download(
      request, call,
      [&](const v1::GetFactorsHeader& header) -> absl::Status {
        if (header.has_batch()) {
          return absl::FailedPreconditionError("the factor is of a batch: call DownloadMembers");
        }
        *factors = Read<DenseFactors>(header);
        return receiver.emplace(lu).OnHeader(header.lu());
      },
      [&](absl::Span<const std::byte> piece) { return receiver->OnData(piece); });
  return status.ok() ? receiver->Finish() : status;
}

absl::StatusOr<SparseFactors> Client::DownloadSparse(const std::string& handle,
                                                     const CallOptions& call) {
  v1::GetFactorsRequest request;
  request.set_handle(handle);
  request.set_take_sparse(true);
  v1::GetFactorsHeader header;
  std::vector<std::byte> bytes;
  const absl::Status status = connection_->Download(
      request, call,
      [&](const v1::GetFactorsHeader& received) {
        header = received;
        bytes.clear();
        return header.has_sparse()
                   ? absl::OkStatus()
                   : absl::FailedPreconditionError("the factor is dense: call Download");
      },
      AppendTo(&bytes));
  if (!status.ok()) return status;
  SparseFactors factors;
  factors.factor = Read<FactorDescription>(header.factor());
  const absl::Status read = ReadFactors(header.sparse(), bytes, &factors);
  if (!read.ok()) return read;
  return factors;
}

absl::StatusOr<MemberFactors> Client::DownloadMembers(const std::string& handle, int64_t first,
                                                      int64_t count, const CallOptions& call) {
  v1::GetFactorsRequest request;
  request.set_handle(handle);
  request.set_first(first);
  request.set_count(count);
  v1::GetFactorsHeader header;
  std::vector<std::byte> bytes;
  const absl::Status status = connection_->Download(
      request, call,
      [&](const v1::GetFactorsHeader& received) {
        header = received;
        bytes.clear();
        return CheckBatch(header);
      },
      AppendTo(&bytes));
  if (!status.ok()) return status;
  MemberFactors download;
  download.factor = Read<FactorDescription>(header.factor());
  const absl::Status read = ReadMembers(header.batch(), bytes, &download);
  if (!read.ok()) return read;
  return download;
}

absl::StatusOr<std::vector<MemberShape>> Client::MemberShapes(const std::string& handle,
                                                              const CallOptions& call) {
  v1::GetFactorsRequest request;
  request.set_handle(handle);
  std::optional<int64_t> missing;  // bytes
  std::vector<std::byte> bytes;
  // The call is left as soon as the sizes are there.
  const auto leave_if_whole = [&] {
    return *missing == 0 ? absl::CancelledError("no more is needed") : absl::OkStatus();
  };
  const absl::Status status = connection_->Download(
      request, call,
      [&](const v1::GetFactorsHeader& header) {
        if (absl::Status batch = CheckBatch(header); !batch.ok()) return batch;
        missing = kPairBytes * header.batch().members();
        bytes.clear();
        return leave_if_whole();
      },
      [&](absl::Span<const std::byte> piece) {
        const auto taken = std::min<int64_t>(*missing, std::ssize(piece));
        bytes.insert(bytes.end(), piece.begin(), piece.begin() + taken);
        *missing -= taken;
        return leave_if_whole();
      });
  if (missing != 0) return status.ok() ? absl::InternalError("the server sent no sizes") : status;
  const auto pairs = ArrayAt<int64_t>(bytes, 0, std::ssize(bytes) / kPairBytes * 2);
  std::vector<MemberShape> shapes;
  for (size_t k = 0; k < pairs.size(); k += 2) shapes.push_back({pairs[k], pairs[k + 1]});
  return shapes;
}

}  // namespace api
}  // namespace crout
