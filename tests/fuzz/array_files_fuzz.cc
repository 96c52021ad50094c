// SPDX-License-Identifier: Apache-2.0

// Fuzzes croutctl's readers of .npy and plain text, with input in pieces of any size. An accepted
// file must have the number of bytes of its shape, and its layout and type must be convertible.
//
// The input is the file, followed by a byte with the size of the pieces.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "client/cli/formats/byte_input.h"
#include "client/cli/formats/npy.h"
#include "client/cli/formats/text_matrix.h"

namespace crout::cli {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

class PieceInput : public ByteInput {
 public:
  PieceInput(absl::Span<const std::byte> bytes, size_t piece) : rest_(bytes), piece_(piece) {}

  absl::StatusOr<size_t> Read(absl::Span<std::byte> to) override {
    const auto piece = rest_.subspan(0, std::min(piece_, to.size()));
    if (!piece.empty()) std::memcpy(to.data(), piece.data(), piece.size());
    rest_.remove_prefix(piece.size());
    return piece.size();
  }

 private:
  absl::Span<const std::byte> rest_;
  const size_t piece_;
};

void Check(Array array) {
  const auto elements = static_cast<__int128>(array.rows) * array.cols;
  Require(array.rows >= 0 && array.cols >= 0);
  Require(elements * static_cast<__int128>(SizeOf(ElementOf(array.dtype))) ==
          static_cast<__int128>(array.bytes.size()));
  array = std::move(array).ByColumns();
  if (elements > 0) array.At(array.rows - 1, array.cols - 1);
  const auto wide = std::move(array).As(Dtype::kComplex128);
  Require(wide.ok() && static_cast<__int128>(wide->bytes.size()) == 16 * elements);
}

void Fuzz(absl::Span<const std::byte> bytes) {
  const size_t piece = bytes.empty() ? 1 : 1 + std::to_integer<size_t>(bytes.back());
  if (!bytes.empty()) bytes.remove_suffix(1);
  PieceInput npy(bytes, piece), text(bytes, piece);
  if (auto array = ReadNpy(&npy); array.ok()) Check(*std::move(array));
  if (auto array = ReadTextMatrix(&text); array.ok()) Check(*std::move(array));
}

}  // namespace
}  // namespace crout::cli

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  crout::cli::Fuzz({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
