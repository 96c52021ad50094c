// SPDX-License-Identifier: Apache-2.0

// Files of the factors that `get` downloads.
#ifndef CROUT_CLIENT_CLI_OUTPUT_FACTOR_FILES_H_
#define CROUT_CLIENT_CLI_OUTPUT_FACTOR_FILES_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "client/cli/formats/array.h"
#include "client/cli/output/array_files.h"
#include "client/cli/output/array_writer.h"
#include "crout/client.h"
#include "crout/matrix_sink.h"

namespace crout::cli {

// Rows and columns are 1-based in Matrix Market and 0-based in NumPy's formats. Errors are
// FileErrors, except INTERNAL for an invalid reply of the server.

// Writes L and U column by column as the packed LU arrives. Neither is held in memory, unless the
// format requires it.
class DenseFactorFiles : public MatrixSink {
 public:
  // Client::Download sets `factors` before the first call of Begin.
  DenseFactorFiles(std::unique_ptr<ArrayWriter> l, std::unique_ptr<ArrayWriter> u,
                   const DenseFactors* factors)
      : factors_(*factors), l_(std::move(l)), u_(std::move(u)) {}

  absl::Status Begin(const DenseSpec& spec) override;
  absl::Status Append(absl::Span<const std::byte> bytes) override;
  absl::Status Close();

 private:
  const DenseFactors& factors_;
  int64_t n_ = 0;
  int64_t index_ = 0;  // index of the next element
  bool unit_in_l_ = true;
  ElementDecoder decoder_{Element::kFloat64};
  const std::unique_ptr<ArrayWriter> l_, u_;
};

// Writes p (row i of L U is row p(i) of the scaled A) and, if A was scaled, row_scales and
// col_scales.
absl::Status WriteVectors(ArrayFiles* files, const DenseFactors& factors);

// Writes L, U and p of one member of a batch.
absl::Status WriteMember(ArrayFiles* files, const MemberFactors& member);

// Writes L, with its diagonal, and U: as Matrix Market coordinates, or in NumPy's formats as the
// three arrays of compressed rows for scipy.sparse.csr_array (L_data, L_indices, L_indptr). Also
// writes p, the column permutation q, and the scales.
absl::Status WriteSparseFactors(ArrayFiles* files, const SparseFactors& factors);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_OUTPUT_FACTOR_FILES_H_
