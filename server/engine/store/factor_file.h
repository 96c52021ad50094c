// SPDX-License-Identifier: Apache-2.0

// One factor as a safetensors file. docs/operations/store.md describes the tensors and the texts.
#ifndef CROUT_SERVER_ENGINE_STORE_FACTOR_FILE_H_
#define CROUT_SERVER_ENGINE_STORE_FACTOR_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/factor_parts.h"
#include "kernels/memory.h"
#include "kernels/sparse/analysis.h"
#include "server/engine/store/factor_record.h"
#include "server/engine/store/object_store.h"
#include "server/engine/store/safetensors.h"

namespace crout {

// The contents of a file that is to be written. Refers to the bytes of the parts and to the
// analysis, which outlive this object.
class FactorImage {
 public:
  // `parts` are in host memory. Reads all of them, for their checksums. INVALID_ARGUMENT if a name
  // is not UTF-8.
  static absl::StatusOr<FactorImage> Make(const FactorRecord& record, const FactorParts& parts);

  size_t bytes() const { return bytes_; }
  // Returns the contents, in their order. Valid while this object lives and is not moved.
  std::vector<std::span<const std::byte>> contents() const;

 private:
  FactorImage() = default;
  void Add(std::string name, TensorType type, std::vector<int64_t> shape,
           std::span<const std::byte> bytes);

  TensorHeader header_;
  std::vector<std::span<const std::byte>> contents_;  // bytes of the tensors
  std::string start_;                                 // start of the file, up to the data
  size_t bytes_ = 0;
};

// An open file. The file may be hostile: all sizes are checked against the file and the record.
//
// Errors are those of ObjectReader and of DecodeRecord(). DATA_LOSS: the file is damaged.
// UNAVAILABLE: the storage failed, and the file may be intact.
class FactorFile {
 public:
  // Reads the header only.
  static absl::StatusOr<FactorFile> Open(std::unique_ptr<const ObjectReader> file);

  const FactorRecord& record() const { return record_; }
  // Bytes of the parts in memory (FactorParts::bytes()).
  size_t part_bytes() const;
  // Bytes of the analysis with its arrays; 0 unless the factor is sparse.
  size_t analysis_bytes() const;
  // Equal for factors with equal analyses: the numbers of the analysis, and the size and checksum
  // of each array. Empty unless the factor is sparse.
  std::string analysis_id() const;
  bool has_matrix() const;

  // Reads and checks the analysis. Requires a sparse factor.
  absl::StatusOr<Analysis> ReadAnalysis() const;
  // Reads and checks all parts. Allocates part_bytes() from `memory`.
  absl::StatusOr<FactorParts> ReadParts(MemoryResource& memory) const;

 private:
  struct StoredTensor {
    Tensor tensor;
    uint64_t checksum = 0;
  };
  struct StoredPart {
    std::string_view name;  // a string literal
    PartKind kind = PartKind::kFactor;
    StoredTensor stored;
  };

  FactorFile() = default;
  absl::Status Classify(const TensorHeader& header);
  absl::Status CheckPartSizes() const;
  size_t SizeOfPart(std::string_view name) const;
  absl::Status Read(const StoredTensor& stored, std::span<std::byte> to) const;

  std::unique_ptr<const ObjectReader> file_;
  uint64_t data_start_ = 0;
  FactorRecord record_;
  std::vector<StoredPart> parts_;
  std::vector<StoredTensor> analysis_;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_STORE_FACTOR_FILE_H_
