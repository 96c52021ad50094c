#include "client/cli/array_writer.h"

#include <cerrno>
#include <charconv>

#include "absl/strings/str_cat.h"

namespace crout::cli {

absl::Status ArrayWriter::Open(const std::string& path, const char* field, int64_t rows,
                               int64_t cols) {
  path_ = path;
  file_.close();
  file_.clear();
  file_.open(path, std::ios::trunc);
  if (!file_) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
  file_ << "%%MatrixMarket matrix array " << field << " general\n" << rows << " " << cols << "\n";
  return absl::OkStatus();
}

template <class T>
void ArrayWriter::Add(T value) {
  char text[40];
  char* end = std::to_chars(text, text + sizeof text - 1, value).ptr;
  *end++ = '\n';
  file_.write(text, end - text);
}

template <class T>
void ArrayWriter::Add(std::complex<T> value) {
  char text[80];
  char* end = std::to_chars(text, text + 39, value.real()).ptr;
  *end++ = ' ';
  end = std::to_chars(end, text + sizeof text - 1, value.imag()).ptr;
  *end++ = '\n';
  file_.write(text, end - text);
}

template void ArrayWriter::Add(double);
template void ArrayWriter::Add(float);
template void ArrayWriter::Add(int64_t);
template void ArrayWriter::Add(std::complex<double>);
template void ArrayWriter::Add(std::complex<float>);

absl::Status ArrayWriter::Close() {
  file_.close();
  if (!file_) return absl::DataLossError(absl::StrCat("cannot write all of ", path_));
  return absl::OkStatus();
}

const char* FieldOf(v1::Dtype dtype) {
  const bool complex = dtype == v1::DTYPE_COMPLEX64 || dtype == v1::DTYPE_COMPLEX128;
  return complex ? "complex" : "real";
}

void ElementDecoder::Begin(v1::Dtype dtype) {
  dtype_ = dtype;
  index_ = 0;
  partial_size_ = 0;
}

absl::Status ArrayFileSink::Begin(const v1::DenseSpec& spec) {
  if (spec.layout() == v1::LAYOUT_ROW_MAJOR) {
    return absl::InternalError("the server answered in row-major order");
  }
  decoder_.Begin(spec.dtype());
  return writer_.Open(path_, FieldOf(spec.dtype()), spec.rows(), spec.cols());
}

absl::Status ArrayFileSink::Append(absl::Span<const std::byte> bytes) {
  decoder_.Append(bytes, [this](int64_t, auto value) { writer_.Add(value); });
  return absl::OkStatus();
}

}  // namespace crout::cli
