// SPDX-License-Identifier: Apache-2.0

// Common parts of the fake libcudart, libnccl and libcusolverMp. "Device memory" is host memory
// that the fakes recognize. Copies run when their stream is synchronized or the library uses it, so
// code that does not wait for a copy computes wrong results.
//
// The folder in kFolderVariable controls the fakes of all processes: its file "faults" has lines
// "FUNCTION GPU VALUE", and the fakes append lines "FUNCTION GPU BYTES" to its file "calls".
#ifndef CROUT_TESTS_SERVER_GROUPS_FAKE_GPU_FAKE_GPU_H_
#define CROUT_TESTS_SERVER_GROUPS_FAKE_GPU_FAKE_GPU_H_

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace crout::fake_gpu {

inline constexpr char kFolderVariable[] = "FAKE_GPU_FOLDER";
inline constexpr int kGpus = 8;
// Memory of a GPU, unless the fault "memory" has another value.
inline constexpr int64_t kMemoryBytes = int64_t{1} << 30;
// A fault with this value never returns. Others are returned as the status.
inline constexpr int64_t kHang = -1;

// Memory that the processes of a communicator share. Lies in a file in TMPDIR, which the daemon
// removes.
struct SharedBlock {
  static constexpr size_t kDataBytes = size_t{32} << 20;

  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int waiting = 0;
  int64_t rounds = 0;
  alignas(64) std::byte data[kDataBytes];
};

// ncclComm_t.
struct Communicator {
  int rank = 0;
  int ranks = 0;
  SharedBlock* shared = nullptr;

  // Waits for all ranks.
  void Await() const;
};

// Functions of the fake CUDA runtime for the other fakes.
extern "C" {
// Bytes of the allocation from `memory` to its end; 0 if it is no device memory.
size_t FakeDeviceBytes(const void* memory);
// Runs the copies of the stream. Returns false if it is not a stream.
bool FakeRunStream(void* stream);
// The GPU of this process; -1 before cudaSetDevice.
int FakeGpu();
// An error that cudaGetLastError would return.
int FakePendingError();
}

// The value of the fault of a function on this process's GPU. Does not return if it is kHang.
std::optional<int64_t> FaultOf(const std::string& function);
// Appends a line to the calls.
void Record(const std::string& function, size_t bytes);
// Reports a wrong call on the standard error output, and returns false, unless `condition` holds.
bool Require(bool condition, const char* what);

}  // namespace crout::fake_gpu

#endif  // CROUT_TESTS_SERVER_GROUPS_FAKE_GPU_FAKE_GPU_H_
