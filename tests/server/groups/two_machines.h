// SPDX-License-Identifier: Apache-2.0

// Two "machines" for tests: network namespaces that are connected to each other and to the test.
#ifndef CROUT_TESTS_SERVER_GROUPS_TWO_MACHINES_H_
#define CROUT_TESTS_SERVER_GROUPS_TWO_MACHINES_H_

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

extern char** environ;

namespace crout::testing {

// Removes the namespaces when it is destroyed.
class TwoMachines {
 public:
  // Returns null if the system permits no namespaces, which need root and the command `ip`.
  static std::unique_ptr<TwoMachines> Create() {
    std::unique_ptr<TwoMachines> machines(new TwoMachines);
    return machines->Connect() ? std::move(machines) : nullptr;
  }
  ~TwoMachines() {
    for (int i = 0; i < 2; ++i) {
      // The system removes the links of a namespace later, and the next object uses their names.
      Ip(absl::StrCat("link delete ", End(i)));
      Ip(absl::StrCat("netns delete ", Name(i)));
    }
    Ip(absl::StrCat("link delete ", bridge_));
  }
  TwoMachines(const TwoMachines&) = delete;  // It owns namespaces.
  TwoMachines& operator=(const TwoMachines&) = delete;

  std::string Name(int i) const { return absl::StrCat("crout-", id_, "-", i); }
  // Address of the test for the machines, and their network.
  std::string address() const { return absl::StrCat(prefix_, "254:50052"); }
  std::string network() const { return absl::StrCat(prefix_, "0/24"); }

  void SetLink(int i, bool up) const {
    Ip(absl::StrCat("-n ", Name(i), " link set eth0 ", up ? "up" : "down"));
  }

 private:
  TwoMachines()
      : id_(getpid()),
        bridge_(absl::StrCat("cr", id_)),
        prefix_(absl::StrCat("10.78.", id_ % 250, ".")) {}

  // The end of a machine's link at the bridge.
  std::string End(int i) const { return absl::StrCat("cr", id_, i == 0 ? "a" : "b"); }
  static bool Ip(const std::string& arguments) {
    return std::system(absl::StrCat("ip ", arguments, " 2>/dev/null").c_str()) == 0;
  }
  bool Connect() {
    bool ok = Ip(absl::StrCat("link add ", bridge_, " type bridge")) &&
              Ip(absl::StrCat("addr add ", prefix_, "254/24 dev ", bridge_)) &&
              Ip(absl::StrCat("link set ", bridge_, " up"));
    for (int i = 0; ok && i < 2; ++i) {
      const std::string name = Name(i);
      const std::string end = End(i);
      ok = Ip(absl::StrCat("netns add ", name)) &&
           Ip(absl::StrCat("link add ", end, " type veth peer name eth0 netns ", name)) &&
           Ip(absl::StrCat("link set ", end, " master ", bridge_, " up")) &&
           Ip(absl::StrCat("-n ", name, " addr add ", prefix_, i + 1, "/24 dev eth0")) &&
           Ip(absl::StrCat("-n ", name, " link set lo up")) &&
           Ip(absl::StrCat("-n ", name, " link set eth0 up"));
    }
    return ok;
  }

  const pid_t id_;
  const std::string bridge_;
  const std::string prefix_;
};

// A process. The destructor kills it.
class ChildProcess {
 public:
  explicit ChildProcess(std::vector<std::string> command) {
    std::vector<char*> arguments;
    for (std::string& word : command) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    if (posix_spawnp(&pid_, arguments[0], nullptr, nullptr, arguments.data(), environ) != 0) {
      pid_ = -1;
    }
  }
  ~ChildProcess() { Kill(); }
  ChildProcess(const ChildProcess&) = delete;  // It owns a process.
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    Wait();
  }
  // Waits for its end. Returns its exit code; -1 if a signal ended it.
  int Wait() {
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SERVER_GROUPS_TWO_MACHINES_H_
