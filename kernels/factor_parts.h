// SPDX-License-Identifier: Apache-2.0

// The bytes of a factor as named parts, for code that stores, moves and checks factors. Only the
// method that made a part interprets its contents.
#ifndef CROUT_KERNELS_FACTOR_PARTS_H_
#define CROUT_KERNELS_FACTOR_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/memory.h"
#include "kernels/util/size_class.h"

namespace crout {

enum class PartKind : uint8_t {
  kFactor,    // left by the method; included in downloads
  kOperand,   // the matrix, kept for residuals
  kPrepared,  // derived from the other parts for a solver
  kSolution,  // solution of the most recently solved system
};

struct FactorPart {
  std::string_view name;  // a string literal
  PartKind kind = PartKind::kFactor;
  Buffer buffer;  // not empty
};

// Move-only. All parts are in the same memory: a device's, or the host's.
class FactorParts {
 public:
  // Adds a part. `name` must be new. An empty buffer is ignored.
  void Add(std::string_view name, PartKind kind, Buffer buffer) {
    if (buffer) parts_.push_back({name, kind, std::move(buffer)});
  }

  // Returns an empty buffer if there is no such part.
  const Buffer& operator[](std::string_view name) const {
    static const Buffer kNone;
    for (const FactorPart& part : parts_) {
      if (part.name == name) return part.buffer;
    }
    return kNone;
  }
  bool Has(PartKind kind) const {
    for (const FactorPart& part : parts_) {
      if (part.kind == kind) return true;
    }
    return false;
  }
  // Returns true if a part cannot be copied. Such a factor can be neither moved nor downloaded.
  bool is_fixed() const {
    for (const FactorPart& part : parts_) {
      if (part.buffer.is_fixed()) return true;
    }
    return false;
  }
  // Removes and returns the part, or returns an empty buffer if there is none.
  Buffer Take(std::string_view name);

  auto begin() const { return parts_.begin(); }
  auto end() const { return parts_.end(); }

  // Bytes charged to the memory budget.
  size_t bytes() const {
    size_t sum = 0;
    for (const FactorPart& part : parts_) sum += BlockBytes(part.buffer.size());
    return sum;
  }

 private:
  // The largest number of parts of any factor; storing and moving parts then allocates no memory.
  static constexpr size_t kInPlace = 5;
  absl::InlinedVector<FactorPart, kInPlace> parts_;
};

// Copy all parts from the context's device to host memory, and back to the device. Block until the
// copies are complete. FAILED_PRECONDITION if a part is fixed.
absl::StatusOr<FactorParts> CopyToHost(ExecutionContext& context, const FactorParts& from,
                                       MemoryResource& memory);
absl::StatusOr<FactorParts> CopyToDevice(ExecutionContext& context, const FactorParts& from);

// Copies the parts of a download (PartKind::kFactor) to host memory.
absl::StatusOr<FactorParts> CopyForDownload(ExecutionContext& context, const FactorParts& from,
                                            MemoryResource& memory);
// Same for parts in host memory; needs no device.
absl::StatusOr<FactorParts> CopyForDownload(const FactorParts& from, MemoryResource& memory);

}  // namespace crout

#endif  // CROUT_KERNELS_FACTOR_PARTS_H_
