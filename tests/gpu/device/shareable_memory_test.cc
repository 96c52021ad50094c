// SPDX-License-Identifier: Apache-2.0

// Tests GPU memory for other processes: its contents, its descriptor, and copies from it.
#include <cuda.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "kernels/cuda/device/driver_function.h"
#include "tests/gpu/harness/gpu_testing.h"

namespace crout::shareable_memory_test {
namespace {

constexpr size_t kUnit = Device::kShareableUnit;

class ShareableMemoryTest : public GpuTest {
 protected:
  static std::unique_ptr<ShareableMemory> Allocate(size_t bytes) {
    auto memory = Gpu().AllocateShareable(bytes);
    EXPECT_TRUE(memory.ok()) << memory.status();
    return memory.ok() ? *std::move(memory) : nullptr;
  }
  static std::vector<std::byte> Read(ShareableMemory& memory, size_t offset, size_t size) {
    std::vector<std::byte> bytes(size);
    EXPECT_TRUE(memory.CopyToHost(memory.bytes().data() + offset, bytes).ok());
    return bytes;
  }
};

TEST_F(ShareableMemoryTest, IsClearedEachTime) {
  for (int i = 0; i < 3; ++i) {
    const auto memory = Allocate(8 * kUnit);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(memory->bytes().size(), 8 * kUnit);
    const std::vector<std::byte> zeros(memory->bytes().size());
    EXPECT_TRUE(Read(*memory, 0, zeros.size()) == zeros);
    const std::vector<std::byte> noise(zeros.size(), std::byte{0x5a});
    EXPECT_TRUE(memory->CopyFromHost(noise, memory->bytes().data()).ok());
    EXPECT_TRUE(Read(*memory, 0, noise.size()) == noise);
  }
}

TEST_F(ShareableMemoryTest, RefusesSizesThatTheGpuCannotAllocate) {
  EXPECT_FALSE(Gpu().AllocateShareable(kUnit + 1).ok());
  EXPECT_FALSE(Gpu().AllocateShareable(0).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(
      Gpu().AllocateShareable((Gpu().info().memory_bytes / kUnit + 1) * kUnit).status()));
  EXPECT_TRUE(Gpu().healthy());
  EXPECT_NE(Allocate(kUnit), nullptr);
}

TEST_F(ShareableMemoryTest, HasAUuid) { EXPECT_EQ(Gpu().info().uuid.size(), 16); }

TEST_F(ShareableMemoryTest, UploadsWithoutTheHost) {
  Bench bench(Gpu());
  const auto memory = Allocate(kUnit);
  ASSERT_NE(memory, nullptr);
  std::vector<std::byte> bytes(kUnit);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 31);
  ASSERT_TRUE(memory->CopyFromHost(bytes, memory->bytes().data()).ok());
  const Buffer destination = bench.Allocate(kUnit - 8);
  auto uploader = Gpu().StartUpload({destination.data(), destination.size()});
  ASSERT_TRUE(uploader.ok()) << uploader.status();
  const auto sent = (*uploader)->Send(memory->bytes().subspan(8));
  ASSERT_TRUE(sent.ok()) << sent.status();
  EXPECT_TRUE(*sent);
  ASSERT_TRUE((*uploader)->Join(bench.context()).ok());
  EXPECT_TRUE(bench.Get<std::byte>(destination) ==
              std::vector<std::byte>(bytes.begin() + 8, bytes.end()));
}

TEST_F(ShareableMemoryTest, ReceivesACopyOfAResult) {
  Bench bench(Gpu());
  const auto memory = Allocate(kUnit);
  ASSERT_NE(memory, nullptr);
  const std::vector<double> x(1000, 3.5);
  const Buffer result = bench.Put(x);
  ASSERT_TRUE(bench.context()
                  .ops()
                  .CopyToHost(result.data(), memory->bytes().data() + 256, 1000 * sizeof(double))
                  .ok());
  ASSERT_TRUE(bench.context().Synchronize().ok());
  const std::vector<std::byte> read = Read(*memory, 256, 1000 * sizeof(double));
  EXPECT_EQ(std::memcmp(read.data(), x.data(), read.size()), 0);
}

// A descriptor can be mapped after the memory has ended in this process.
TEST_F(ShareableMemoryTest, LivesAsLongAsItsDescriptor) {
  decltype(&cuMemImportFromShareableHandle) import_handle = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  ASSERT_TRUE(cuda::FindDriverFunction("cuMemImportFromShareableHandle", &import_handle).ok());
  ASSERT_TRUE(cuda::FindDriverFunction("cuMemRelease", &release).ok());
  auto memory = Allocate(kUnit);
  ASSERT_NE(memory, nullptr);
  auto file = memory->Export();
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_GE(file->get(), 0);
  memory.reset();
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_EQ(import_handle(&handle, reinterpret_cast<void*>(static_cast<uintptr_t>(file->get())),
                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            CUDA_SUCCESS);
  EXPECT_EQ(release(handle), CUDA_SUCCESS);
  EXPECT_TRUE(Gpu().healthy());
}

}  // namespace
}  // namespace crout::shareable_memory_test
