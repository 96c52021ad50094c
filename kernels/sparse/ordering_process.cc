// SPDX-License-Identifier: Apache-2.0

#include "kernels/sparse/ordering_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <limits>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/util/failpoint.h"
#include "kernels/util/helper_program.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

constexpr int kMillisecondsBetweenStops = 20;

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  ~FileDescriptor() { Close(); }
  FileDescriptor(const FileDescriptor&) = delete;  // Owns a descriptor.
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return fd_; }
  void Reset(int fd) {
    Close();
    fd_ = fd;
  }
  void Close() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

template <class T>
std::span<const std::byte> BytesOf(const std::vector<T>& elements) {
  return std::as_bytes(std::span(elements));
}

bool IsPermutation(const std::vector<int32_t>& order) {
  const auto n = static_cast<int64_t>(order.size());
  std::vector<bool> seen(n);
  for (const int32_t v : order) {
    if (v < 0 || v >= n || seen[v]) return false;
    seen[v] = true;
  }
  return true;
}

}  // namespace

// The child process and a socket connected to its standard input and output. The destructor kills
// the process.
class OrderingProcess::Child {
 public:
  Child() = default;
  ~Child() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    Wait();
  }
  Child(const Child&) = delete;  // Owns a process.
  Child& operator=(const Child&) = delete;

  absl::Status Start(const std::string& program) {
    if (program.empty()) return Missing();
    CROUT_RETURN_IF_ERROR(Failpoint("ordering.start"));
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return Failed("socketpair");
    socket_.Reset(ends[0]);
    FileDescriptor theirs(ends[1]);
    fcntl(socket_.get(), F_SETFL, O_NONBLOCK);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDOUT_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    char* const arguments[] = {const_cast<char*>(program.c_str()), nullptr};
    char* const environment[] = {nullptr};
    const int error =
        posix_spawn(&pid_, program.c_str(), &actions, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
      pid_ = -1;
      if (error == ENOENT || error == EACCES) return Missing();
      errno = error;
      return Failed("posix_spawn");
    }
    return absl::OkStatus();
  }

  absl::Status Write(std::span<const std::byte> bytes, StopRequested stop) {
    while (!bytes.empty()) {
      CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
      // MSG_NOSIGNAL: the call fails if the program has ended.
      const ssize_t sent = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent > 0) {
        bytes = bytes.subspan(sent);
      } else if (errno == EAGAIN) {
        AwaitEvent(POLLOUT);
      } else if (errno != EINTR) {
        return Failed("write");
      }
    }
    return absl::OkStatus();
  }

  absl::Status Read(std::span<std::byte> bytes, StopRequested stop) {
    while (!bytes.empty()) {
      CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
      const ssize_t got = read(socket_.get(), bytes.data(), bytes.size());
      if (got > 0) {
        bytes = bytes.subspan(got);
      } else if (got == 0) {
        return absl::ResourceExhaustedError(
            "the ordering program crout-order ended without a result; it ran out of memory or was "
            "killed");
      } else if (errno == EAGAIN) {
        AwaitEvent(POLLIN);
      } else if (errno != EINTR) {
        return Failed("read");
      }
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status Failed(const char* what) {
    return absl::ResourceExhaustedError(absl::StrCat("the ordering program crout-order: ", what,
                                                     ": ", std::generic_category().message(errno)));
  }

  static absl::Status Missing() {
    return absl::FailedPreconditionError(
        "the ordering program crout-order is missing. Install it next to this program or in "
        "libexec/crout");
  }

  void AwaitEvent(short event) const {
    pollfd fd = {socket_.get(), event, 0};
    poll(&fd, 1, kMillisecondsBetweenStops);
  }

  void Wait() const {
    int status;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }

  pid_t pid_ = -1;
  FileDescriptor socket_;
};

const std::string& OrderingProgram() {
  static const std::string& path = *new std::string(FindHelperProgram(kOrderingProgram));
  return path;
}

OrderingProcess::OrderingProcess(std::unique_ptr<Child> child, int64_t vertices)
    : child_(std::move(child)), vertices_(vertices) {}
OrderingProcess::OrderingProcess(OrderingProcess&&) noexcept = default;
OrderingProcess& OrderingProcess::operator=(OrderingProcess&&) noexcept = default;
OrderingProcess::~OrderingProcess() = default;

absl::StatusOr<OrderingProcess> OrderingProcess::Start(const std::string& program,
                                                       OrderingMethod method, const Graph& graph,
                                                       StopRequested stop) {
  const int64_t n = graph.vertices();
  const int64_t neighbours = graph.start[n];
  if (!FitsOrderingProgram(method, n, neighbours)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a graph with ", n, " vertices and ", neighbours,
                     " neighbors exceeds the indices of the ordering program"));
  }
  auto child = std::make_unique<Child>();
  CROUT_RETURN_IF_ERROR(child->Start(program));
  const std::vector<int64_t> header = {static_cast<int64_t>(method), n, neighbours};
  CROUT_RETURN_IF_ERROR(child->Write(BytesOf(header), stop));
  CROUT_RETURN_IF_ERROR(child->Write(BytesOf(graph.start), stop));
  CROUT_RETURN_IF_ERROR(child->Write(BytesOf(graph.neighbour), stop));
  return OrderingProcess(std::move(child), n);
}

absl::StatusOr<std::vector<int32_t>> OrderingProcess::Await(StopRequested stop) {
  std::vector<int32_t> order(vertices_);
  CROUT_RETURN_IF_ERROR(child_->Read(std::as_writable_bytes(std::span(order)), stop));
  if (!IsPermutation(order)) {
    return absl::InternalError("the ordering program crout-order did not return a permutation");
  }
  return order;
}

absl::StatusOr<std::vector<int32_t>> OrderInProcess(const std::string& program,
                                                    OrderingMethod method, const Graph& graph,
                                                    StopRequested stop) {
  CROUT_ASSIGN_OR_RETURN(OrderingProcess process,
                         OrderingProcess::Start(program, method, graph, stop));
  return process.Await(stop);
}

}  // namespace crout
