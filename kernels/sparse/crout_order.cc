// SPDX-License-Identifier: Apache-2.0

// crout-order: orders one graph by AMD or by METIS's nested dissection. The server starts it; see
// kernels/sparse/ordering_process.h for the reasons for a separate program.
//
// For large graphs, nested dissection finds the first separators here and orders the remaining
// parts concurrently in forked processes. Only the size of the graph determines where it is
// divided, so the order does not depend on the number of cores.
#include <malloc.h>
#include <metis.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <new>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/sparse/ordering_protocol.h"
#include "kernels/util/sanitizers.h"

namespace crout {
namespace {

static_assert(sizeof(idx_t) == sizeof(int32_t));

constexpr idx_t kFewVertices = 12000;  // parts of at most this size are not divided
constexpr int kMaxDivisions = 5;

// A part of the input graph. vertex[v] is the number of v in the input graph.
struct Part {
  std::vector<idx_t> start;
  std::vector<idx_t> neighbour;
  std::vector<idx_t> vertex;

  idx_t vertices() const { return static_cast<idx_t>(vertex.size()); }
  size_t bytes() const { return (start.size() + neighbour.size() + vertex.size()) * sizeof(idx_t); }
};

void SetOptions(idx_t* options) {
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_NUMBERING] = 0;
  options[METIS_OPTION_SEED] = 1;
}

// Returns a descriptor for the reply, and redirects standard output to standard error, because
// METIS may print.
int RedirectOutput() {
  const int out = dup(STDOUT_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  return out;
}

template <class Call, class T>
bool MoveAll(const Call& call, int fd, T* elements, size_t count) {
  auto* at = reinterpret_cast<char*>(elements);
  size_t left = count * sizeof(T);
  while (left > 0) {
    const ssize_t moved = call(fd, at, left);
    if (moved <= 0) return false;
    at += moved;
    left -= moved;
  }
  return true;
}

template <class T>
bool Read(std::vector<T>& elements) {
  return MoveAll(read, STDIN_FILENO, elements.data(), elements.size());
}

// Ends this process when its parent dies.
void DieWithParent() { prctl(PR_SET_PDEATHSIG, SIGKILL); }

// Limits this process to `bytes` beyond its present address space. Beyond the limit METIS and `new`
// fail, and the server falls back to another ordering. Returns free memory to the system first,
// because it would count.
bool LimitTo(size_t bytes) {
  if (kSanitized) return true;  // The sanitizer's own memory would count.
  malloc_trim(0);
  size_t pages = 0;
  if (!(std::ifstream("/proc/self/statm") >> pages)) return false;
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0) return false;
  const rlim_t wanted = pages * sysconf(_SC_PAGESIZE) + bytes;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  return setrlimit(RLIMIT_AS, &limit) == 0;
}

// Limits the memory of this part, in addition to what it has. The limit is per process, and forks
// share pages.
bool LimitTo(const Part& part) {
  const size_t bytes = NestedDissectionBytes(part.vertices(), std::ssize(part.neighbour));
  return LimitTo(bytes - std::min(bytes, part.bytes()));
}

bool OrderWhole(Part& part, idx_t* order) {
  idx_t n = part.vertices();
  if (n == 0) return true;
  if (part.neighbour.empty()) {
    std::copy(part.vertex.begin(), part.vertex.end(), order);
    return true;
  }
  idx_t options[METIS_NOPTIONS];
  SetOptions(options);
  std::vector<idx_t> local(n), position(n);
  if (METIS_NodeND(&n, part.start.data(), part.neighbour.data(), nullptr, options, local.data(),
                   position.data()) != METIS_OK) {
    return false;
  }
  for (idx_t k = 0; k < n; ++k) order[k] = part.vertex[local[k]];
  return true;
}

// Extracts the vertices on side `which`, and the edges between them.
Part Extract(const Part& part, const std::vector<idx_t>& side, idx_t which) {
  std::vector<idx_t> number(part.vertices(), -1);
  Part out;
  const auto vertices = std::count(side.begin(), side.end(), which);
  out.vertex.reserve(vertices);
  for (idx_t v = 0; v < part.vertices(); ++v) {
    if (side[v] != which) continue;
    number[v] = out.vertices();
    out.vertex.push_back(part.vertex[v]);
  }
  size_t neighbours = 0;
  for (idx_t v = 0; v < part.vertices(); ++v) {
    if (side[v] != which) continue;
    neighbours += std::count_if(part.neighbour.begin() + part.start[v],
                                part.neighbour.begin() + part.start[v + 1],
                                [&](idx_t w) { return side[w] == which; });
  }
  out.neighbour.reserve(neighbours);
  out.start.reserve(vertices + 1);
  out.start.push_back(0);
  for (idx_t v = 0; v < part.vertices(); ++v) {
    if (side[v] != which) continue;
    for (idx_t e = part.start[v]; e < part.start[v + 1]; ++e) {
      const idx_t w = number[part.neighbour[e]];
      if (w >= 0) out.neighbour.push_back(w);
    }
    out.start.push_back(static_cast<idx_t>(out.neighbour.size()));
  }
  return out;
}

bool Order(Part part, idx_t* order, int divisions, int forks);

// Orders one side in a forked process if forks are left and both sides are large enough, and the
// other side here. `order` is shared memory.
bool OrderSides(Part first, idx_t* first_order, Part second, idx_t* second_order, int divisions,
                int forks) {
  const pid_t self = getpid();
  const bool divided = std::min(first.vertices(), second.vertices()) > kFewVertices;
  const pid_t child = forks > 0 && divided ? fork() : -1;
  if (child == 0) {
    DieWithParent();
    if (getppid() != self) _exit(1);
    second = {};
    if (!LimitTo(first)) _exit(1);
    _exit(Order(std::move(first), first_order, divisions, forks - 1) ? 0 : 1);
  }
  bool done = true;
  if (child < 0) done = Order(std::move(first), first_order, divisions, forks - 1);
  first = {};
  if (child > 0) done = LimitTo(second);
  done = done && Order(std::move(second), second_order, divisions, forks - 1);
  if (child < 0) return done;
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0 &&
         done;
}

bool Order(Part part, idx_t* order, int divisions, int forks) {
  idx_t n = part.vertices();
  if (divisions == 0 || n <= kFewVertices) return OrderWhole(part, order);
  idx_t options[METIS_NOPTIONS];
  SetOptions(options);
  idx_t separator = 0;
  std::vector<idx_t> side(n);
  if (METIS_ComputeVertexSeparator(&n, part.start.data(), part.neighbour.data(), nullptr, options,
                                   &separator, side.data()) != METIS_OK) {
    return false;
  }
  Part first = Extract(part, side, 0);
  Part second = Extract(part, side, 1);
  if (first.vertices() == 0 || second.vertices() == 0) return OrderWhole(part, order);
  idx_t* const second_order = order + first.vertices();
  idx_t* at = second_order + second.vertices();
  for (idx_t v = 0; v < n; ++v) {
    if (side[v] == 2) *at++ = part.vertex[v];
  }
  part = {};
  return OrderSides(std::move(first), order, std::move(second), second_order, divisions - 1, forks);
}

// Number of successive divisions that fork, enough to use all cores.
int Forks() {
  cpu_set_t cores;
  int forks = 0;
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) return 0;
  while (1 << forks < CPU_COUNT(&cores)) ++forks;
  return forks;
}

bool Write(int out, const int32_t* order, int64_t n) {
  const auto put = [](int fd, const char* at, size_t left) { return write(fd, at, left); };
  return MoveAll(put, out, const_cast<int32_t*>(order), n);
}

bool ReadGraph(int64_t n, int64_t neighbours, Graph& graph) {
  graph.start.resize(n + 1);
  graph.neighbour.resize(neighbours);
  return Read(graph.start) && Read(graph.neighbour) && graph.start[n] == neighbours;
}

bool DissectTo(int out, Graph graph) {
  Part part;
  const int64_t n = graph.vertices();
  part.start.assign(graph.start.begin(), graph.start.end());
  part.neighbour = std::move(graph.neighbour);
  graph = {};
  part.vertex.resize(n);
  std::iota(part.vertex.begin(), part.vertex.end(), 0);
  const size_t bytes = std::max<size_t>(1, n) * sizeof(idx_t);
  void* const shared =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return false;
  auto* const order = static_cast<idx_t*>(shared);
  return Order(std::move(part), order, kMaxDivisions, Forks()) && Write(out, order, n);
}

int Main() {
  DieWithParent();
  const int out = RedirectOutput();
  std::vector<int64_t> header(3);
  if (!Read(header)) return 1;
  const auto method = static_cast<OrderingMethod>(header[0]);
  const int64_t n = header[1];
  const int64_t neighbours = header[2];
  if (!FitsOrderingProgram(method, n, neighbours)) return 1;
  if (!LimitTo(OrderingProgramBytes(method, n, neighbours))) return 1;
  Graph graph;
  if (!ReadGraph(n, neighbours, graph)) return 1;
  if (method == OrderingMethod::kNestedDissection) return DissectTo(out, std::move(graph)) ? 0 : 1;
  return Write(out, OrderByMinimumDegree(graph).data(), n) ? 0 : 1;
}

}  // namespace
}  // namespace crout

int main() {
  try {
    return crout::Main();
  } catch (const std::bad_alloc&) {
    return 1;  // memory limit reached
  }
}
