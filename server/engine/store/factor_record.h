// SPDX-License-Identifier: Apache-2.0

// The description of a stored factor, in the header of its file.
#ifndef CROUT_SERVER_ENGINE_STORE_FACTOR_RECORD_H_
#define CROUT_SERVER_ENGINE_STORE_FACTOR_RECORD_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/device.h"
#include "kernels/factorization.h"
#include "server/engine/cache/handle.h"
#include "server/engine/request.h"

namespace crout {

struct FactorRecord {
  std::string folder;  // the folder of the store; not in the header
  Handle handle;
  int64_t version = 1;
  std::string tenant;
  std::string name;
  std::string request_id;
  absl::Duration lease;  // length
  absl::Time create_time;
  absl::Time life_end;
  bool durable = false;
  DeviceKind device_kind = DeviceKind::kHost;
  std::string device;  // name of the device that made the factor
  // Without iteration counts. The analysis of a sparse factor is in tensors of the file.
  FactorSummary summary;
  std::optional<int64_t> nnz;
  CallTimings timings;
};

// Texts of the header by their keys.
using RecordTexts = std::map<std::string, std::string>;

RecordTexts EncodeRecord(const FactorRecord& record);

// Decodes hostile texts. The analysis of a sparse factor has its numbers and no arrays.
// FAILED_PRECONDITION if another version of the format wrote the file. DATA_LOSS if a text is
// missing or not possible.
absl::StatusOr<FactorRecord> DecodeRecord(const RecordTexts& texts);

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_STORE_FACTOR_RECORD_H_
