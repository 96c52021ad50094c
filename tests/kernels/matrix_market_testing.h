// What the Matrix Market tests share: ways of feeding a reader, and a second reader to compare
// with.
#ifndef CROUT_TESTS_KERNELS_MATRIX_MARKET_TESTING_H_
#define CROUT_TESTS_KERNELS_MATRIX_MARKET_TESTING_H_

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

struct ReadResult {
  absl::Status status;
  std::optional<MatrixMarketHeader> header;
  SparseMatrix sparse;
  std::vector<double> dense;
  std::vector<double> dense_imaginary;
};

// Gives `text` to a reader in pieces; `next_size` says how long each is (at least 1 is used).
ReadResult ReadPieces(std::string_view text, const std::function<size_t()>& next_size,
                      const MatrixMarketLimits& limits = {}, ThreadPool* pool = nullptr);

// In one piece.
ReadResult ReadWhole(std::string_view text, const MatrixMarketLimits& limits = {},
                     ThreadPool* pool = nullptr);

// Empty if both results agree bit by bit, the text of the errors included; else what differs.
std::string Difference(const ReadResult& a, const ReadResult& b);

using testing::Gzip;

// What a file means, read slowly by the C library: iostreams, strtod and a map. Shares no code
// with the reader, and knows well-formed files alone. Stored zeros are entries too.
struct NaiveMatrix {
  int64_t rows = 0;
  int64_t columns = 0;
  std::map<std::pair<int64_t, int64_t>, std::complex<double>> entries;  // (column, row), 0-based.
};
NaiveMatrix ReadNaively(const std::string& text);

// Empty if `result` holds the entries of `naive`, all of them and in order; else what differs.
std::string Difference(const ReadResult& result, const NaiveMatrix& naive);

// Text of a random n by n coordinate matrix with comments, blank lines, several spellings of
// numbers and duplicates among its entries.
std::string RandomMatrixText(int n, int entries, uint32_t seed);

}  // namespace crout

#endif  // CROUT_TESTS_KERNELS_MATRIX_MARKET_TESTING_H_
