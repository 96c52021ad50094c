// SPDX-License-Identifier: Apache-2.0

#include "tests/server/groups/fake_gpu/fake_gpu.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace crout::fake_gpu {
namespace {

std::string FileOf(const char* name) {
  const char* const folder = std::getenv(kFolderVariable);
  return std::string(folder != nullptr ? folder : "") + "/" + name;
}

}  // namespace

std::optional<int64_t> FaultOf(const std::string& function) {
  std::ifstream faults(FileOf("faults"));
  std::string name;
  int gpu = 0;
  int64_t value = 0;
  while (faults >> name >> gpu >> value) {
    if (name != function || gpu != FakeGpu()) continue;
    Record("fault:" + function, 0);
    while (value == kHang) pause();
    return value;
  }
  return std::nullopt;
}

void Record(const std::string& function, size_t bytes) {
  const std::string line =
      function + " " + std::to_string(FakeGpu()) + " " + std::to_string(bytes) + "\n";
  const int file = open(FileOf("calls").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0 || write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    std::perror("fake GPU: calls");
  }
  close(file);
}

bool Require(bool condition, const char* what) {
  if (!condition) std::fprintf(stderr, "fake GPU %d: not true: %s\n", FakeGpu(), what);
  return condition;
}

void Communicator::Await() const {
  pthread_mutex_lock(&shared->mutex);
  if (++shared->waiting == ranks) {
    shared->waiting = 0;
    ++shared->rounds;
    pthread_cond_broadcast(&shared->changed);
  } else {
    const int64_t round = shared->rounds;
    while (shared->rounds == round) pthread_cond_wait(&shared->changed, &shared->mutex);
  }
  pthread_mutex_unlock(&shared->mutex);
}

}  // namespace crout::fake_gpu
