// SPDX-License-Identifier: Apache-2.0

// Copies of cached factors in host memory, for replies.
#ifndef CROUT_SERVER_ENGINE_PLAN_CACHED_COPY_H_
#define CROUT_SERVER_ENGINE_PLAN_CACHED_COPY_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/jobs/batch/batch_download.h"
#include "kernels/sparse_lu.h"
#include "server/engine/admission/job_memory.h"
#include "server/engine/engine.h"

namespace crout {

// Copies the contents of a pinned factor, or a part of them. Data in host memory is copied at once,
// data on a device by a job. Not thread-safe.
class CachedCopy {
 public:
  virtual ~CachedCopy() = default;
  CachedCopy(const CachedCopy&) = delete;  // Jobs refer to it.
  CachedCopy& operator=(const CachedCopy&) = delete;

  // Describes the pinned version.
  const FactorInfo& info() const { return info_; }
  DeviceSlot& slot() const { return pin_.slot(); }
  // Upper limit of the host bytes of the copy, including the messages built from it.
  size_t bytes() const { return bytes_; }

  // Reserves bytes(). Then copies the factor if it is in host memory, else returns false. Blocks.
  absl::StatusOr<bool> CopyFromHost();
  // Copies the factor, which is on the device, on a worker thread. Requires the reservation of
  // CopyFromHost().
  absl::Status CopyFromDevice(ExecutionContext& context);
  // Returns the bytes of the copy and their reservation.
  virtual std::shared_ptr<const ReplyData> TakeReply() = 0;

 protected:
  CachedCopy(Engine& engine, FactorCache::Pin pin, FactorInfo info)
      : engine_(engine), pin_(std::move(pin)), info_(std::move(info)) {}

  // Copies from `parts`, which are in the memory of the context's device or, without a context, in
  // host memory.
  virtual absl::Status Copy(ExecutionContext* context, const FactorParts& parts) = 0;

  Engine& engine_;
  Reservation reservation_;
  size_t bytes_ = 0;  // constant after construction

 private:
  FactorCache::Pin pin_;
  const FactorInfo info_;
};

// The figures of the members of a factored batch.
class FiguresCopy final : public CachedCopy {
 public:
  // `pin` is of the factor `handle`. NOT_FOUND if this factor was removed.
  static absl::StatusOr<std::unique_ptr<FiguresCopy>> Create(Engine& engine,
                                                             const std::string& tenant,
                                                             const Handle& handle,
                                                             FactorCache::Pin pin);
  std::shared_ptr<const ReplyData> TakeReply() override;

 private:
  FiguresCopy(Engine& engine, FactorCache::Pin pin, FactorInfo info);
  absl::Status Copy(ExecutionContext* context, const FactorParts& parts) override;

  Buffer figures_;
};

struct DownloadRequest {
  bool take_sparse = false;  // the caller reads sparse factors
  MemberRange range;         // members of a batch; a count of 0: to the last member
};

// L and U of a factor: of a dense matrix, of a sparse one, or of members of a batch.
class FactorDownload final : public CachedCopy {
 public:
  // `pin` is of the factor `handle`. NOT_FOUND if this factor was removed, INVALID_ARGUMENT for a
  // range outside the batch, and FAILED_PRECONDITION if the factor cannot be downloaded as
  // requested. Errors have the fields of GetFactorsRequest.
  static absl::StatusOr<std::unique_ptr<FactorDownload>> Create(Engine& engine,
                                                                const std::string& tenant,
                                                                const Handle& handle,
                                                                FactorCache::Pin pin,
                                                                const DownloadRequest& request);
  std::shared_ptr<const ReplyData> TakeReply() override;
  // The parts of a dense factor without L and U, after the copy.
  const FactorParts& dense() const { return dense_; }
  // The extent of the members of a batch, after the copy.
  const BatchExtent& extent() const { return extent_; }

 private:
  using CachedCopy::CachedCopy;
  absl::Status Copy(ExecutionContext* context, const FactorParts& parts) override;
  absl::Status SelectMethod();
  absl::Status SelectMembers(const MemberRange& requested);

  const SparseLu* method_ = nullptr;  // set for a sparse factor
  MemberRange range_;                 // set for a batch
  FactorParts dense_;
  BatchExtent extent_;
  Buffer data_;  // L and U
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_PLAN_CACHED_COPY_H_
