// SPDX-License-Identifier: Apache-2.0

// Fuzzes the Matrix Market reader. The file is any bytes, or the gzip of any bytes. The reader gets
// it in one piece, and in pieces of any size with or without threads. The bits of the results must
// be equal, and accepted input must have a well-formed matrix.
//
// The input is the file, followed by a few bytes that determine the compression, the pieces and the
// threads. Files in the corpus are therefore readable.
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/io/matrix_market_reader.h"
#include "kernels/scalar.h"
#include "kernels/util/thread_pool.h"
#include "tests/support/gzip.h"

namespace crout {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

// Dimensions are small, because a million empty columns would only take time.
MatrixMarketLimits FuzzLimits(size_t segment_bytes) {
  MatrixMarketLimits limits;
  limits.max_rows = limits.max_columns = 1000;
  limits.max_peak_bytes = 64 << 20;
  limits.segment_bytes = segment_bytes;
  limits.build_value_map = true;
  return limits;
}

struct Outcome {
  absl::Status status;
  MatrixMarketHeader header;
  SparseMatrix sparse;
  ValueMapData map;
  std::vector<double> dense;
  std::vector<double> dense_imaginary;
};

template <class NextSize>
Outcome Read(std::string_view bytes, size_t segment_bytes, ThreadPool* pool, NextSize next_size) {
  MatrixMarketReader reader(FuzzLimits(segment_bytes), pool);
  Outcome outcome;
  while (!bytes.empty() && outcome.status.ok()) {
    const std::string_view view = bytes.substr(0, next_size());
    const std::vector<char> piece(view.begin(), view.end());  // exact size, for ASan
    bytes.remove_prefix(piece.size());
    outcome.status = reader.Append(piece);
  }
  if (outcome.status.ok()) outcome.status = reader.Finish();
  if (!outcome.status.ok()) return outcome;
  outcome.header = *reader.header();
  outcome.sparse = reader.TakeSparse();
  outcome.map = reader.TakeValueMap();
  outcome.dense = reader.TakeDense();
  outcome.dense_imaginary = reader.TakeDenseImaginary();
  return outcome;
}

void CheckSparse(const MatrixMarketHeader& header, const SparseMatrix& matrix) {
  Require(matrix.rows == header.rows && matrix.columns == header.columns);
  Require(static_cast<int64_t>(matrix.column_start.size()) == matrix.columns + 1);
  Require(matrix.column_start.front() == 0);
  Require(matrix.column_start.back() == matrix.nonzeros());
  Require(matrix.value.size() == matrix.row.size());
  Require(matrix.imaginary.size() == (header.complex() ? matrix.row.size() : 0));
  Require(matrix.nonzeros() <= 2 * header.entries);
  for (int64_t j = 0; j < matrix.columns; ++j) {
    Require(matrix.column_start[j] <= matrix.column_start[j + 1]);
    for (int64_t i = matrix.column_start[j]; i < matrix.column_start[j + 1]; ++i) {
      Require(matrix.row[i] >= 0 && matrix.row[i] < matrix.rows);
      Require(i == matrix.column_start[j] || matrix.row[i - 1] < matrix.row[i]);
      Require(IsFinite(matrix.Value<std::complex<double>>(i)));
    }
  }
}

void CheckMap(const MatrixMarketHeader& header, const SparseMatrix& matrix,
              const ValueMapData& map) {
  Require(map.shape.lines == header.entries && map.shape.elements == matrix.nonzeros());
  Require(std::ssize(map.start) == matrix.nonzeros() + 1);
  Require(map.start.front() == 0 && map.start.back() == std::ssize(map.source));
  Require(std::is_sorted(map.start.begin(), map.start.end()));
  for (const uint32_t source : map.source) {
    Require(static_cast<int64_t>(source & ValueMap::kLine) < header.entries);
  }
}

void CheckOutcome(const Outcome& outcome) {
  if (!outcome.status.ok()) {
    Require(!outcome.status.message().empty() && outcome.status.message().size() < 500);
    Require(outcome.status.code() == absl::StatusCode::kInvalidArgument ||
            outcome.status.code() == absl::StatusCode::kResourceExhausted);
    return;
  }
  if (outcome.header.coordinate) {
    CheckSparse(outcome.header, outcome.sparse);
    CheckMap(outcome.header, outcome.sparse, outcome.map);
    return;
  }
  Require(static_cast<int64_t>(outcome.dense.size()) ==
          outcome.header.rows * outcome.header.columns);
  Require(outcome.dense_imaginary.size() == (outcome.header.complex() ? outcome.dense.size() : 0));
  for (const double value : outcome.dense) Require(std::isfinite(value));
  for (const double value : outcome.dense_imaginary) Require(std::isfinite(value));
}

void CheckSame(const Outcome& a, const Outcome& b) {
  Require(a.status == b.status);
  Require(a.header == b.header);
  Require(a.sparse.column_start == b.sparse.column_start);
  Require(a.sparse.row == b.sparse.row);
  Require(a.sparse.value == b.sparse.value);
  Require(a.sparse.imaginary == b.sparse.imaginary);
  Require(a.map.start == b.map.start);
  Require(a.map.source == b.map.source);
  Require(a.dense == b.dense);
  Require(a.dense_imaginary == b.dense_imaginary);
}

}  // namespace
}  // namespace crout

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* const pool = new crout::ThreadPool(2);
  FuzzedDataProvider provider(data, size);
  const bool gzip = provider.ConsumeBool();  // these values consume the end of the input
  const bool threads = provider.ConsumeBool();
  const auto segment_bytes = provider.ConsumeIntegralInRange<size_t>(1, 255);
  std::vector<size_t> sizes(4);
  for (size_t& piece : sizes) piece = provider.ConsumeIntegralInRange<size_t>(1, 255);
  std::string bytes = provider.ConsumeRemainingBytesAsString();
  if (gzip) bytes = crout::testing::Gzip(bytes, 1);

  const crout::Outcome whole =
      crout::Read(bytes, size_t{1} << 20, nullptr, [&] { return bytes.size(); });
  size_t next = 0;
  const crout::Outcome pieces = crout::Read(bytes, segment_bytes, threads ? pool : nullptr,
                                            [&] { return sizes[next++ % sizes.size()]; });
  crout::CheckOutcome(whole);
  crout::CheckSame(whole, pieces);
  return 0;
}
