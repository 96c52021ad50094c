// SPDX-License-Identifier: Apache-2.0

// Tests the memory that cuDSS allocates within the block of a factor, and the error if the cuDSS
// library is not found.
#include "kernels/cuda/cudss/arena.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/cuda/cudss/library.h"
#include "tests/support/status_matchers.h"

namespace crout::cuda::arena_test {
namespace {

constexpr size_t kPiece = CudssArena::kAlignment;

class CudssArenaTest : public ::testing::Test {
 protected:
  size_t At(const void* piece) const {
    return static_cast<const std::byte*>(piece) - memory_.data();
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(8 * kPiece);
  CudssArena arena_{memory_};
};

TEST_F(CudssArenaTest, AllocatesAlignedPiecesUntilItIsFull) {
  for (size_t k = 0; k < 8; ++k) {
    EXPECT_EQ(At(arena_.Allocate(kPiece - k)), k * kPiece);
  }
  EXPECT_FALSE(arena_.ConsumeRefusal());
  EXPECT_EQ(arena_.Allocate(1), nullptr);
  EXPECT_TRUE(arena_.ConsumeRefusal());
}

TEST_F(CudssArenaTest, RefusesPiecesLargerThanItself) {
  EXPECT_EQ(arena_.Allocate(8 * kPiece + 1), nullptr);
  EXPECT_EQ(arena_.Allocate(SIZE_MAX), nullptr);
  EXPECT_TRUE(arena_.ConsumeRefusal());
  EXPECT_NE(arena_.Allocate(8 * kPiece), nullptr);
  EXPECT_FALSE(arena_.ConsumeRefusal()) << "since then";
  CudssArena empty({});
  EXPECT_EQ(empty.Allocate(1), nullptr);
}

TEST_F(CudssArenaTest, MergesFreePiecesInAnyOrder) {
  std::vector<void*> pieces(8);
  for (const auto& order : std::vector<std::vector<int>>{
           {0, 1, 2, 3, 4, 5, 6, 7}, {7, 6, 5, 4, 3, 2, 1, 0}, {1, 3, 5, 7, 0, 2, 4, 6}}) {
    for (void*& piece : pieces) ASSERT_NE(piece = arena_.Allocate(kPiece), nullptr);
    for (const int k : order) EXPECT_TRUE(arena_.Free(pieces[k]));
    void* const whole = arena_.Allocate(8 * kPiece);
    ASSERT_NE(whole, nullptr);
    EXPECT_TRUE(arena_.Free(whole));
  }
}

TEST_F(CudssArenaTest, AllocatesFromTheSmallestFreeBlockThatFits) {
  std::vector<void*> pieces;
  for (const size_t size : {3, 1, 2, 2}) pieces.push_back(arena_.Allocate(size * kPiece));
  EXPECT_TRUE(arena_.Free(pieces[0]));
  EXPECT_TRUE(arena_.Free(pieces[2]));
  EXPECT_EQ(arena_.Allocate(2 * kPiece), pieces[2]);
  EXPECT_EQ(arena_.Allocate(3 * kPiece), pieces[0]);
}

TEST_F(CudssArenaTest, FreesOnlyItsOwnPieces) {
  void* const piece = arena_.Allocate(2 * kPiece);
  EXPECT_FALSE(arena_.Free(memory_.data() + kPiece));
  EXPECT_FALSE(arena_.Free(nullptr));
  EXPECT_TRUE(arena_.Free(piece));
  EXPECT_FALSE(arena_.Free(piece));
}

// Calls the handler as cuDSS does.
TEST_F(CudssArenaTest, HandlerReturnsNullForZeroBytes) {
  CudssArena* arena = &arena_;
  const CudssMemoryHandler handler = HandlerOf(&arena);
  void* piece = memory_.data();
  EXPECT_EQ(handler.allocate(handler.context, &piece, 0, nullptr), 0);
  EXPECT_EQ(piece, nullptr) << "an address of no bytes is one that it cannot give back";
  EXPECT_EQ(handler.free(handler.context, nullptr, 0, nullptr), 0);
  EXPECT_FALSE(arena_.ConsumeRefusal());
  EXPECT_EQ(handler.allocate(handler.context, &piece, 8 * kPiece, nullptr), 0);
  EXPECT_EQ(piece, memory_.data());
  void* another = memory_.data();
  EXPECT_NE(handler.allocate(handler.context, &another, 1, nullptr), 0);
  EXPECT_EQ(another, nullptr);
  EXPECT_EQ(handler.free(handler.context, piece, 8 * kPiece, nullptr), 0);
  EXPECT_NE(handler.free(handler.context, piece, 8 * kPiece, nullptr), 0);
}

TEST(CudssLibraryTest, ErrorNamesThePackageToInstall) {
  const auto library = CudssLibrary::Load();
  if (library.ok()) GTEST_SKIP() << (*library)->version() << " is installed";
  EXPECT_EQ(library.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(library.status().message(),
              ::testing::AllOf(::testing::HasSubstr("nvidia-cudss-cu13"),
                               ::testing::HasSubstr("LD_LIBRARY_PATH"),
                               ::testing::HasSubstr("libcudss.so.1"),
                               ::testing::Not(::testing::HasSubstr("/"))));
}

}  // namespace
}  // namespace crout::cuda::arena_test
