// SPDX-License-Identifier: Apache-2.0

// Fuzzes the readers of replies from object stores with any bytes.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "server/s3/xml.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto page = crout::ParseS3Page(text, "f/");
  if (page.ok()) {
    Require(page->entries.size() <= crout::kS3PageEntries);
    for (const crout::S3Entry& entry : page->entries) {
      Require(crout::IsS3Key(entry.key) && entry.key.starts_with("f/"));
    }
  } else {
    Require(page.status().message().size() < 500);
  }
  Require(crout::ParseS3Error(text).size() <= 64);
  return 0;
}
