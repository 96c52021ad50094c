// SPDX-License-Identifier: Apache-2.0

// Encrypts and decrypts the contents of an object by AES-256-GCM, block by block, so that a part of
// an object can be read alone.
//
// A sealed object is a header and at least one block. All numbers are little-endian.
//
//   bytes  header
//   8      "CROUTGCM"
//   8      identifier of the key
//   32     salt, random for each object
//   8      size of the contents in bytes
//
// A block has kBlockBytes of encrypted contents, or the rest of the contents, and a tag of
// kTagBytes. Its nonce is its index. The tag also covers the header, so that neither the size nor
// the order of the blocks can change unnoticed. The key of the blocks is derived from the salt, the
// name of the object and the store's key (HKDF with SHA-256), so that one object cannot replace
// another.
#ifndef CROUT_SERVER_ENGINE_STORE_OBJECT_CIPHER_H_
#define CROUT_SERVER_ENGINE_STORE_OBJECT_CIPHER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace crout {

// The key of a store. Overwritten with zeros on destruction.
class ObjectKey {
 public:
  static constexpr size_t kBytes = 32;

  // Reads a key of 64 hexadecimal digits, as "openssl rand -hex 32" writes it. INVALID_ARGUMENT for
  // another text; the message does not contain the text.
  static absl::StatusOr<ObjectKey> Parse(std::string_view text);

  ObjectKey(const ObjectKey&) = default;
  ObjectKey& operator=(const ObjectKey&) = default;
  ~ObjectKey();

  std::span<const std::byte, kBytes> bytes() const { return bytes_; }

 private:
  ObjectKey() = default;

  std::array<std::byte, kBytes> bytes_ = {};
};

// The cipher of one object. Thread-safe. INTERNAL: OpenSSL fails.
class ObjectCipher {
 public:
  static constexpr size_t kHeaderBytes = 56;
  static constexpr size_t kBlockBytes = size_t{16} << 10;
  static constexpr size_t kTagBytes = 16;
  using Header = std::array<std::byte, kHeaderBytes>;

  // Creates the cipher of a new object with `size` bytes of contents.
  static absl::StatusOr<ObjectCipher> Create(const ObjectKey& key, std::string_view name,
                                             uint64_t size);
  // Creates the cipher of the object `name` that starts with `header` and has `sealed_size` bytes.
  // UNIMPLEMENTED: the object has another format. FAILED_PRECONDITION: another key sealed it.
  // DATA_LOSS: the sizes do not match. Other changes of the header are found by Open().
  static absl::StatusOr<ObjectCipher> FromHeader(const ObjectKey& key, std::string_view name,
                                                 const Header& header, uint64_t sealed_size);
  // Returns whether an object that starts with these bytes is sealed.
  static bool IsSealed(std::span<const std::byte> start);
  // Size of a sealed object.
  static uint64_t SealedSize(uint64_t size);

  ObjectCipher(const ObjectCipher&) = default;
  ObjectCipher& operator=(const ObjectCipher&) = default;
  ~ObjectCipher();

  const Header& header() const { return header_; }
  // Size of the contents.
  uint64_t size() const { return size_; }
  uint64_t sealed_size() const { return SealedSize(size_); }
  uint64_t blocks() const { return BlocksOf(size_); }
  // Size of the contents of a block.
  size_t BlockSize(uint64_t block) const;
  // Offset of a block in the sealed object.
  static uint64_t OffsetOf(uint64_t block) {
    return kHeaderBytes + block * (kBlockBytes + kTagBytes);
  }

  // `contents` has BlockSize(block) bytes, and `sealed` has kTagBytes more.
  absl::Status Seal(uint64_t block, std::span<const std::byte> contents,
                    std::span<std::byte> sealed) const;
  // DATA_LOSS if the block or the header was changed; `contents` then has zeros.
  absl::Status Open(uint64_t block, std::span<const std::byte> sealed,
                    std::span<std::byte> contents) const;

 private:
  ObjectCipher() = default;
  static uint64_t BlocksOf(uint64_t size);
  absl::Status DeriveKey(const ObjectKey& key, std::string_view name);

  Header header_ = {};
  uint64_t size_ = 0;
  std::array<std::byte, ObjectKey::kBytes> key_ = {};  // encrypts the blocks
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_STORE_OBJECT_CIPHER_H_
