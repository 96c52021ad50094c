// The bytes of a factor, as those see them who keep, move and check it: named parts, whose meaning
// is known to the method that made them alone.
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
  kFactor,    // what the method left: a download has it
  kOperand,   // the matrix, kept for residuals
  kPrepared,  // made from the others for a solver
  kSolution,  // of the system that was solved last
};

struct FactorPart {
  std::string_view name;  // a literal
  PartKind kind = PartKind::kFactor;
  Buffer buffer;  // not empty
};

// Move-only. All parts lie in one memory: a device's, or the host's.
class FactorParts {
 public:
  // `name` is not there yet. An empty buffer is no part.
  void Add(std::string_view name, PartKind kind, Buffer buffer) {
    if (buffer) parts_.push_back({name, kind, std::move(buffer)});
  }

  // Empty where there is no such part.
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
  // Whether they cannot be copied: neither moved to another memory nor downloaded.
  bool is_fixed() const {
    for (const FactorPart& part : parts_) {
      if (part.buffer.is_fixed()) return true;
    }
    return false;
  }
  // Gives the part away; empty where there is none.
  Buffer Take(std::string_view name);

  auto begin() const { return parts_.begin(); }
  auto end() const { return parts_.end(); }

  // As charged.
  size_t bytes() const {
    size_t sum = 0;
    for (const FactorPart& part : parts_) sum += BlockBytes(part.buffer.size());
    return sum;
  }

 private:
  // As many as today's factors have: keeping and moving them takes no other memory.
  static constexpr size_t kInPlace = 5;
  absl::InlinedVector<FactorPart, kInPlace> parts_;
};

// Copies of all parts, from the memory of the context's device to `memory` of the host, and back to
// the device's. Block until they are complete. FAILED_PRECONDITION for parts that are fixed.
absl::StatusOr<FactorParts> CopyToHost(ExecutionContext& context, const FactorParts& from,
                                       MemoryResource& memory);
absl::StatusOr<FactorParts> CopyToDevice(ExecutionContext& context, const FactorParts& from);

// Copies in host memory of what a download has: the parts of kFactor.
absl::StatusOr<FactorParts> CopyForDownload(ExecutionContext& context, const FactorParts& from,
                                            MemoryResource& memory);
// The same of parts that lie in host memory, without a device.
absl::StatusOr<FactorParts> CopyForDownload(const FactorParts& from, MemoryResource& memory);

}  // namespace crout

#endif  // CROUT_KERNELS_FACTOR_PARTS_H_
