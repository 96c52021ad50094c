// SPDX-License-Identifier: Apache-2.0

#include "rank/agent.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include "crout_version.h"
#include "kernels/util/owned_file.h"
#include "rank/children.h"
#include "rank/connection.h"
#include "rank/daemon_stream.h"
#include "rank/join_environment.h"
#include "rank/open_mpi.h"
#include "server/groups/rank_folder.h"

namespace crout::rank {
namespace {

using std::chrono::milliseconds;
using AgentStream = DaemonStream<v1::AgentMessage, v1::MachineMessage>;

constexpr milliseconds kPoll{20};
constexpr milliseconds kFirstPause{250};
constexpr milliseconds kLongestPause{4000};
constexpr size_t kMostRelayed = 64 << 10;

void Report(const std::string& message) {
  std::fprintf(stderr, "crout-rank: %s\n", message.c_str());
}

// Datagrams from the processes that mpirun executes.
class RelaySocket {
 public:
  explicit RelaySocket(std::string path)
      : path_(std::move(path)),
        file_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    const sockaddr_un address = Address(path_);
    if (file_.get() < 0 ||
        bind(file_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      throw std::runtime_error("cannot bind " + path_ + ": " + std::strerror(errno));
    }
  }

  static sockaddr_un Address(std::string_view path) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    return address;
  }

  const std::string& path() const { return path_; }

  // Returns the arguments in the next datagram; nothing if none has arrived.
  std::optional<std::vector<std::string>> Receive() {
    std::string text(kMostRelayed, '\0');
    const ssize_t bytes = recv(file_.get(), text.data(), text.size(), 0);
    if (bytes < 0) return std::nullopt;
    std::vector<std::string> arguments;
    std::string_view rest(text.data(), static_cast<size_t>(bytes));
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('\0'), rest.size());
      // mpirun puts a space before the first word of its command.
      std::string_view word = rest.substr(0, end);
      word.remove_prefix(std::min(word.find_first_not_of(' '), word.size()));
      arguments.emplace_back(word);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return arguments;
  }

 private:
  const std::string path_;
  const OwnedFile file_;
};

class Agent {
 public:
  Agent(const CommandLine& line, std::string program, RankFolder folder)
      : line_(line),
        program_(std::move(program)),
        folder_(std::move(folder)),
        relay_(folder_.path() + "/relay") {
    for (const std::string& argument : RankArguments(line)) arguments_ += argument + "\n";
  }

  int Run() {
    for (milliseconds pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
      const grpc::Status status = Serve(&pause);
      Report("the daemon at " + line_.join + " ended the stream: " + status.error_message());
      switch (status.error_code()) {
        case grpc::StatusCode::UNAUTHENTICATED:
        case grpc::StatusCode::PERMISSION_DENIED:
        case grpc::StatusCode::FAILED_PRECONDITION:
        case grpc::StatusCode::INVALID_ARGUMENT:
        case grpc::StatusCode::UNIMPLEMENTED:
          return EXIT_FAILURE;
        default:
          std::this_thread::sleep_for(pause);
      }
    }
  }

 private:
  // Serves until the stream ends, and returns its status. Resets the pause when the daemon has sent
  // a message.
  grpc::Status Serve(milliseconds* pause) {
    grpc::Status status;
    Connection connection(line_);
    v1::AgentMessage hello;
    hello.mutable_hello()->set_version(CROUT_VERSION "-" CROUT_COMMIT);
    hello.mutable_hello()->set_group(line_.group);
    hello.mutable_hello()->set_ranks(line_.ranks);
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    hello.mutable_hello()->set_host(host);
    {
      std::mutex mutex;
      bool ended = false;
      AgentStream stream(connection, &v1::RankService::Stub::Attend, hello,
                         [&](const grpc::Status& end) {
                           const std::lock_guard lock(mutex);
                           status = end;
                           ended = true;
                         });
      const auto has_ended = [&] {
        const std::lock_guard lock(mutex);
        return ended;
      };
      while (!has_ended()) {
        if (const auto message = stream.Next(kPoll)) {
          *pause = kFirstPause;
          Handle(*message, stream);
        }
        Advance(stream);
      }
      Kill();
    }
    return status;
  }

  void Handle(const v1::MachineMessage& message, AgentStream& stream) {
    if (message.has_form()) {
      Kill();
      Begin(message.form(), stream);
    } else if (message.has_launch() && formation_) {
      Launch(message.launch(), stream);
    } else if (message.has_disband()) {
      End(stream);
    }
  }

  // Relays the requests of mpirun, and reports that a process has ended.
  void Advance(AgentStream& stream) {
    while (const auto arguments = relay_.Receive()) {
      v1::AgentMessage message;
      const std::optional<v1::Launch> launch = ReadRelayed(*arguments);
      if (!launch) return Fail("mpirun sent a request that cannot be read", stream);
      *message.mutable_launch() = *launch;
      stream.Write(message);
    }
    if (children_.AnyEnded()) End(stream);
  }

  void Begin(const v1::Form& form, AgentStream& stream) {
    formation_ = form;
    const absl::StatusOr<std::string> files = folder_.RenewFiles();
    if (!files.ok()) return Fail(std::string(files.status().message()), stream);
    files_ = *files;
    Report("a formation begins on " + std::to_string(form.ranks_size()) + " machines");
    if (form.machine() != 0) return;
    Start(MpirunCommand(form, program_, line_.network, files_),
          {std::string(kRelayVariable) + "=" + relay_.path(), "TMPDIR=" + files_,
           "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"},
          stream);
  }

  void Launch(const v1::Launch& launch, AgentStream& stream) {
    if (!IsValid(launch)) return Fail("the daemon sent invalid parameters of orted", stream);
    std::vector<std::string> variables = RankVariables(files_);
    variables.push_back(std::string(kTokenVariable) + "=" + formation_->token());
    variables.push_back(std::string(kArgumentsVariable) + "=" + arguments_);
    variables.push_back("TMPDIR=" + files_);
    if (std::getenv(kThreads) == nullptr) {
      const int cores = static_cast<int>(std::thread::hardware_concurrency());
      variables.push_back(std::string(kThreads) + "=" +
                          std::to_string(std::max(1, cores / line_.ranks)));
    }
    Start(OrtedCommand(launch, line_.network, files_), variables, stream);
  }

  void Start(const std::vector<std::string>& command, const std::vector<std::string>& variables,
             AgentStream& stream) {
    if (!children_.Start(command, variables, folder_.log())) {
      Fail("cannot start " + command.front() + ": " + std::strerror(errno), stream);
    }
  }

  void Kill() {
    children_.KillAll();
    formation_.reset();
  }

  // Ends the formation, which this machine cannot start. The daemon reports the reason.
  void Fail(const std::string& reason, AgentStream& stream) {
    Report(reason);
    End(stream, reason);
  }

  // Each formation ends with one message. It has the end of the processes' output without `reason`.
  void End(AgentStream& stream, const std::string& reason = {}) {
    if (!formation_) return;
    Kill();
    v1::AgentMessage message;
    message.mutable_ended()->set_output(reason.empty() ? folder_.LogTail() : reason);
    stream.Write(message);
  }

  static constexpr char kThreads[] = "OMP_NUM_THREADS";

  const CommandLine& line_;
  const std::string program_;
  std::string arguments_;  // arguments of the ranks, a line each
  const RankFolder folder_;
  RelaySocket relay_;
  Children children_;
  std::string files_;                  // folder for MPI's files of the formation
  std::optional<v1::Form> formation_;  // nothing: no process runs
};

}  // namespace

int RunAgent(const CommandLine& line, const std::string& program) {
  // The first process of a container ignores signals without a handler. The system kills the
  // processes of the formation when this one has ended (PR_SET_PDEATHSIG).
  for (const int end : {SIGTERM, SIGINT}) signal(end, [](int) { _exit(EXIT_SUCCESS); });
  absl::StatusOr<RankFolder> folder = RankFolder::Create();
  if (!folder.ok()) {
    Report(std::string(folder.status().message()));
    return EXIT_FAILURE;
  }
  try {
    return Agent(line, program, *std::move(folder)).Run();
  } catch (const std::runtime_error& error) {
    Report(error.what());
    return EXIT_FAILURE;
  }
}

int Relay(const std::vector<std::string>& arguments) {
  const char* const path = std::getenv(kRelayVariable);
  if (path == nullptr) return EXIT_FAILURE;
  std::string text;
  for (const std::string& argument : arguments) text += argument + '\0';
  const OwnedFile file(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = RelaySocket::Address(path);
  const ssize_t sent = sendto(file.get(), text.data(), text.size(), 0,
                              reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  return sent == static_cast<ssize_t>(text.size()) ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace crout::rank
