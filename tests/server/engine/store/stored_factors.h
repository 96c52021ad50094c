// SPDX-License-Identifier: Apache-2.0

// Factors of all kinds in host memory, and a folder for their files.
#ifndef CROUT_TESTS_SERVER_ENGINE_STORE_STORED_FACTORS_H_
#define CROUT_TESTS_SERVER_ENGINE_STORE_STORED_FACTORS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "kernels/factorization.h"
#include "server/engine/store/factor_record.h"

namespace crout::testing {

struct StoredSample {
  std::string label;
  FactorRecord record;
  FactorParts parts;  // in host memory
};

// Returns a dense, a sparse and a batch factor of each type, by methods of the host.
std::vector<StoredSample> SampleFactors();
// Returns a small dense factor in float64 of the order n. Samples with another `seed` differ.
StoredSample DenseSample(int64_t n, uint64_t seed = 1);

// The memory that the samples are in, and that tests read factors into.
MemoryResource& SampleMemory();

// Returns true if both have the same parts.
bool HaveEqualParts(const FactorParts& a, const FactorParts& b);

// An empty folder that is removed with its contents at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;  // It removes what it owns.
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string ReadBytes(const std::string& path);
void WriteBytes(const std::string& path, const std::string& bytes);

}  // namespace crout::testing

#endif  // CROUT_TESTS_SERVER_ENGINE_STORE_STORED_FACTORS_H_
