// SPDX-License-Identifier: Apache-2.0

// crout-rank: one process of a group, or the agent of a machine that runs such processes. MPI
// starts all ranks of a group; each joins the daemon, and exits when the daemon, or the process
// that started it, ends.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "crout_version.h"
#include "rank/agent.h"
#include "rank/command_line.h"
#include "rank/connection.h"
#include "rank/daemon_stream.h"
#include "rank/grid_context.h"
#include "rank/join_environment.h"
#include "rank/open_mpi.h"
#include "rank/remote_memory.h"
#include "rank/shared_memory.h"
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

using RankStream = DaemonStream<v1::RankMessage, v1::GroupMessage>;

v1::GroupMessage AwaitMessage(RankStream& stream) {
  while (true) {
    // The end of the stream ends the process.
    if (auto message = stream.Next(std::chrono::hours(1))) return *std::move(message);
  }
}

// Returns the GPU of this rank; nothing if the ranks have none.
std::optional<int> GpuOf(const GridContext& grid) {
  const char* const variable = std::getenv(kGpusVariable);
  if (variable == nullptr || *variable == '\0') return std::nullopt;
  std::istringstream ordinals(variable);
  std::string ordinal;
  int gpu = 0;
  for (int i = 0; i <= grid.rank(); ++i) {
    std::getline(ordinals, ordinal, ',');
    if (!ParseCount(ordinal, 0, &gpu)) {
      throw std::runtime_error(std::string(kGpusVariable) + "=" + variable +
                               " has no GPU for rank " + std::to_string(grid.rank()));
    }
  }
  return gpu;
}

[[noreturn]] void RunRank(const CommandLine& line, const std::string& token) {
  const GridContext grid;
  v1::RankMessage first;
  v1::Hello& hello = *first.mutable_hello();
  hello.set_version(CROUT_VERSION "-" CROUT_COMMIT);
  hello.set_token(token);
  hello.set_rank(grid.rank());
  hello.set_ranks(grid.ranks());
  hello.set_pid(getpid());
  Worker worker(grid, GpuOf(grid));
  for (const std::string& method : worker.methods()) hello.add_methods(method);
  hello.set_gpu_bytes(worker.GpuBytes());
  Connection connection(line);
  RankStream stream(connection, &v1::RankService::Stub::Join, first,
                    [](const grpc::Status& status) {
                      Exit(kLeft, "the daemon ended the stream: " + status.error_message());
                    });
  const v1::GroupMessage welcome = AwaitMessage(stream);
  if (!welcome.has_welcome()) Exit(kBadUsage, "the daemon's first message is not a welcome");
  std::unique_ptr<GroupMemory> memory;
  if (const uint64_t bytes = welcome.welcome().memory_bytes(); bytes > 0) {
    memory = SharedMemory::Map(bytes);
  } else {
    memory = std::make_unique<RemoteMemory>(connection, token,
                                            [](const std::string& reason) { Exit(kLeft, reason); });
  }
  while (true) {
    const v1::GroupMessage message = AwaitMessage(stream);
    if (message.has_forget()) {
      for (const uint64_t factor : message.forget().factors()) worker.Forget(factor);
      continue;
    }
    if (!message.has_job()) Exit(kBadUsage, "the daemon sent an unknown message");
    v1::RankMessage reply;
    *reply.mutable_result() = worker.Run(*memory, message.job());
    stream.Write(reply);
  }
}

// Returns the arguments of this process, or those that its agent has for it.
std::vector<std::string> ArgumentsOf(int argc, char** argv) {
  const char* const from_agent = std::getenv(kArgumentsVariable);
  if (from_agent == nullptr) return {argv + 1, argv + argc};
  std::vector<std::string> arguments;
  std::istringstream lines(from_agent);
  for (std::string argument; std::getline(lines, argument);) arguments.push_back(argument);
  return arguments;
}

int Main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == kRelayOption) return Relay({argv + 2, argv + argc});

  const std::optional<CommandLine> line = ParseCommandLine(ArgumentsOf(argc, argv));
  const char* const token = std::getenv(kTokenVariable);
  if (!line || (token == nullptr && line->group.empty())) {
    std::fprintf(stderr,
                 "usage: crout-rank --join=HOST:PORT --group=NAME [--ranks=N] [--network=CIDR]\n"
                 "         [--tls [--ca=FILE] [--cert=FILE --key=FILE]] [--token-file=FILE]\n"
                 "Runs N ranks of the group NAME of a croutd that has --group=NAME=join:...\n");
    return kBadUsage;
  }
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  if (token == nullptr) return RunAgent(*line, program);

  // The process that starts this one may have ended before the signal was set.
  const pid_t parent = getppid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // remains set in mpirun, which ExecuteMpirun() executes
  if (getppid() != parent) return kLeft;
  if (line->start == 0) RunRank(*line, token);
  ExecuteMpirun(line->start, program, line->join);
  Exit(kBadUsage, "cannot execute mpirun: " + std::string(strerror(errno)) +
                      ". Install Open MPI (Debian: openmpi-bin)");
}

}  // namespace
}  // namespace crout::rank

int main(int argc, char** argv) {
  try {
    return crout::rank::Main(argc, argv);
  } catch (const std::runtime_error& error) {
    crout::rank::Exit(crout::rank::kBadUsage, error.what());
  }
}
