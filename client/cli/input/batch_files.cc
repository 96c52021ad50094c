// SPDX-License-Identifier: Apache-2.0

#include "client/cli/input/batch_files.h"

#include <algorithm>
#include <complex>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/exit_codes.h"
#include "client/cli/formats/matrix_market.h"
#include "client/cli/formats/tar_reader.h"
#include "client/cli/formats/temporary_file.h"
#include "client/cli/input/local_matrix.h"
#include "client/cli/input/matrix_input.h"
#include "client/cli/report/text.h"

namespace crout::cli {
namespace {

namespace fs = std::filesystem;

bool HasMatrixName(absl::string_view name) { return StripMatrixEnding(&name); }

// Memory that is left for matrices.
class MatrixQuota {
 public:
  absl::Status Take(int64_t rows, int64_t cols, size_t element, const std::string& name) {
    // The product of two 64-bit sizes fits 128 bits; with the element size it may not.
    const __int128 elements = static_cast<__int128>(rows) * cols;
    const auto size = static_cast<int64_t>(element);
    if (elements > left_ / size) {
      return absl::ResourceExhaustedError(absl::StrCat(
          Printable(name), " is ", rows, " x ", cols,
          ": with this matrix the batch exceeds the limit of ", FormatBytes(kMaxBatchBytes)));
    }
    left_ -= static_cast<int64_t>(elements) * size;
    return absl::OkStatus();
  }

 private:
  int64_t left_ = kMaxBatchBytes;
};

template <class T>
void Fill(const LocalMatrix& matrix, Array* dense) {
  dense->bytes.resize(static_cast<size_t>(matrix.rows() * matrix.cols()) * sizeof(T));
  auto* values = reinterpret_cast<T*>(dense->bytes.data());
  matrix.ForEach([&](int64_t i, int64_t j, std::complex<double> value) {
    T& place = values[i + j * matrix.rows()];
    if constexpr (std::is_same_v<T, double>) {
      place += value.real();
    } else {
      place += value;
    }
  });
}

absl::StatusOr<Array> ReadMatrix(const std::string& path, const std::string& name,
                                 std::optional<Dtype> dtype, MatrixQuota* quota) {
  const auto input = MatrixInput::OpenByColumns(path, dtype, absl::InfiniteFuture());
  if (!input.ok()) return input.status();
  if (const auto& array = input->array()) {
    absl::Status fits = quota->Take(array->rows, array->cols, ElementSize(array->dtype), name);
    if (!fits.ok()) return fits;
    return *array;
  }
  const auto text = LocalMatrix::Load(path);
  if (!text.ok()) return text.status();
  const bool complex = input->sparse() ? IsComplex(ElementOf(input->sparse()->values.dtype))
                                       : MatrixMarketIsComplex(path);
  Array dense;
  dense.rows = text->rows();
  dense.cols = text->cols();
  dense.dtype = complex ? Dtype::kComplex128 : Dtype::kFloat64;
  if (absl::Status fits = quota->Take(dense.rows, dense.cols, ElementSize(dense.dtype), name);
      !fits.ok()) {
    return fits;
  }
  if (complex) {
    Fill<std::complex<double>>(*text, &dense);
  } else {
    Fill<double>(*text, &dense);
  }
  return std::move(dense).As(input->dtype());
}

class BatchReader {
 public:
  BatchReader(std::optional<Dtype> dtype, absl::Time deadline)
      : dtype_(dtype), deadline_(deadline) {}

  absl::Status Read(const std::string& path) {
    std::error_code error;
    if (fs::is_directory(path, error)) return ReadDirectory(path);
    if (path != "-") return ReadTarOrFile(path, path);
    const auto copy = CopyOfStandardInput(deadline_);
    if (!copy.ok()) return copy.status();
    return ReadTarOrFile(PathOf(*copy), kStandardInput);
  }

  std::vector<BatchFile> Take() { return std::move(files_); }

 private:
  absl::Status ReadTarOrFile(const std::string& path, const std::string& name) {
    return IsTar(path) ? ReadTar(path, name) : ReadFile(path, name);
  }

  absl::Status ReadFile(const std::string& path, const std::string& name) {
    auto matrix = ReadMatrix(path, name, dtype_, &quota_);
    if (!matrix.ok()) return Named(matrix.status(), path, name);
    files_.push_back({name, *std::move(matrix)});
    return absl::OkStatus();
  }

  absl::Status ReadDirectory(const std::string& directory) {
    std::vector<std::string> paths;
    std::error_code error;
    fs::directory_iterator entry(directory, error);
    for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
      std::error_code none;
      if (entry->is_directory(none) || !HasMatrixName(entry->path().filename().string())) continue;
      paths.push_back(entry->path().string());
    }
    if (error) return FileErrnoError(error.value(), absl::StrCat("cannot read ", directory));
    if (paths.empty()) return NoMatrix(directory);
    std::sort(paths.begin(), paths.end());
    for (const std::string& path : paths) {
      if (absl::Status status = ReadFile(path, path); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status ReadTar(const std::string& path, const std::string& name) {
    auto tar = TarReader::Open(path);
    if (!tar.ok()) return Named(tar.status(), path, name);
    const size_t before = files_.size();
    for (;;) {
      const auto member = tar->Next();
      if (!member.ok()) return Named(member.status(), path, name);
      if (!member->has_value()) break;
      if (!HasMatrixName(**member)) continue;
      const auto file = NewTemporaryFile();
      if (!file.ok()) return file.status();
      absl::Status read = tar->Read([&](absl::string_view piece) { return Write(*file, piece); });
      if (!read.ok()) return Named(read, path, name);
      read = ReadFile(PathOf(*file), absl::StrCat(name, ":", **member));
      if (!read.ok()) return read;
    }
    return files_.size() == before ? NoMatrix(name) : absl::OkStatus();
  }

  static absl::Status NoMatrix(const std::string& path) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has no matrix file (.mtx, .npy, .npz, .txt or .csv)"));
  }

  const std::optional<Dtype> dtype_;
  const absl::Time deadline_;
  MatrixQuota quota_;
  std::vector<BatchFile> files_;
};

// The narrowest type that holds all files.
Dtype CommonType(const std::vector<BatchFile>& files) {
  bool complex = false, wide = files.empty();
  for (const BatchFile& file : files) {
    const Dtype dtype = file.matrix.dtype;
    complex |= dtype == Dtype::kComplex64 || dtype == Dtype::kComplex128;
    wide |= dtype == Dtype::kFloat64 || dtype == Dtype::kComplex128;
  }
  if (complex) return wide ? Dtype::kComplex128 : Dtype::kComplex64;
  return wide ? Dtype::kFloat64 : Dtype::kFloat32;
}

}  // namespace

absl::StatusOr<std::vector<BatchFile>> ReadBatch(const std::vector<std::string>& paths,
                                                 std::optional<Dtype> dtype, absl::Time deadline) {
  BatchReader reader(dtype, deadline);
  for (const std::string& path : paths) {
    if (absl::Status status = reader.Read(path); !status.ok()) return status;
  }
  std::vector<BatchFile> files = reader.Take();
  const Dtype common = dtype ? *dtype : CommonType(files);
  for (BatchFile& file : files) {
    auto converted = std::move(file.matrix).As(common);
    if (!converted.ok()) return converted.status();
    file.matrix = *std::move(converted);
  }
  return files;
}

void AddTo(BatchSource* source, const Array& matrix, int64_t member) {
  const auto add = [&](auto element) {
    source->AddFor(member, reinterpret_cast<const decltype(element)*>(matrix.bytes.data()),
                   matrix.rows, matrix.cols);
  };
  switch (matrix.dtype) {
    case Dtype::kFloat32:
      return add(float{});
    case Dtype::kComplex64:
      return add(std::complex<float>{});
    case Dtype::kComplex128:
      return add(std::complex<double>{});
    default:
      return add(double{});
  }
}

}  // namespace crout::cli
