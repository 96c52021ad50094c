// SPDX-License-Identifier: Apache-2.0

#include "server/engine/store/object_cipher.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace crout::object_cipher_test {
namespace {

using ::crout::testing::FailsWith;
using ::crout::testing::IsOk;
using Bytes = std::vector<std::byte>;

constexpr char kKey[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
constexpr char kOtherKey[] = "100102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

ObjectKey Key(const char* text = kKey) { return *ObjectKey::Parse(text); }

Bytes Contents(size_t size) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 131 + i / 251);
  return bytes;
}

Bytes Seal(const Bytes& contents, const std::string& name = "a-1") {
  const auto cipher = ObjectCipher::Create(Key(), name, contents.size());
  Bytes sealed(cipher->sealed_size());
  std::copy(cipher->header().begin(), cipher->header().end(), sealed.begin());
  for (uint64_t i = 0; i < cipher->blocks(); ++i) {
    const size_t size = cipher->BlockSize(i);
    EXPECT_THAT(cipher->Seal(
                    i, std::span(contents).subspan(i * ObjectCipher::kBlockBytes, size),
                    std::span(sealed).subspan(cipher->OffsetOf(i), size + ObjectCipher::kTagBytes)),
                IsOk());
  }
  return sealed;
}

absl::StatusOr<ObjectCipher> CipherOf(const Bytes& sealed, const std::string& name = "a-1",
                                      const char* key = kKey) {
  ObjectCipher::Header header;
  std::copy_n(sealed.begin(), header.size(), header.begin());
  return ObjectCipher::FromHeader(Key(key), name, header, sealed.size());
}

absl::StatusOr<Bytes> Open(const Bytes& sealed, const std::string& name = "a-1") {
  const auto cipher = CipherOf(sealed, name);
  if (!cipher.ok()) return cipher.status();
  Bytes contents(cipher->size());
  for (uint64_t i = 0; i < cipher->blocks(); ++i) {
    const size_t size = cipher->BlockSize(i);
    const absl::Status status = cipher->Open(
        i, std::span(sealed).subspan(cipher->OffsetOf(i), size + ObjectCipher::kTagBytes),
        std::span(contents).subspan(i * ObjectCipher::kBlockBytes, size));
    if (!status.ok()) return status;
  }
  return contents;
}

TEST(ObjectCipherTest, RoundTripOfAllSizesOfTheLastBlock) {
  for (const size_t size :
       {size_t{0}, size_t{1}, ObjectCipher::kBlockBytes - 1, ObjectCipher::kBlockBytes,
        ObjectCipher::kBlockBytes + 1, 3 * ObjectCipher::kBlockBytes + 77}) {
    const Bytes contents = Contents(size);
    const Bytes sealed = Seal(contents);
    EXPECT_EQ(sealed.size(), ObjectCipher::SealedSize(size));
    const auto opened = Open(sealed);
    ASSERT_THAT(opened.status(), IsOk()) << size;
    EXPECT_EQ(*opened, contents) << size;
  }
}

TEST(ObjectCipherTest, TheSameContentsNeverGiveTheSameBytes) {
  const Bytes contents = Contents(100);
  EXPECT_NE(Seal(contents), Seal(contents));
}

TEST(ObjectCipherTest, EveryFlippedBitIsFound) {
  const Bytes sealed = Seal(Contents(100));
  for (size_t i = 0; i < sealed.size(); ++i) {
    Bytes flipped = sealed;
    flipped[i] ^= std::byte{0x10};
    EXPECT_FALSE(Open(flipped).ok()) << "byte " << i;
  }
}

TEST(ObjectCipherTest, ExchangedBlocksAreFound) {
  Bytes sealed = Seal(Contents(2 * ObjectCipher::kBlockBytes));
  const size_t second = ObjectCipher::OffsetOf(1);
  std::swap_ranges(sealed.begin() + ObjectCipher::OffsetOf(0), sealed.begin() + second,
                   sealed.begin() + second);
  EXPECT_THAT(Open(sealed).status(), FailsWith(absl::StatusCode::kDataLoss, "sealed file"));
}

TEST(ObjectCipherTest, AnotherLengthIsFound) {
  const Bytes sealed = Seal(Contents(2 * ObjectCipher::kBlockBytes));
  Bytes shorter(sealed.begin(), sealed.begin() + ObjectCipher::OffsetOf(1));
  EXPECT_THAT(Open(shorter).status(), FailsWith(absl::StatusCode::kDataLoss, "sealed file"));
  Bytes longer = sealed;
  longer.push_back(std::byte{0});
  EXPECT_THAT(Open(longer).status(), FailsWith(absl::StatusCode::kDataLoss, "sealed file"));
  Bytes huge = sealed;
  std::fill_n(huge.begin() + 48, 8, std::byte{0xff});  // the size in the header
  EXPECT_THAT(Open(huge).status(), FailsWith(absl::StatusCode::kDataLoss, "sealed file"));
}

TEST(ObjectCipherTest, AnObjectUnderAnotherNameIsNotOpened) {
  EXPECT_THAT(Open(Seal(Contents(10), "a-1"), "a-2").status(),
              FailsWith(absl::StatusCode::kDataLoss, "sealed file"));
}

TEST(ObjectCipherTest, AnotherKeyIsToldFromDamage) {
  EXPECT_THAT(CipherOf(Seal(Contents(10)), "a-1", kOtherKey).status(),
              FailsWith(absl::StatusCode::kFailedPrecondition, "another key"));
  EXPECT_THAT(CipherOf(Contents(100)).status(),
              FailsWith(absl::StatusCode::kUnimplemented, "not sealed"));
}

// Sealed by the package `cryptography` of Python, with the salt 0, 1, ..., 31 and the name "a-1":
//   HKDF(SHA256(), 32, salt, b"crout object a-1").derive(bytes(range(32)))
//   AESGCM(key).encrypt(bytes(12), b"hello", header)
TEST(ObjectCipherTest, OpensWhatAnotherImplementationSealed) {
  const std::string text = absl::HexStringToBytes(
      "43524f555447434dfe3dcb88c66bf202000102030405060708090a0b0c0d0e0f1011121314151617"
      "18191a1b1c1d1e1f05000000000000005429d662b049d953b8fe002fe6211ea8a1c23b9168");
  Bytes sealed(text.size());
  std::transform(text.begin(), text.end(), sealed.begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  const auto opened = Open(sealed);
  ASSERT_THAT(opened.status(), IsOk());
  std::string contents;
  for (const std::byte b : *opened) contents += static_cast<char>(b);
  EXPECT_EQ(contents, "hello");
}

TEST(ObjectKeyTest, RefusesOtherTextsWithoutShowingThem) {
  EXPECT_THAT(ObjectKey::Parse(std::string(kKey) + "\n").status(), IsOk());
  for (const std::string& text : {std::string(), std::string(kKey).substr(1),
                                  std::string(kKey) + "0", "g" + std::string(kKey).substr(1)}) {
    const absl::Status status = ObjectKey::Parse(text).status();
    EXPECT_THAT(status, FailsWith(absl::StatusCode::kInvalidArgument, "openssl rand -hex 32"));
    EXPECT_EQ(status.message().find("0102"), std::string::npos);
  }
}

}  // namespace
}  // namespace crout::object_cipher_test
