// SPDX-License-Identifier: Apache-2.0

// The environment in which crout-rank loads the fake libraries.
#ifndef CROUT_TESTS_SERVER_GROUPS_FAKE_GPU_FAKE_GPUS_H_
#define CROUT_TESTS_SERVER_GROUPS_FAKE_GPU_FAKE_GPUS_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "tests/server/groups/fake_gpu/fake_gpu.h"

namespace crout::testing {

// An environment variable of this process and those that it starts, until the object is destroyed.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* const old = std::getenv(name); old != nullptr) old_ = old;
    setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() {
    if (old_) {
      setenv(name_, old_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }
  ScopedVariable(const ScopedVariable&) = delete;  // It owns the variable.
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* const name_;
  std::optional<std::string> old_;
};

// Ranks that start during its life load the fake libraries in place of NVIDIA's.
class FakeGpus {
 public:
  FakeGpus()
      : folder_(MakeFolder()),
        libraries_("LD_LIBRARY_PATH", CROUT_FAKE_GPU_LIBRARIES),
        control_(fake_gpu::kFolderVariable, folder_) {}
  ~FakeGpus() { std::filesystem::remove_all(folder_); }

  // Sets all faults: lines "FUNCTION GPU VALUE" (fake_gpu.h).
  void SetFaults(const std::string& faults) const {
    const std::string next = folder_ + "/next";
    std::ofstream(next) << faults;
    std::filesystem::rename(next, folder_ + "/faults");
  }
  // Returns how often the ranks have called a function with at least this number of bytes.
  int64_t Calls(const std::string& function, size_t least_bytes = 0) const {
    std::ifstream calls(folder_ + "/calls");
    std::string name;
    int gpu = 0;
    size_t bytes = 0;
    int64_t count = 0;
    while (calls >> name >> gpu >> bytes) {
      if (name == function && bytes >= least_bytes) ++count;
    }
    return count;
  }

 private:
  static std::string MakeFolder() {
    std::string path = (std::filesystem::temp_directory_path() / "crout-gpus-XXXXXX").string();
    return mkdtemp(path.data()) == nullptr ? std::string() : path;
  }

  const std::string folder_;
  const ScopedVariable libraries_;
  const ScopedVariable control_;
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SERVER_GROUPS_FAKE_GPU_FAKE_GPUS_H_
