// SPDX-License-Identifier: Apache-2.0

#include "server/engine/store/factor_file.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/jobs/batch/batch_factorize.h"
#include "kernels/jobs/batch/batch_payload.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/digest.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"
#include "server/engine/store/stored_analysis.h"

namespace crout {
namespace {

constexpr absl::string_view kAnalysisPrefix = "analysis.";
// Prefix of the keys of the checksums. The rest of the key is the name of the tensor.
constexpr absl::string_view kChecksumPrefix = "xxh3_64:";

constexpr size_t kFirstReadBytes = 4096;

struct KnownPart {
  std::string_view name;
  PartKind kind;
};
// The parts of all factors that a client can name.
constexpr std::array<KnownPart, 8> kKnownParts = {{{kLuPart, PartKind::kFactor},
                                                   {kIpivPart, PartKind::kFactor},
                                                   {kScalesPart, PartKind::kFactor},
                                                   {kMatrixPart, PartKind::kOperand},
                                                   {kSparseMatrixPart, PartKind::kOperand},
                                                   {kPreparedPart, PartKind::kPrepared},
                                                   {kMembersPart, PartKind::kFactor},
                                                   {kFiguresPart, PartKind::kFactor}}};

uint64_t ChecksumOfBytes(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

struct TensorForm {
  TensorType type = TensorType::kU8;
  std::vector<int64_t> shape;
};

// Returns the form of an n x n matrix in column-major order, transposed: safetensors are row-major.
// A complex element is a pair of real ones.
TensorForm MatrixForm(DType dtype, int64_t n) {
  TensorForm form = {RealOf(dtype) == DType::kFloat32 ? TensorType::kF32 : TensorType::kF64,
                     {n, n}};
  if (IsComplex(dtype)) form.shape.push_back(2);
  return form;
}

TensorForm VectorForm(TensorType type, size_t bytes) {
  return {type, {static_cast<int64_t>(bytes / SizeOf(type))}};
}

// Returns the form of a part for readers in other programs; plain bytes if only its method
// interprets it.
TensorForm FormOf(const FactorSummary& summary, const FactorPart& part) {
  const size_t bytes = part.buffer.size();
  const bool dense = summary.kind() == FactorKind::kDense;
  std::optional<TensorForm> form;
  if (part.name == kLuPart && dense) form = MatrixForm(summary.factor_dtype, summary.n);
  if (part.name == kMatrixPart && dense) form = MatrixForm(summary.matrix_dtype, summary.n);
  if (part.name == kIpivPart) form = VectorForm(TensorType::kI64, bytes);
  if (part.name == kScalesPart) form = VectorForm(TensorType::kF64, bytes);
  if (form) {
    const size_t expected = std::accumulate(form->shape.begin(), form->shape.end(),
                                            SizeOf(form->type), std::multiplies<>());
    if (expected == bytes) return *form;
  }
  return VectorForm(TensorType::kU8, bytes);
}

template <class T>
constexpr TensorType kTensorTypeOf = std::is_same_v<T, double>    ? TensorType::kF64
                                     : std::is_same_v<T, int64_t> ? TensorType::kI64
                                                                  : TensorType::kI32;

absl::Status DamagedFile(absl::string_view reason) {
  return absl::DataLossError(absl::StrCat("the stored factor is damaged: ", reason));
}

}  // namespace

void FactorImage::Add(std::string name, TensorType type, std::vector<int64_t> shape,
                      std::span<const std::byte> bytes) {
  header_.metadata[absl::StrCat(kChecksumPrefix, name)] = DigestText(ChecksumOfBytes(bytes));
  header_.tensors.push_back({std::move(name), type, std::move(shape), 0, bytes.size()});
  contents_.push_back(bytes);
}

absl::StatusOr<FactorImage> FactorImage::Make(const FactorRecord& record,
                                              const FactorParts& parts) {
  FactorImage image;
  image.header_.metadata = EncodeRecord(record);
  // Wide elements first, so that each tensor is aligned.
  std::vector<std::pair<const FactorPart*, TensorForm>> forms;
  for (const FactorPart& part : parts) forms.emplace_back(&part, FormOf(record.summary, part));
  const auto add_parts = [&](size_t element) {
    for (auto& [part, form] : forms) {
      if (SizeOf(form.type) != element) continue;
      image.Add(std::string(part->name), form.type, std::move(form.shape),
                {part->buffer.data(), part->buffer.size()});
    }
  };
  const auto add_arrays = [&](size_t element) {
    if (!record.summary.sparse) return;
    ForEachArray(*record.summary.sparse->analysis, [&](const char* name, const auto& array) {
      using T = typename std::remove_cvref_t<decltype(array)>::value_type;
      if (sizeof(T) != element) return;
      image.Add(name, kTensorTypeOf<T>, {std::ssize(array)}, std::as_bytes(std::span(array)));
    });
  };
  for (const size_t element : {8, 4, 1}) {
    add_arrays(element);
    add_parts(element);
  }
  CROUT_ASSIGN_OR_RETURN(image.start_, EncodeTensorHeader(image.header_));
  image.bytes_ = image.start_.size();
  for (const std::span<const std::byte> content : image.contents_) image.bytes_ += content.size();
  return image;
}

std::vector<std::span<const std::byte>> FactorImage::contents() const {
  std::vector<std::span<const std::byte>> contents = {std::as_bytes(std::span(start_))};
  contents.insert(contents.end(), contents_.begin(), contents_.end());
  return contents;
}

absl::StatusOr<FactorFile> FactorFile::Open(std::unique_ptr<const ObjectReader> file) {
  FactorFile opened;
  opened.file_ = std::move(file);
  const uint64_t size = opened.file_->size();
  if (size < kTensorPrefixBytes) return DamagedFile("it has no header");
  // Most headers arrive with the first read.
  std::string start(std::min<uint64_t>(size, kFirstReadBytes), '\0');
  CROUT_RETURN_IF_ERROR(opened.file_->ReadAt(0, std::as_writable_bytes(std::span(start))));
  CROUT_ASSIGN_OR_RETURN(
      const size_t length,
      TensorHeaderLength(std::as_bytes(std::span(start)).first(kTensorPrefixBytes), size));
  const size_t read = start.size();
  start.resize(kTensorPrefixBytes + length);
  if (start.size() > read) {
    CROUT_RETURN_IF_ERROR(
        opened.file_->ReadAt(read, std::as_writable_bytes(std::span(start)).subspan(read)));
  }
  opened.data_start_ = start.size();
  CROUT_ASSIGN_OR_RETURN(const TensorHeader header,
                         DecodeTensorHeader(std::string_view(start).substr(kTensorPrefixBytes),
                                            size - opened.data_start_));
  CROUT_ASSIGN_OR_RETURN(opened.record_, DecodeRecord(header.metadata));
  CROUT_RETURN_IF_ERROR(opened.Classify(header));
  CROUT_RETURN_IF_ERROR(opened.CheckPartSizes());
  return opened;
}

absl::Status FactorFile::Classify(const TensorHeader& header) {
  for (const Tensor& tensor : header.tensors) {
    StoredTensor stored{tensor};
    const auto digits = header.metadata.find(absl::StrCat(kChecksumPrefix, tensor.name));
    if (digits == header.metadata.end() || digits->second.size() != 16 ||
        !absl::SimpleHexAtoi(digits->second, &stored.checksum)) {
      return DamagedFile("a tensor has no checksum");
    }
    if (absl::StartsWith(tensor.name, kAnalysisPrefix)) {
      analysis_.push_back(std::move(stored));
      continue;
    }
    const auto known =
        std::find_if(kKnownParts.begin(), kKnownParts.end(),
                     [&](const KnownPart& part) { return part.name == tensor.name; });
    if (known == kKnownParts.end()) return DamagedFile("it has an unknown part");
    if (SizeOfPart(known->name) > 0) return DamagedFile("it has a part twice");
    parts_.push_back({known->name, known->kind, std::move(stored)});
  }
  return absl::OkStatus();
}

size_t FactorFile::SizeOfPart(std::string_view name) const {
  for (const StoredPart& part : parts_) {
    if (part.name == name) return part.stored.tensor.bytes;
  }
  return 0;
}

absl::Status FactorFile::CheckPartSizes() const {
  const FactorSummary& summary = record_.summary;
  const int64_t n = summary.n;
  absl::Status status;
  const auto require = [&](std::string_view part, const absl::StatusOr<size_t>& bytes) {
    if (!bytes.ok() || SizeOfPart(part) < *bytes) {
      status.Update(DamagedFile(absl::StrCat("its part \"", ToAbsl(part), "\" is too short")));
    }
  };
  const auto require_if_kept = [&](std::string_view part, const absl::StatusOr<size_t>& bytes) {
    if (SizeOfPart(part) > 0) require(part, bytes);
  };
  const auto vector = [](int64_t size) { return MatrixBytes(size, 1, DType::kFloat64); };
  require_if_kept(kSparseMatrixPart, SparseBytes(n, summary.matrix_nonzeros, summary.matrix_dtype));
  if (summary.batch) {
    const BatchExtent& extent = summary.batch->extent;
    const absl::StatusOr<size_t> block = BatchBytes(extent);
    const absl::StatusOr<size_t> members = BatchMembersBytes(extent.members);
    if (!members.ok() || extent.diagonals < 0) return DamagedFile("its batch has no valid extent");
    if (extent.members == 0) {
      return parts_.empty() ? absl::OkStatus() : DamagedFile("its batch has no members");
    }
    require(kLuPart, block);
    require_if_kept(kMatrixPart, block);
    require(kIpivPart, vector(extent.diagonals));
    require(kMembersPart, members);
    require(kFiguresPart, static_cast<size_t>(extent.members) * BatchFigures::kBytesPerMember);
    return status;
  }
  require_if_kept(kMatrixPart, MatrixBytes(n, n, summary.matrix_dtype));
  require_if_kept(kScalesPart, MatrixBytes(n, 2, DType::kFloat64));
  if (summary.sparse || !summary.has_factors()) return status;
  require(kLuPart, MatrixBytes(n, n, summary.factor_dtype));
  require(kIpivPart, vector(n));
  if (summary.row_scaled || summary.col_scaled) {
    require(kScalesPart, MatrixBytes(n, 2, DType::kFloat64));
  }
  if (summary.preparation && n > 0) require(kPreparedPart, size_t{1});
  return status;
}

size_t FactorFile::part_bytes() const {
  size_t sum = 0;
  for (const StoredPart& part : parts_) sum += BlockBytes(part.stored.tensor.bytes);
  return sum;
}

size_t FactorFile::analysis_bytes() const {
  size_t sum = sizeof(Analysis);
  for (const StoredTensor& array : analysis_) sum += array.tensor.bytes;
  return record_.summary.sparse ? sum : 0;
}

std::string FactorFile::analysis_id() const {
  std::string id;
  if (!record_.summary.sparse) return id;
  const Analysis& numbers = *record_.summary.sparse->analysis;
  absl::StrAppend(&id, numbers.n, ",", numbers.nonzeros, ",", numbers.pattern.half[0], ",",
                  numbers.pattern.half[1], ",", numbers.unmatched_row, ",", numbers.kept, ",",
                  numbers.matched, ",", numbers.pivot_threshold, ",", numbers.delayed, ",",
                  numbers.regrouped);
  for (const StoredTensor& array : analysis_) {
    absl::StrAppend(&id, ";", array.tensor.name, ",", array.tensor.bytes, ",", array.checksum);
  }
  return id;
}

bool FactorFile::has_matrix() const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [](const StoredPart& part) { return part.kind == PartKind::kOperand; });
}

absl::Status FactorFile::Read(const StoredTensor& stored, std::span<std::byte> to) const {
  CROUT_RETURN_IF_ERROR(file_->ReadAt(data_start_ + stored.tensor.offset, to));
  if (ChecksumOfBytes(to) == stored.checksum) return absl::OkStatus();
  return DamagedFile(absl::StrCat("the checksum of \"", stored.tensor.name, "\" is wrong"));
}

absl::StatusOr<Analysis> FactorFile::ReadAnalysis() const {
  Analysis analysis = *record_.summary.sparse->analysis;
  absl::Status status;
  ForEachArray(analysis, [&](const char* name, auto& array) {
    using T = typename std::remove_cvref_t<decltype(array)>::value_type;
    if (!status.ok()) return;
    const auto found = std::find_if(analysis_.begin(), analysis_.end(),
                                    [&](const auto& stored) { return stored.tensor.name == name; });
    if (found == analysis_.end() || found->tensor.type != kTensorTypeOf<T>) {
      status = DamagedFile(absl::StrCat("it has no array \"", name, "\""));
      return;
    }
    array.resize(found->tensor.bytes / sizeof(T));
    status = Read(*found, std::as_writable_bytes(std::span(array)));
  });
  CROUT_RETURN_IF_ERROR(status);
  CROUT_RETURN_IF_ERROR(CheckArrays(analysis));
  return analysis;
}

absl::StatusOr<FactorParts> FactorFile::ReadParts(MemoryResource& memory) const {
  FactorParts parts;
  for (const StoredPart& part : parts_) {
    CROUT_ASSIGN_OR_RETURN(Buffer buffer, memory.Allocate(part.stored.tensor.bytes));
    CROUT_RETURN_IF_ERROR(Read(part.stored, {buffer.data(), buffer.size()}));
    parts.Add(part.name, part.kind, std::move(buffer));
  }
  return parts;
}

}  // namespace crout
