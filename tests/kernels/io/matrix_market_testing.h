// SPDX-License-Identifier: Apache-2.0

// Shared parts of the Matrix Market tests: functions that pass a text to the reader, and a second
// reader for comparison.
#ifndef CROUT_TESTS_KERNELS_IO_MATRIX_MARKET_TESTING_H_
#define CROUT_TESTS_KERNELS_IO_MATRIX_MARKET_TESTING_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "kernels/io/matrix_market.h"
#include "kernels/io/sparse_matrix.h"
#include "kernels/util/thread_pool.h"
#include "tests/support/gzip.h"

namespace crout {

// Everything that MatrixMarketReader returns for a text. The matrices are empty after an error, and
// so is the one of `sparse` and `dense` that the format does not use.
struct ReadResult {
  absl::Status status;
  std::optional<MatrixMarketHeader> header;
  SparseMatrix sparse;
  std::vector<double> dense;
  std::vector<double> dense_imaginary;
};

// Passes `text` to a reader in pieces. `next_size` returns the length of each piece in bytes; 0
// counts as 1.
ReadResult ReadPieces(std::string_view text, const std::function<size_t()>& next_size,
                      const MatrixMarketLimits& limits = {}, ThreadPool* pool = nullptr);

// Reads `text` in one piece.
ReadResult ReadWhole(std::string_view text, const MatrixMarketLimits& limits = {},
                     ThreadPool* pool = nullptr);

// Returns a description of the difference, or an empty string if both results are equal bit by bit,
// including error messages.
std::string Difference(const ReadResult& a, const ReadResult& b);

using testing::Gzip;

// The result of a slow reference reader that shares no code with the reader under test. It supports
// only well-formed coordinate and array files. Stored zeros are entries.
struct NaiveMatrix {
  int64_t rows = 0;
  int64_t columns = 0;
  std::map<std::pair<int64_t, int64_t>, std::complex<double>> entries;  // (column, row), 0-based
};
NaiveMatrix ReadNaively(const std::string& text);

// Returns a description of the difference, or an empty string if `result` has exactly the entries
// of `naive`, in order.
std::string Difference(const ReadResult& result, const NaiveMatrix& naive);

// Returns the text of a random n x n coordinate matrix with `entries` entries, some at the same
// position, and with comments, blank lines and several number formats.
std::string RandomMatrixText(int n, int entries, uint32_t seed);

}  // namespace crout

#endif  // CROUT_TESTS_KERNELS_IO_MATRIX_MARKET_TESTING_H_
