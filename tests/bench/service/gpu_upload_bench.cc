// SPDX-License-Identifier: Apache-2.0

#include <cstring>
#include <future>
#include <span>

#include "kernels/cuda/device/cuda_device.h"
#include "tests/bench/harness/gpu_bench.h"

namespace crout {
namespace {

constexpr size_t kBytes = size_t{512} << 20;
constexpr size_t kMessage = size_t{1} << 20;  // bytes of a received message
constexpr int kUploadRounds = 7;

using Source = std::vector<std::byte>;

// Returns the seconds to receive all data into the same pinned block, which is the fastest receive.
double ReceiveAlone(const Source& source, const Buffer& pinned) {
  const size_t block = cuda::Options().upload_block_bytes;
  return Time([&] {
    for (size_t at = 0; at < kBytes; at += kMessage) {
      std::memcpy(pinned.data() + at % block, source.data() + at, kMessage);
    }
  });
}

// Returns the seconds to copy pinned blocks to the device, without receiving them.
double CopyAlone(ExecutionContext& context, const Buffer& pinned, const Buffer& destination) {
  const size_t block = cuda::Options().upload_block_bytes;
  return Time([&] {
    for (size_t at = 0; at < kBytes; at += block) {
      Check(context.ops().CopyToDevice(pinned.data() + at % pinned.size(), destination.data() + at,
                                       block));
    }
    Check(context.Synchronize());
  });
}

double Both(ExecutionContext& context, const Source& source, const Buffer& destination) {
  return Time([&] {
    auto uploader = Check(context.device().StartUpload({destination.data(), destination.size()}));
    size_t at = 0;
    while (at < kBytes) {
      auto ready = std::make_shared<std::promise<void>>();
      const std::span<std::byte> room = uploader->Reserve([ready] { ready->set_value(); });
      if (room.empty()) {
        ready->get_future().wait();
        continue;
      }
      const size_t count = std::min({room.size(), kMessage, kBytes - at});
      std::memcpy(room.data(), source.data() + at, count);
      Check(uploader->Commit(count));
      at += count;
    }
    Check(uploader->Join(context));
    Check(context.Synchronize());
  });
}

}  // namespace

nlohmann::json BenchUpload(Device& device) {
  auto context = Check(device.CreateContext());
  Source source(kBytes);
  for (size_t i = 0; i < kBytes; ++i) source[i] = static_cast<std::byte>(i * 2654435761U >> 13);
  const Buffer destination = Check(device.memory().Allocate(kBytes));
  const Buffer pinned = Check(device.staging_memory().Allocate(size_t{32} << 20));
  std::memset(pinned.data(), 1, pinned.size());
  std::vector<double> receive;
  std::vector<double> copy;
  std::vector<double> both;
  for (int round = -1; round < kUploadRounds; ++round) {  // the first is a warm-up
    const double together = Both(*context, source, destination);
    const double receive_alone = ReceiveAlone(source, pinned);
    const double copy_alone = CopyAlone(*context, pinned, destination);
    if (round < 0) continue;
    both.push_back(together);
    receive.push_back(receive_alone);
    copy.push_back(copy_alone);
  }
  Check(context->ops().CopyToDevice(pinned.data(), destination.data(), pinned.size()));
  Both(*context, source, destination);
  Source back(kBytes);
  Check(context->ops().CopyToHost(destination.data(), back.data(), kBytes));
  Check(context->Synchronize());
  const double slower = std::max(Median(receive), Median(copy));
  return {{"bytes", kBytes},
          {"rounds", kUploadRounds},
          {"data_arrived_whole", back == source},
          {"receive_alone_ms", 1e3 * Median(receive)},
          {"copy_alone_ms", 1e3 * Median(copy)},
          {"both_ms", 1e3 * Median(both)},
          {"over_slower", Median(both) / slower}};
}

}  // namespace crout
