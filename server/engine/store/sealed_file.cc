// SPDX-License-Identifier: Apache-2.0

#include "server/engine/store/sealed_file.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "kernels/util/status_macros.h"

namespace crout {
namespace {

constexpr size_t kBlockBytes = ObjectCipher::kBlockBytes;
constexpr size_t kSealedBlockBytes = kBlockBytes + ObjectCipher::kTagBytes;
constexpr size_t kBlocksAtOnce = 64;  // read or written by one system call

// Copies the contents of a list of buffers in their order.
class Gatherer {
 public:
  explicit Gatherer(ObjectBytes buffers) : buffers_(buffers) {}

  // Fills `to`. The buffers have that many bytes left.
  void Next(std::span<std::byte> to) {
    while (!to.empty()) {
      const std::span<const std::byte> rest = buffers_.front().subspan(offset_);
      const size_t count = std::min(rest.size(), to.size());
      std::copy_n(rest.begin(), count, to.begin());
      to = to.subspan(count);
      offset_ += count;
      if (count < rest.size()) continue;
      buffers_ = buffers_.subspan(1);
      offset_ = 0;
    }
  }

 private:
  ObjectBytes buffers_;
  size_t offset_ = 0;  // in the first buffer
};

class SealedReader final : public ObjectReader {
 public:
  SealedReader(std::unique_ptr<ObjectReader> sealed, const ObjectCipher& cipher)
      : sealed_(std::move(sealed)), cipher_(cipher) {}

  uint64_t size() const override { return cipher_.size(); }

  absl::Status ReadAt(uint64_t offset, std::span<std::byte> to) const override {
    if (offset > size() || to.size() > size() - offset) {
      return absl::DataLossError("the sealed file ends too early");
    }
    std::vector<std::byte> sealed;
    std::vector<std::byte> whole(kBlockBytes);  // a block of which only a part is wanted
    while (!to.empty()) {
      const uint64_t first = offset / kBlockBytes;
      const uint64_t last = (offset + to.size() - 1) / kBlockBytes;
      const uint64_t end = std::min(last + 1, first + kBlocksAtOnce);
      const uint64_t start = ObjectCipher::OffsetOf(first);
      sealed.resize(ObjectCipher::OffsetOf(end - 1) + cipher_.BlockSize(end - 1) +
                    ObjectCipher::kTagBytes - start);
      CROUT_RETURN_IF_ERROR(sealed_->ReadAt(start, sealed));
      for (uint64_t block = first; block < end; ++block) {
        const size_t size = cipher_.BlockSize(block);
        const std::span<const std::byte> from = std::span(sealed).subspan(
            ObjectCipher::OffsetOf(block) - start, size + ObjectCipher::kTagBytes);
        const size_t skipped = offset - block * kBlockBytes;
        const size_t count = std::min(size - skipped, to.size());
        if (count == size) {
          CROUT_RETURN_IF_ERROR(cipher_.Open(block, from, to.first(count)));
        } else {
          CROUT_RETURN_IF_ERROR(cipher_.Open(block, from, std::span(whole).first(size)));
          std::memcpy(to.data(), whole.data() + skipped, count);
        }
        to = to.subspan(count);
        offset += count;
      }
    }
    return absl::OkStatus();
  }

 private:
  const std::unique_ptr<ObjectReader> sealed_;
  const ObjectCipher cipher_;
};

}  // namespace

absl::Status WriteSealed(const OpenFile& file, const ObjectKey& key, std::string_view name,
                         ObjectBytes contents) {
  uint64_t size = 0;
  for (const std::span<const std::byte> buffer : contents) size += buffer.size();
  CROUT_ASSIGN_OR_RETURN(const ObjectCipher cipher, ObjectCipher::Create(key, name, size));
  CROUT_RETURN_IF_ERROR(WriteAll(file, cipher.header()));
  Gatherer gatherer(contents);
  std::vector<std::byte> plain(kBlockBytes);
  std::vector<std::byte> sealed(kBlocksAtOnce * kSealedBlockBytes);
  size_t filled = 0;
  for (uint64_t block = 0; block < cipher.blocks(); ++block) {
    const std::span<std::byte> next = std::span(plain).first(cipher.BlockSize(block));
    gatherer.Next(next);
    const std::span<std::byte> to =
        std::span(sealed).subspan(filled, next.size() + ObjectCipher::kTagBytes);
    CROUT_RETURN_IF_ERROR(cipher.Seal(block, next, to));
    filled += to.size();
    if (filled < sealed.size() && block + 1 < cipher.blocks()) continue;
    CROUT_RETURN_IF_ERROR(WriteAll(file, std::span(sealed).first(filled)));
    filled = 0;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ObjectReader>> OpenSealed(std::unique_ptr<ObjectReader> sealed,
                                                         const ObjectKey& key,
                                                         std::string_view name) {
  ObjectCipher::Header header = {};
  const size_t start = std::min<uint64_t>(header.size(), sealed->size());
  CROUT_RETURN_IF_ERROR(sealed->ReadAt(0, std::span(header).first(start)));
  CROUT_ASSIGN_OR_RETURN(const ObjectCipher cipher,
                         ObjectCipher::FromHeader(key, name, header, sealed->size()));
  return std::make_unique<SealedReader>(std::move(sealed), cipher);
}

}  // namespace crout
