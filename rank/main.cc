// SPDX-License-Identifier: Apache-2.0

// crout-rank: one process of a group. MPI starts all ranks of a group; each joins the daemon, and
// exits when the daemon, or the process that started it, ends.
#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "crout/rank/v1/rank_service.grpc.pb.h"
#include "crout_version.h"
#include "rank/grid_context.h"
#include "rank/join_environment.h"
#include "rank/start.h"
#include "rank/work.h"

namespace crout::rank {
namespace {

constexpr int kLeft = 1;      // the daemon ended the stream, or cannot be reached
constexpr int kBadUsage = 2;  // a wrong command line, environment or welcome

[[noreturn]] void Exit(int code, const std::string& message) {
  std::fprintf(stderr, "crout-rank: %s\n", message.c_str());
  // Other threads may be inside MPI or gRPC, so no destructor runs.
  std::_Exit(code);
}

// The stream to the daemon. Ends the process when the stream ends.
class DaemonStream {
 public:
  DaemonStream(const std::string& address, const v1::Hello& hello)
      : stub_(v1::RankService::NewStub(
            grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))),
        stream_(stub_->Join(&context_)) {
    v1::RankMessage message;
    *message.mutable_hello() = hello;
    Write(message);
    reader_ = std::thread([this] { ReadAll(); });
    heart_ = std::thread([this] { Beat(); });
  }
  DaemonStream(const DaemonStream&) = delete;  // Its threads run until the process ends.
  DaemonStream& operator=(const DaemonStream&) = delete;

  void Write(const v1::RankMessage& message) {
    const std::lock_guard lock(write_mutex_);
    // After a failed write the reader receives the status and ends the process.
    stream_->Write(message);
  }

  // Returns the next message from the daemon.
  v1::GroupMessage Next() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [this] { return !messages_.empty(); });
    v1::GroupMessage message = std::move(messages_.front());
    messages_.pop();
    return message;
  }

 private:
  void ReadAll() {
    v1::GroupMessage message;
    while (stream_->Read(&message)) {
      const std::lock_guard lock(mutex_);
      messages_.push(std::move(message));
      arrived_.notify_one();
    }
    Exit(kLeft, "the daemon ended the stream: " + stream_->Finish().error_message());
  }

  void Beat() {
    v1::RankMessage message;
    message.mutable_heartbeat();
    while (true) {
      Write(message);
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
  }

  grpc::ClientContext context_;
  std::unique_ptr<v1::RankService::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::RankMessage, v1::GroupMessage>> stream_;
  std::mutex write_mutex_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::queue<v1::GroupMessage> messages_;
  std::thread reader_;
  std::thread heart_;
};

// Maps the group's memory of `bytes` bytes.
std::span<std::byte> MapMemory(uint64_t bytes) {
  const std::string path =
      "/proc/" + std::to_string(getppid()) + "/fd/" + std::to_string(kMemoryDescriptor);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat state;
  if (file < 0 || fstat(file, &state) != 0) {
    Exit(kBadUsage, "cannot open the group's memory, " + path + ": " + strerror(errno));
  }
  if (!S_ISREG(state.st_mode) || static_cast<uint64_t>(state.st_size) != bytes) {
    Exit(kBadUsage, path + " is not the group's memory of " + std::to_string(bytes) + " bytes");
  }
  void* const data =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (data == MAP_FAILED) {
    Exit(kBadUsage, "cannot map the group's memory: " + std::string(strerror(errno)));
  }
  close(file);
  return {static_cast<std::byte*>(data), bytes};
}

struct CommandLine {
  std::string join;  // address of the daemon
  int start = 0;     // number of ranks to start; 0: join as one rank
};

std::optional<CommandLine> Parse(int argc, char** argv) {
  CommandLine line;
  for (int i = 1; i < argc; ++i) {
    std::string_view argument = argv[i];
    const auto consume = [&argument](std::string_view flag) {
      if (!argument.starts_with(flag)) return false;
      argument.remove_prefix(flag.size());
      return true;
    };
    if (consume("--join=")) {
      line.join = argument;
    } else if (consume("--start=")) {
      const auto [end, error] =
          std::from_chars(argument.data(), argument.data() + argument.size(), line.start);
      const bool whole = error == std::errc() && end == argument.data() + argument.size();
      if (!whole || line.start < 1) return std::nullopt;
    } else {
      return std::nullopt;
    }
  }
  if (line.join.empty()) return std::nullopt;
  return line;
}

[[noreturn]] void RunRank(const std::string& address, const std::string& token) {
  const GridContext grid;
  v1::Hello hello;
  hello.set_version(CROUT_VERSION "-" CROUT_COMMIT);
  hello.set_token(token);
  hello.set_rank(grid.rank());
  hello.set_ranks(grid.ranks());
  hello.set_pid(getpid());
  Worker worker(grid);
  for (const std::string& method : worker.methods()) hello.add_methods(method);
  DaemonStream stream(address, hello);
  const v1::GroupMessage first = stream.Next();
  if (!first.has_welcome()) Exit(kBadUsage, "the daemon's first message is not a welcome");
  const std::span<std::byte> memory = MapMemory(first.welcome().memory_bytes());
  while (true) {
    const v1::GroupMessage message = stream.Next();
    if (message.has_forget()) {
      worker.Forget(message.forget().factor());
      continue;
    }
    if (!message.has_job()) Exit(kBadUsage, "the daemon sent an unknown message");
    v1::RankMessage reply;
    *reply.mutable_result() = worker.Run(memory, message.job());
    stream.Write(reply);
  }
}

int Main(int argc, char** argv) {
  // The process that starts this one may have ended before the signal was set.
  const pid_t parent = getppid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // remains set in mpirun, which Start() executes
  if (getppid() != parent) return kLeft;

  const std::optional<CommandLine> line = Parse(argc, argv);
  const char* const token = std::getenv(kTokenVariable);
  if (!line || token == nullptr) {
    std::fprintf(stderr,
                 "usage: crout-rank [--start=RANKS] --join=ADDRESS, with %s set to the group's "
                 "token. croutd --group starts it\n",
                 kTokenVariable);
    return kBadUsage;
  }
  if (line->start == 0) RunRank(line->join, token);
  Start(line->start, std::filesystem::read_symlink("/proc/self/exe"), line->join);
  Exit(kBadUsage, "cannot execute mpirun: " + std::string(strerror(errno)) +
                      ". Install Open MPI (Debian: openmpi-bin)");
}

}  // namespace
}  // namespace crout::rank

int main(int argc, char** argv) { return crout::rank::Main(argc, argv); }
