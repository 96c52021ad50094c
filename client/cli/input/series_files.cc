// SPDX-License-Identifier: Apache-2.0

#include "client/cli/input/series_files.h"

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <system_error>
#include <type_traits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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

// Adds a file to its step. Returns the name of the step; empty if the file has no matrix's name.
absl::StatusOr<std::optional<std::string>> AddFile(const std::string& file,
                                                   std::map<std::string, StepFiles>* steps) {
  const std::string whole = fs::path(file).filename().string();
  absl::string_view name = whole;
  if (!StripMatrixEnding(&name)) return std::optional<std::string>();
  StepName read = Read(name);
  const auto [what, place] = PlaceOf(read.word, &(*steps)[read.step]);
  if (!place->empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(*place, " and ", file, " are both the ", what, " of step '", read.step, "'"));
  }
  *place = file;
  return std::optional(std::move(read.step));
}

// Inserts the steps, sorted by name, into `files` at the index `at`.
absl::Status InsertSorted(std::map<std::string, StepFiles> steps, size_t at,
                          std::vector<StepFiles>* files) {
  std::vector<StepFiles> sorted;
  for (auto& [name, step] : steps) {
    if (absl::Status status = Check(step); !status.ok()) return status;
    sorted.push_back(std::move(step));
  }
  files->insert(files->begin() + static_cast<std::ptrdiff_t>(at), sorted.begin(), sorted.end());
  return absl::OkStatus();
}

absl::Status NoSteps(const std::string& directory) {
  return absl::InvalidArgumentError(absl::StrCat(
      directory, " has no step files such as A_000.mtx and b_000.npy (`croutctl series --help`)"));
}

// Unpacks the member `name` of an archive, which is next in `tar`, into `directory`. Its path in
// the archive is ignored. Returns the path of the file; empty if it has no matrix's name.
absl::StatusOr<std::string> Unpack(const std::string& name, const std::string& directory,
                                   TarReader* tar) {
  const std::string to = absl::StrCat(directory, "/", fs::path(name).filename().string());
  absl::string_view stem = to;
  if (!StripMatrixEnding(&stem)) return std::string();
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
  return to;
}

// The name of step `number` with at least `digits` digits.
std::string NameOfStep(size_t number, size_t digits) {
  return absl::StrFormat("%0*d", static_cast<int>(digits), number);
}

// Whether the step `name` precedes step `number`: by its number or, if it has none, by its name.
bool IsBefore(const std::string& name, size_t number, size_t digits) {
  size_t given = 0;
  return absl::SimpleAtoi(name, &given) ? given < number : name < NameOfStep(number, digits);
}

// Number of digits in the name of step 0; 0 if there is no such step yet.
size_t DigitsOfZero(const std::map<std::string, StepFiles>& steps) {
  // Names of zeros are the first in the order of names, after the empty name.
  for (const auto& [name, step] : steps) {
    if (!name.empty() && absl::c_all_of(name, [](char c) { return c == '0'; })) return name.size();
  }
  return 0;
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
                                              bool has_common_rhs,
                                              std::function<absl::Time()> deadline) {
  SeriesSteps steps;
  steps.has_common_rhs_ = has_common_rhs;
  for (const std::string& path : paths) {
    absl::Status status = steps.Add(path, deadline);
    if (!status.ok()) return steps.Shown(status);
  }
  return steps;
}

std::string SeriesSteps::Shown(absl::string_view text) const {
  return absl::StrReplaceAll(text, names_);
}

absl::Status SeriesSteps::Shown(const absl::Status& status) const {
  const std::string message = Shown(status.message());
  return IsFileError(status) ? FileError(message) : absl::Status(status.code(), message);
}

absl::Status SeriesSteps::Add(const std::string& path,
                              const std::function<absl::Time()>& deadline) {
  if (path == "-") return AddStandardInput(deadline);
  std::error_code error;
  if (fs::is_directory(path, error)) return AddDirectory(path);
  if (IsTar(path)) return AddTar(path, path);
  files_.push_back({path, "", {}, ""});
  return absl::OkStatus();
}

absl::Status SeriesSteps::AddStandardInput(const std::function<absl::Time()>& deadline) {
  auto input = StandardInput(deadline);
  std::vector<std::byte> head(size_t{64} << 10);
  size_t filled = 0;
  std::optional<bool> is_tar;
  while (!is_tar && filled < head.size()) {
    const auto got = input->Read(absl::MakeSpan(head).subspan(filled));
    if (!got.ok()) return got.status();
    if (*got == 0) break;
    filled += *got;
    is_tar = IsTarThatBegins(absl::MakeConstSpan(head).first(filled));
  }
  head.resize(filled);
  input = Joined(std::move(head), std::move(input));
  if (is_tar.value_or(false)) {
    auto directory = NewDirectory(kStandardInput);
    if (!directory.ok()) return directory.status();
    arriving_ = {TarReader(kStandardInput, std::move(input)), *std::move(directory), files_.size()};
    return absl::OkStatus();
  }
  auto copy = CopyOf(input.get());
  if (!copy.ok()) return copy.status();
  files_.push_back({PathOf(*copy), "", {}, ""});
  names_.emplace_back(files_.back().matrix, kStandardInput);
  copies_.push_back(*std::move(copy));
  return absl::OkStatus();
}

absl::Status SeriesSteps::AddDirectory(const std::string& directory) {
  const auto files = FilesIn(directory);
  if (!files.ok()) return files.status();
  NamedSteps steps;
  for (const std::string& file : *files) {
    if (const auto added = AddFile(file, &steps); !added.ok()) return added.status();
  }
  if (steps.empty()) return NoSteps(directory);
  return InsertSorted(std::move(steps), files_.size(), &files_);
}

absl::StatusOr<std::string> SeriesSteps::NewDirectory(const std::string& name) {
  auto directory = TemporaryDirectory::Make();
  if (!directory.ok()) return directory.status();
  const std::string& unpacked = unpacked_.emplace_back(*std::move(directory)).path();
  names_.emplace_back(absl::StrCat(unpacked, "/"), absl::StrCat(name, ":"));
  names_.emplace_back(unpacked, name);
  return unpacked;
}

absl::Status SeriesSteps::AddTar(const std::string& path, const std::string& name) {
  const auto directory = NewDirectory(name);
  if (!directory.ok()) return directory.status();
  auto tar = TarReader::Open(path);
  if (!tar.ok()) return tar.status();
  for (;;) {
    const auto member = tar->Next();
    if (!member.ok()) return member.status();
    if (!member->has_value()) return AddDirectory(*directory);
    if (const auto file = Unpack(**member, *directory, &*tar); !file.ok()) return file.status();
  }
}

absl::StatusOr<bool> SeriesSteps::Await(size_t index) {
  while (arriving_ && index >= arriving_->at) {
    if (absl::Status status = ReadArriving(); !status.ok()) return Shown(status);
  }
  return index < files_.size();
}

absl::Status SeriesSteps::ReadArriving() {
  Arriving& arriving = *arriving_;
  const auto member = arriving.tar.Next();
  if (!member.ok()) return member.status();
  if (!member->has_value()) {
    if (arriving.steps.empty() && arriving.found == 0) return NoSteps(arriving.directory);
    absl::Status status = InsertSorted(std::move(arriving.steps), arriving.at, &files_);
    arriving_.reset();
    return status;
  }
  const auto file = Unpack(**member, arriving.directory, &arriving.tar);
  if (!file.ok() || file->empty()) return file.status();
  const auto name = AddFile(*file, &arriving.steps);
  if (!name.ok()) return name.status();
  if (arriving.found > 0 && IsBefore(**name, arriving.found, arriving.digits)) {
    if (arriving.steps[**name].x0 == *file) {
      arriving.steps.erase(**name);
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        *file,
        " arrived after its step was solved. Place the files of a step before the next "
        "step, or give the archive as a file"));
  }
  for (;;) {
    const size_t digits = arriving.found > 0 ? arriving.digits : DigitsOfZero(arriving.steps);
    const auto next = arriving.steps.find(NameOfStep(arriving.found, digits));
    if (digits == 0 || next == arriving.steps.end() || !IsComplete(next->second)) {
      return absl::OkStatus();
    }
    arriving.digits = digits;
    ++arriving.found;
    files_.insert(files_.begin() + static_cast<std::ptrdiff_t>(arriving.at++), next->second);
    arriving.steps.erase(next);
  }
}

bool SeriesSteps::IsComplete(const StepFiles& step) const {
  const bool has_matrix = !step.matrix.empty() || !step.change.paths().empty();
  return has_matrix && (has_common_rhs_ || !step.rhs.empty()) && Check(step).ok();
}

absl::StatusOr<MatrixChange> ReadChange(const ChangeFiles& files, Dtype dtype,
                                        const std::string& entry_digest) {
  if (!files.values.empty()) return ReadValues(files.values, dtype, entry_digest);
  if (!files.entries.empty()) return ReadEntries(files.entries, dtype);
  return ReadLowRank(files, dtype);
}

}  // namespace crout::cli
