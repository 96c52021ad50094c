// SPDX-License-Identifier: Apache-2.0

// The dynamic loader's message about a library that failed to load.
#ifndef CROUT_KERNELS_CUDA_DEVICE_LOADER_MESSAGE_H_
#define CROUT_KERNELS_CUDA_DEVICE_LOADER_MESSAGE_H_

#include <dlfcn.h>

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace crout::cuda {

// Returns dlerror() after a failed call of this thread. Directories are removed from file names.
inline std::string LoaderMessage() {
  const char* const message = dlerror();  // NOLINT(concurrency-mt-unsafe): glibc's is per thread
  std::vector<std::string> words = absl::StrSplit(message == nullptr ? "" : message, ' ');
  for (std::string& word : words) word.erase(0, word.rfind('/') + 1);
  return absl::StrJoin(words, " ");
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_LOADER_MESSAGE_H_
