// SPDX-License-Identifier: Apache-2.0

#include "client/cli/output/array_writer.h"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <complex>
#include <fstream>
#include <iostream>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/exit_codes.h"
#include "client/cli/formats/npy.h"
#include "client/cli/formats/npz.h"

namespace crout::cli {
namespace {

// A file, or standard output.
class Output {
 public:
  explicit Output(std::string path) : path_(std::move(path)) {}

  absl::Status Open() {
    if (path_ == "-") {
      if (begun_)
        return FileError(
            "the call was retried after part of X had been printed. Write X to a file with "
            "--output");
      begun_ = true;
      return absl::OkStatus();
    }
    file_.close();
    file_.clear();
    errno = 0;
    file_.open(path_, std::ios::trunc | std::ios::binary);
    if (!file_) return FileErrnoError(errno, absl::StrCat("cannot write ", path_));
    return absl::OkStatus();
  }

  void Write(absl::string_view text) {
    stream().write(text.data(), static_cast<std::streamsize>(text.size()));
  }

  absl::Status Close() {
    if (path_ == "-") {
      if (!std::cout.flush()) return FileError("cannot write standard output");
      return absl::OkStatus();
    }
    file_.close();
    if (!file_) return FileError(absl::StrCat("cannot write all of ", path_));
    return absl::OkStatus();
  }

 private:
  std::ostream& stream() { return path_ == "-" ? std::cout : file_; }

  const std::string path_;
  std::ofstream file_;
  bool begun_ = false;  // whether standard output has been written to
};

// Formats numbers in the fewest digits that read back to the same value.
class NumberText {
 public:
  template <class T>
  void Add(T value) {
    end_ = std::to_chars(end_, text_ + sizeof text_, value).ptr;
  }
  void AddChar(char c) { *end_++ = c; }
  absl::string_view text() const { return {text_, static_cast<size_t>(end_ - text_)}; }

 private:
  char text_[80];
  char* end_ = text_;
};

class MatrixMarketWriter : public ArrayWriter {
 public:
  explicit MatrixMarketWriter(std::string path) : output_(std::move(path)) {}

  absl::Status Begin(Element element, int64_t rows, int64_t cols) override {
    decoder_ = ElementDecoder(element);
    if (absl::Status status = output_.Open(); !status.ok()) return status;
    const char* const field = IsComplex(element)           ? "complex"
                              : element == Element::kInt64 ? "integer"
                                                           : "real";
    output_.Write(
        absl::StrCat("%%MatrixMarket matrix array ", field, " general\n", rows, " ", cols, "\n"));
    return absl::OkStatus();
  }

  absl::Status Append(absl::Span<const std::byte> bytes) override {
    decoder_.Append(bytes, [this](auto value) {
      NumberText number;
      if constexpr (std::is_arithmetic_v<decltype(value)>) {
        number.Add(value);
      } else {
        number.Add(value.real());
        number.AddChar(' ');
        number.Add(value.imag());
      }
      number.AddChar('\n');
      output_.Write(number.text());
    });
    return absl::OkStatus();
  }

  absl::Status Close() override { return output_.Close(); }

 private:
  Output output_;
  ElementDecoder decoder_{Element::kFloat64};
};

class NpyWriter : public ArrayWriter {
 public:
  explicit NpyWriter(std::string path) : output_(std::move(path)) {}

  absl::Status Begin(Element element, int64_t rows, int64_t cols) override {
    if (absl::Status status = output_.Open(); !status.ok()) return status;
    output_.Write(NpyHeader(element, rows, cols));
    return absl::OkStatus();
  }
  absl::Status Append(absl::Span<const std::byte> bytes) override {
    output_.Write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    return absl::OkStatus();
  }
  absl::Status Close() override { return output_.Close(); }

 private:
  Output output_;
};

class NpzArrayWriter : public ArrayWriter {
 public:
  explicit NpzArrayWriter(std::string path) : path_(std::move(path)) {}

  absl::Status Begin(Element element, int64_t rows, int64_t cols) override {
    writer_ = nullptr;
    auto writer = NpzWriter::Open(path_);
    if (!writer.ok()) return writer.status();
    writer_ = *std::move(writer);
    if (absl::Status status = writer_->BeginArray("x"); !status.ok()) return status;
    return writer_->Write(NpyHeader(element, rows, cols));
  }
  absl::Status Append(absl::Span<const std::byte> bytes) override {
    return writer_->Write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  absl::Status Close() override { return writer_->Close(); }

 private:
  const std::string path_;
  std::unique_ptr<NpzWriter> writer_;
};

class TextWriter : public ArrayWriter {
 public:
  explicit TextWriter(std::string path)
      : separator_(absl::EndsWith(path, ".csv") ? ',' : ' '), output_(std::move(path)) {}

  absl::Status Begin(Element element, int64_t rows, int64_t cols) override {
    element_ = element;
    rows_ = static_cast<size_t>(rows);
    cols_ = static_cast<size_t>(cols);
    bytes_.clear();
    return output_.Open();
  }
  absl::Status Append(absl::Span<const std::byte> bytes) override {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return absl::OkStatus();
  }
  absl::Status Close() override {
    for (size_t i = 0; i < rows_; ++i) {
      for (size_t j = 0; j < cols_; ++j) {
        const std::byte* at = &bytes_[(i + j * rows_) * SizeOf(element_)];
        WithElement(element_, at, [&](auto value) { Write(value, j + 1 < cols_); });
      }
      if (cols_ == 0) output_.Write("\n");
    }
    return output_.Close();
  }

 private:
  template <class T>
  void Write(T value, bool more) {
    NumberText number;
    if constexpr (std::is_arithmetic_v<T>) {
      number.Add(value);
    } else {
      number.AddChar('(');
      number.Add(value.real());
      if (!std::signbit(value.imag())) number.AddChar('+');
      number.Add(value.imag());
      number.AddChar('j');
      number.AddChar(')');
    }
    number.AddChar(more ? separator_ : '\n');
    output_.Write(number.text());
  }

  const char separator_;
  Output output_;
  Element element_ = Element::kFloat64;
  size_t rows_ = 0, cols_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace

FileFormat FormatOf(const std::string& path) {
  if (absl::EndsWith(path, ".npy")) return FileFormat::kNpy;
  if (absl::EndsWith(path, ".npz")) return FileFormat::kNpz;
  if (absl::EndsWith(path, ".txt") || absl::EndsWith(path, ".csv")) return FileFormat::kText;
  return FileFormat::kMatrixMarket;
}

bool HasUnknownEnding(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  const size_t dot = name.rfind('.');
  const bool has_ending = dot != std::string::npos && dot > 0 && dot + 1 < name.size();
  return has_ending && FormatOf(name) == FileFormat::kMatrixMarket && !absl::EndsWith(name, ".mtx");
}

const char* NameOf(FileFormat format) {
  switch (format) {
    case FileFormat::kNpy:
      return "npy";
    case FileFormat::kNpz:
      return "npz";
    case FileFormat::kText:
      return "txt";
    default:
      return "mtx";
  }
}

std::unique_ptr<ArrayWriter> NewArrayWriter(const std::string& path, FileFormat format) {
  switch (format) {
    case FileFormat::kNpy:
      return std::make_unique<NpyWriter>(path);
    case FileFormat::kNpz:
      return std::make_unique<NpzArrayWriter>(path);
    case FileFormat::kText:
      return std::make_unique<TextWriter>(path);
    default:
      return std::make_unique<MatrixMarketWriter>(path);
  }
}

ArrayFileSink::ArrayFileSink(const std::string& path, FileFormat format) {
  if (!path.empty()) writer_ = NewArrayWriter(path, format);
}

absl::Status ArrayFileSink::Begin(const DenseSpec& spec) {
  if (spec.layout == StorageOrder::kRowMajor) {
    return absl::InternalError("the server sent a row-major matrix");
  }
  if (writer_ == nullptr) return absl::OkStatus();
  return writer_->Begin(ElementOf(spec.dtype), spec.rows, spec.cols);
}

absl::Status ArrayFileSink::Append(absl::Span<const std::byte> bytes) {
  return writer_ == nullptr ? absl::OkStatus() : writer_->Append(bytes);
}

absl::Status ArrayFileSink::Close() {
  return writer_ == nullptr ? absl::OkStatus() : writer_->Close();
}

}  // namespace crout::cli
