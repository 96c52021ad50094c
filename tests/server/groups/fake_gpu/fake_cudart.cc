// SPDX-License-Identifier: Apache-2.0

// A fake CUDA runtime for crout-rank. One thread uses it.
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "tests/server/groups/fake_gpu/fake_gpu.h"

namespace {

using crout::fake_gpu::FaultOf;
using crout::fake_gpu::kGpus;
using crout::fake_gpu::kMemoryBytes;
using crout::fake_gpu::Record;
using crout::fake_gpu::Require;

constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kInvalidDevice = 101;
constexpr int kHostToDevice = 1;
constexpr int kDeviceToHost = 2;
constexpr unsigned kNonBlocking = 1;

struct Stream {
  std::vector<std::function<void()>> copies;
};

struct State {
  int gpu = -1;
  int error = 0;
  size_t used = 0;
  std::map<const std::byte*, size_t> allocations;
  std::map<const std::byte*, size_t> pinned;
  std::map<void*, Stream> streams;
};

State& TheState() {
  static auto* const state = new State;
  return *state;
}

size_t BytesFrom(const std::map<const std::byte*, size_t>& ranges, const void* memory) {
  const auto* const at = static_cast<const std::byte*>(memory);
  auto range = ranges.upper_bound(at);
  if (range == ranges.begin()) return 0;
  --range;
  const auto offset = static_cast<size_t>(at - range->first);
  return offset < range->second ? range->second - offset : 0;
}

size_t Limit() { return static_cast<size_t>(FaultOf("memory").value_or(kMemoryBytes)); }

}  // namespace

extern "C" {

int cudaSetDevice(int device) {
  if (device < 0 || device >= kGpus) return kInvalidDevice;
  TheState().gpu = device;
  return 0;
}

int cudaMemGetInfo(size_t* free, size_t* total) {
  *total = Limit();
  *free = *total > TheState().used ? *total - TheState().used : 0;
  return 0;
}

int cudaMalloc(void** memory, size_t bytes) {
  State& state = TheState();
  if (!Require(state.gpu >= 0 && bytes > 0, "cudaMalloc of a set device")) return kInvalidValue;
  if (state.used + bytes > Limit()) return state.error = kOutOfMemory;
  Record("cudaMalloc", bytes);
  *memory = std::malloc(bytes);
  std::memset(*memory, 0xff, bytes);  // NaN
  state.allocations[static_cast<std::byte*>(*memory)] = bytes;
  state.used += bytes;
  return 0;
}

int cudaFree(void* memory) {
  State& state = TheState();
  const auto found = state.allocations.find(static_cast<std::byte*>(memory));
  if (!Require(found != state.allocations.end(), "cudaFree of an allocation")) return kInvalidValue;
  Record("cudaFree", found->second);
  state.used -= found->second;
  state.allocations.erase(found);
  std::free(memory);
  return 0;
}

int cudaStreamCreateWithFlags(void** stream, unsigned flags) {
  if (!Require(flags == kNonBlocking, "a stream that does not wait for the NULL stream")) {
    return kInvalidValue;
  }
  *stream = new Stream;
  TheState().streams[*stream];
  return 0;
}

int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int kind, void* stream) {
  State& state = TheState();
  const auto found = state.streams.find(stream);
  const size_t to_bytes = BytesFrom(state.allocations, to);
  const size_t from_bytes = BytesFrom(state.allocations, from);
  const bool fits = (kind == kHostToDevice && to_bytes >= bytes && from_bytes == 0) ||
                    (kind == kDeviceToHost && from_bytes >= bytes && to_bytes == 0);
  if (!Require(found != state.streams.end(), "a copy on a stream that is not NULL") ||
      !Require(fits, "a copy between host and device within an allocation")) {
    return kInvalidValue;
  }
  Record("cudaMemcpyAsync", bytes);
  found->second.copies.emplace_back([=] { std::memcpy(to, from, bytes); });
  return static_cast<int>(FaultOf("cudaMemcpyAsync").value_or(0));
}

int cudaStreamSynchronize(void* stream) {
  return crout::fake_gpu::FakeRunStream(stream) ? 0 : kInvalidValue;
}

int cudaHostRegister(void* memory, size_t bytes, unsigned flags) {
  State& state = TheState();
  if (!Require(flags == 0 && bytes > 0 && BytesFrom(state.pinned, memory) == 0,
               "memory that is not pinned already")) {
    return kInvalidValue;
  }
  state.pinned[static_cast<std::byte*>(memory)] = bytes;
  return 0;
}

int cudaHostUnregister(void* memory) {
  const bool found = TheState().pinned.erase(static_cast<std::byte*>(memory)) == 1;
  return Require(found, "cudaHostUnregister of pinned memory") ? 0 : kInvalidValue;
}

int cudaGetLastError() { return std::exchange(TheState().error, 0); }

const char* cudaGetErrorString(int code) {
  return code == kInvalidDevice ? "invalid device ordinal" : "fake error";
}

}  // extern "C"

namespace crout::fake_gpu {

extern "C" {

size_t FakeDeviceBytes(const void* memory) { return BytesFrom(TheState().allocations, memory); }

bool FakeRunStream(void* stream) {
  const auto found = TheState().streams.find(stream);
  if (!Require(found != TheState().streams.end(), "a stream that is not NULL")) return false;
  for (const auto& copy : std::exchange(found->second.copies, {})) copy();
  return true;
}

int FakeGpu() { return TheState().gpu; }

int FakePendingError() { return TheState().error; }

}  // extern "C"

}  // namespace crout::fake_gpu
