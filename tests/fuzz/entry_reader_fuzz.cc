// SPDX-License-Identifier: Apache-2.0

// Fuzzes the reader of binary sparse matrices with input in one piece and in pieces of any size.
// The results must be equal, and accepted input must have a well-formed matrix.
#include <fuzzer/FuzzedDataProvider.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/io/entry_reader.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

struct Outcome {
  absl::Status status;
  crout::SparseMatrix sparse;
  crout::ValueMapData map;
};

Outcome Read(const crout::EntryFormat& format, std::string_view bytes, size_t size) {
  crout::EntryReader reader(format, /*build_value_map=*/true, nullptr);
  Outcome outcome;
  while (!bytes.empty() && outcome.status.ok()) {
    const std::vector<char> piece(bytes.begin(), bytes.begin() + std::min(size, bytes.size()));
    bytes.remove_prefix(piece.size());
    outcome.status = reader.Append(piece);
  }
  if (outcome.status.ok()) outcome.status = reader.Finish();
  if (!outcome.status.ok()) return outcome;
  outcome.sparse = reader.TakeSparse();
  outcome.map = reader.TakeValueMap();
  return outcome;
}

void CheckSparse(const crout::EntryFormat& format, const crout::SparseMatrix& matrix) {
  Require(matrix.rows == format.rows && matrix.columns == format.columns);
  Require(std::ssize(matrix.column_start) == matrix.columns + 1);
  Require(matrix.column_start.front() == 0 && matrix.column_start.back() == matrix.nonzeros());
  for (int64_t j = 0; j < matrix.columns; ++j) {
    for (int64_t e = matrix.column_start[j]; e < matrix.column_start[j + 1]; ++e) {
      Require(matrix.row[e] >= 0 && matrix.row[e] < matrix.rows);
      Require(e == matrix.column_start[j] || matrix.row[e - 1] < matrix.row[e]);
      Require(std::isfinite(matrix.value[e]));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzedDataProvider provider(data, size);
  crout::EntryFormat format;
  format.dtype = static_cast<crout::DType>(provider.ConsumeIntegralInRange(0, 3));
  format.compressed_rows = provider.ConsumeBool();
  format.index_bytes = provider.ConsumeBool() ? 8 : 4;
  format.rows = provider.ConsumeIntegralInRange(0, 100);
  format.columns = provider.ConsumeIntegralInRange(0, 100);
  // Half of the inputs have at most 100 entries; the others have any number.
  format.entries = provider.ConsumeBool() ? provider.ConsumeIntegralInRange(0, 100)
                                          : provider.ConsumeIntegralInRange(0, 0x7fffffff);
  const auto piece = provider.ConsumeIntegralInRange<size_t>(1, 40);
  const std::string bytes = provider.ConsumeRemainingBytesAsString();
  const Outcome whole = Read(format, bytes, bytes.size());
  const Outcome pieces = Read(format, bytes, piece);
  Require(whole.status == pieces.status);
  if (!whole.status.ok()) {
    Require(whole.status.code() == absl::StatusCode::kInvalidArgument);
    return 0;
  }
  CheckSparse(format, whole.sparse);
  Require(whole.sparse.row == pieces.sparse.row && whole.sparse.value == pieces.sparse.value);
  Require(whole.sparse.imaginary == pieces.sparse.imaginary);
  Require(whole.map.start == pieces.map.start && whole.map.source == pieces.map.source);
  Require(std::ssize(whole.map.source) == format.entries);
  return 0;
}
