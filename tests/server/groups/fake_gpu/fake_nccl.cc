// SPDX-License-Identifier: Apache-2.0

// A fake NCCL for crout-rank: processes find each other by a file.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#include "tests/server/groups/fake_gpu/fake_gpu.h"

namespace {

using crout::fake_gpu::Communicator;
using crout::fake_gpu::FaultOf;
using crout::fake_gpu::Require;
using crout::fake_gpu::SharedBlock;

constexpr int kVersion = 22809;
constexpr int kSystemError = 2;
constexpr int kInvalidUsage = 5;

struct UniqueId {
  char bytes[128];  // path of the file
};

SharedBlock* Map(int file) {
  void* const data =
      mmap(nullptr, sizeof(SharedBlock), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return data == MAP_FAILED ? nullptr : static_cast<SharedBlock*>(data);
}

bool Is(const char* variable, std::string_view value) {
  const char* const text = std::getenv(variable);
  return text != nullptr && text == value;
}

}  // namespace

extern "C" {

int ncclGetVersion(int* version) {
  *version = static_cast<int>(FaultOf("ncclGetVersion").value_or(kVersion));
  return 0;
}

int ncclGetUniqueId(UniqueId* id) {
  if (!Require(Is("NCCL_NVLS_ENABLE", "0") && Is("NCCL_SOCKET_IFNAME", "lo"),
               "multicast is off and the loopback interface is used")) {
    return kInvalidUsage;
  }
  const char* const folder = std::getenv("TMPDIR");
  std::snprintf(id->bytes, sizeof id->bytes, "%s/fake-nccl-XXXXXX", folder);
  const int file = mkostemp(id->bytes, O_CLOEXEC);
  if (file < 0 || ftruncate(file, sizeof(SharedBlock)) != 0) return kSystemError;
  SharedBlock* const block = Map(file);
  if (block == nullptr) return kSystemError;
  pthread_mutexattr_t mutex;
  pthread_mutexattr_init(&mutex);
  pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&block->mutex, &mutex);
  pthread_condattr_t condition;
  pthread_condattr_init(&condition);
  pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
  pthread_cond_init(&block->changed, &condition);
  munmap(block, sizeof(SharedBlock));
  return 0;
}

int ncclCommInitRank(void** communicator, int ranks, UniqueId id, int rank) {
  if (const auto fault = FaultOf("ncclCommInitRank")) return static_cast<int>(*fault);
  const int file = open(id.bytes, O_RDWR | O_CLOEXEC);
  SharedBlock* const block = file < 0 ? nullptr : Map(file);
  if (block == nullptr) return kSystemError;
  auto* const made = new Communicator{rank, ranks, block};
  made->Await();
  *communicator = made;
  return 0;
}

const char* ncclGetErrorString(int code) {
  return code == kSystemError ? "unhandled system error" : "fake error";
}

}  // extern "C"
