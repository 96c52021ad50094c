// SPDX-License-Identifier: Apache-2.0

#include "client/cli/input/series_files.h"

#include <algorithm>
#include <complex>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <system_error>
#include <type_traits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/types/span.h"
#include "client/cli/exit_codes.h"
#include "client/cli/formats/array.h"
#include "client/cli/formats/matrix_market.h"
#include "client/cli/formats/tar_reader.h"
#include "client/cli/input/local_matrix.h"
#include "client/cli/input/matrix_input.h"

namespace crout::cli {
namespace {

namespace fs = std::filesystem;

// Parts of a file name.
struct StepName {
  std::string word;
  std::string step;
};

StepName Read(absl::string_view name) {
  const auto letters = static_cast<size_t>(
      std::find_if_not(name.begin(), name.end(), absl::ascii_isalpha) - name.begin());
  std::string word = absl::AsciiStrToLower(name.substr(0, letters));
  name.remove_prefix(letters);
  // "x0" is the only word with a digit; other digits belong to the step's name.
  if (word == "x" && name.size() > 1 && name[0] == '0' &&
      absl::StrContains("_-.", name.substr(1, 1))) {
    word = "x0";
    name.remove_prefix(1);
  }
  while (!name.empty() && absl::StrContains("_-.", name.substr(0, 1))) name.remove_prefix(1);
  return {std::move(word), std::string(name)};
}

// Returns the description of a file with this word in its name, and its field in `step`.
std::pair<const char*, std::string*> PlaceOf(const std::string& word, StepFiles* step) {
  if (word == "b" || word == "rhs") return {"right-hand side", &step->rhs};
  if (word == "x0") return {"start", &step->x0};
  if (word == "values") return {"values", &step->change.values};
  if (word == "entries") return {"entries", &step->change.entries};
  if (word == "u") return {"U", &step->change.u};
  if (word == "v") return {"V", &step->change.v};
  return {"matrix", &step->matrix};
}

// Accepts one matrix, one change or neither. Otherwise INVALID_ARGUMENT, naming the files.
absl::Status Check(const StepFiles& step) {
  const ChangeFiles& change = step.change;
  const std::vector<std::string> changes = change.paths();
  if (!step.matrix.empty() && !changes.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(changes.front(), " and ", step.matrix,
                     " are a change and the matrix of one step. Keep one of them"));
  }
  if (change.u.empty() != change.v.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        change.u, change.v, ": a low-rank change needs both U and V. Add the other file"));
  }
  const int kinds = !change.values.empty() + !change.entries.empty() + !change.u.empty();
  if (kinds <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      absl::StrJoin(changes, " and "), " change the matrix of the same step. Keep one of them"));
}

absl::StatusOr<std::vector<std::string>> FilesIn(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (entry->is_directory(error)) continue;
    files.push_back(entry->path().string());
  }
  if (error) return FileErrnoError(error.value(), absl::StrCat("cannot read ", directory));
  std::sort(files.begin(), files.end());
  return files;
}

absl::StatusOr<std::vector<StepFiles>> StepsIn(const std::string& directory) {
  const auto files = FilesIn(directory);
  if (!files.ok()) return files.status();
  std::map<std::string, StepFiles> steps;
  for (const std::string& file : *files) {
    const std::string whole = fs::path(file).filename().string();
    absl::string_view name = whole;
    if (!StripMatrixEnding(&name)) continue;
    const StepName read = Read(name);
    const auto [what, place] = PlaceOf(read.word, &steps[read.step]);
    if (!place->empty()) {
      return absl::InvalidArgumentError(absl::StrCat(*place, " and ", file, " are both the ", what,
                                                     " of step '", read.step, "'"));
    }
    *place = file;
  }
  if (steps.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        directory,
        " has no step files such as A_000.mtx and b_000.npy (`croutctl series --help`)"));
  }
  std::vector<StepFiles> sorted;
  for (auto& [name, files_of_step] : steps) {
    if (absl::Status status = Check(files_of_step); !status.ok()) return status;
    sorted.push_back(std::move(files_of_step));
  }
  return sorted;
}

absl::StatusOr<MatrixChange> ReadValues(const std::string& path, Dtype dtype,
                                        const std::string& entry_digest) {
  const auto input = MatrixInput::Open(path, dtype, absl::InfiniteFuture());
  if (!input.ok()) return input.status();
  if (const auto& sparse = input->sparse()) {
    return WithType(dtype, [&](auto type) -> absl::StatusOr<MatrixChange> {
      return MatrixChange::Values(ElementsOf<decltype(type)>(sparse->values),
                                  sparse->EntryDigest());
    });
  }
  const auto values = ReadRhs(path, dtype);
  if (!values.ok()) return values.status();
  if (values->rows != 1 && values->cols != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", values->rows, " x ", values->cols,
                     ", but changed values are a vector. Write one column"));
  }
  return WithType(dtype, [&](auto type) -> absl::StatusOr<MatrixChange> {
    return MatrixChange::Values(ElementsOf<decltype(type)>(*values), entry_digest);
  });
}

template <class T>
bool Take(std::complex<double> value, std::vector<T>* values) {
  if constexpr (std::is_floating_point_v<T>) {
    values->push_back(static_cast<T>(value.real()));
    return value.imag() == 0;
  } else {
    values->push_back(static_cast<T>(value));
    return true;
  }
}

absl::StatusOr<MatrixChange> ReadEntries(const std::string& path, Dtype dtype) {
  const auto matrix = LocalMatrix::Load(path);
  if (!matrix.ok()) return matrix.status();
  constexpr int64_t kMaxOrder = std::numeric_limits<int32_t>::max();
  if (matrix->dense() != nullptr || matrix->rows() > kMaxOrder || matrix->cols() > kMaxOrder) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        " is not in Matrix Market coordinate format. Write the changed entries in that format"));
  }
  return WithType(dtype, [&](auto type) -> absl::StatusOr<MatrixChange> {
    std::vector<int32_t> rows, cols;
    std::vector<decltype(type)> values;
    bool fits = true;
    matrix->ForEach([&](int64_t row, int64_t col, std::complex<double> value) {
      rows.push_back(static_cast<int32_t>(row));
      cols.push_back(static_cast<int32_t>(col));
      fits &= Take(value, &values);
    });
    if (!fits)
      return absl::InvalidArgumentError(absl::StrCat(
          path,
          ": the values are complex, the matrix is real. Write real values, or start with a "
          "complex matrix"));
    return MatrixChange::Entries<decltype(type)>(rows, cols, values);
  });
}

absl::StatusOr<MatrixChange> ReadLowRank(const ChangeFiles& files, Dtype dtype) {
  const auto u = ReadRhs(files.u, dtype);
  if (!u.ok()) return u.status();
  const auto v = ReadRhs(files.v, dtype);
  if (!v.ok()) return v.status();
  if (u->rows != v->rows || u->cols != v->cols) {
    return absl::InvalidArgumentError(absl::StrCat(files.u, " is ", u->rows, " x ", u->cols, ", ",
                                                   files.v, " ", v->rows, " x ", v->cols));
  }
  return WithType(dtype, [&](auto type) -> absl::StatusOr<MatrixChange> {
    using T = decltype(type);
    const absl::Span<const T> by_columns = ElementsOf<T>(*v);
    std::vector<T> by_rows;
    for (int64_t i = 0; i < v->rows; ++i) {
      for (int64_t k = 0; k < v->cols; ++k) by_rows.push_back(by_columns[i + k * v->rows]);
    }
    return MatrixChange::LowRank<T>(ElementsOf<T>(*u), by_rows, u->rows, u->cols);
  });
}

}  // namespace

std::vector<std::string> ChangeFiles::paths() const {
  std::vector<std::string> paths;
  for (const std::string* path : {&values, &entries, &u, &v}) {
    if (!path->empty()) paths.push_back(*path);
  }
  return paths;
}

absl::StatusOr<SeriesSteps> SeriesSteps::Find(const std::vector<std::string>& paths,
                                              absl::Time deadline) {
  SeriesSteps steps;
  for (const std::string& path : paths) {
    absl::Status status = steps.Add(path, deadline);
    if (IsFileError(status)) return FileError(steps.Shown(status.message()));
    if (!status.ok()) return absl::Status(status.code(), steps.Shown(status.message()));
  }
  return steps;
}

std::string SeriesSteps::Shown(absl::string_view text) const {
  return absl::StrReplaceAll(text, names_);
}

absl::Status SeriesSteps::Add(const std::string& path, absl::Time deadline) {
  std::string file = path;
  if (path == "-") {
    auto copy = CopyOfStandardInput(deadline);
    if (!copy.ok()) return copy.status();
    file = PathOf(*copy);
    names_.emplace_back(file, kStandardInput);
    copies_.push_back(*std::move(copy));
  }
  std::error_code error;
  if (fs::is_directory(file, error)) return AddDirectory(file);
  if (IsTar(file)) return AddTar(file, path == "-" ? kStandardInput : path);
  files_.push_back({file, "", {}, ""});
  return absl::OkStatus();
}

absl::Status SeriesSteps::AddDirectory(const std::string& directory) {
  const auto found = StepsIn(directory);
  if (found.ok()) files_.insert(files_.end(), found->begin(), found->end());
  return found.status();
}

absl::Status SeriesSteps::AddTar(const std::string& path, const std::string& name) {
  auto directory = TemporaryDirectory::Make();
  if (!directory.ok()) return directory.status();
  const std::string& unpacked = unpacked_.emplace_back(*std::move(directory)).path();
  names_.emplace_back(absl::StrCat(unpacked, "/"), absl::StrCat(name, ":"));
  names_.emplace_back(unpacked, name);
  auto tar = TarReader::Open(path);
  if (!tar.ok()) return tar.status();
  for (;;) {
    const auto member = tar->Next();
    if (!member.ok()) return member.status();
    if (!member->has_value()) return AddDirectory(unpacked);
    // The member is unpacked into this directory; its path in the archive is ignored.
    const std::string to = absl::StrCat(unpacked, "/", fs::path(**member).filename().string());
    absl::string_view stem = to;
    if (!StripMatrixEnding(&stem)) continue;
    std::error_code error;
    if (fs::exists(to, error)) {
      return absl::InvalidArgumentError(
          absl::StrCat(to, " is in the archive twice. Remove one of them"));
    }
    std::ofstream file(to, std::ios::binary);
    absl::Status read = tar->Read([&](absl::string_view piece) {
      file.write(piece.data(), std::ssize(piece));
      return absl::OkStatus();
    });
    if (!read.ok()) return read;
    file.close();
    if (!file) return FileError(absl::StrCat("cannot unpack ", to));
  }
}

absl::StatusOr<MatrixChange> ReadChange(const ChangeFiles& files, Dtype dtype,
                                        const std::string& entry_digest) {
  if (!files.values.empty()) return ReadValues(files.values, dtype, entry_digest);
  if (!files.entries.empty()) return ReadEntries(files.entries, dtype);
  return ReadLowRank(files, dtype);
}

}  // namespace crout::cli
