// The factors that `get` downloads, as files.
#ifndef CROUT_CLIENT_CLI_FACTOR_FILES_H_
#define CROUT_CLIENT_CLI_FACTOR_FILES_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "client/cli/array.h"
#include "client/cli/array_files.h"
#include "client/cli/array_writer.h"
#include "crout/client.h"
#include "crout/matrix_sink.h"

namespace crout::cli {

// Rows and columns are counted from 1 in Matrix Market, and from 0 where NumPy reads the files. All
// errors are FileErrors, but for what a server may not send: INTERNAL.

// Writes L and U column by column as the packed LU arrives: neither is ever in memory, unless the
// format asks for it.
class DenseFactorFiles : public client::MatrixSink {
 public:
  // `header` is what GetFactors sets before the first call of Begin.
  DenseFactorFiles(std::unique_ptr<ArrayWriter> l, std::unique_ptr<ArrayWriter> u,
                   const v1::GetFactorsHeader* header)
      : header_(*header), l_(std::move(l)), u_(std::move(u)) {}

  absl::Status Begin(const v1::DenseSpec& spec) override;
  absl::Status Append(absl::Span<const std::byte> bytes) override;
  absl::Status Close();

 private:
  const v1::GetFactorsHeader& header_;
  int64_t n_ = 0;
  int64_t index_ = 0;  // of the element that comes next
  bool unit_in_l_ = true;
  ElementDecoder decoder_{Element::kFloat64};
  const std::unique_ptr<ArrayWriter> l_, u_;
};

// p, whose row i of L U is row p(i) of the scaled A, and, where A was scaled, the scales:
// row_scales and col_scales.
absl::Status WriteVectors(ArrayFiles* files, const v1::GetFactorsHeader& header);

// L, U and p of one member of a batch.
absl::Status WriteMember(ArrayFiles* files, const client::BatchDownload& member);

// L, with its diagonal, and U as Matrix Market coordinates; where NumPy reads the files each as the
// three vectors of its compressed rows, which scipy.sparse.csr_array takes: L_data, L_indices,
// L_indptr. p, q, of the columns, and the scales.
absl::Status WriteSparseFactors(ArrayFiles* files, const client::SparseFactors& factors);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_FACTOR_FILES_H_
