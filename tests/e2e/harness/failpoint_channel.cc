// SPDX-License-Identifier: Apache-2.0

#include "tests/e2e/harness/failpoint_channel.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace crout::e2e {
namespace {

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

std::string ReadLine(int fd) {
  std::string line;
  for (char c = 0; read(fd, &c, 1) == 1 && c != '\n';) line.push_back(c);
  return line;
}

void WriteLine(int fd, std::string line) {
  line.push_back('\n');
  if (send(fd, line.data(), line.size(), MSG_NOSIGNAL) < 0) return;  // the client has disconnected
}

std::string Run(const std::string& line, testing::Failpoints& failpoints) {
  const std::vector<std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 4));
  const auto number = [&](size_t at) {
    int64_t value = 0;
    return words.size() > at && absl::SimpleAtoi(words[at], &value) ? value : 0;
  };
  if (words.size() < 2) return absl::StrCat("not a command: ", line);
  if (words[0] == "hold") {
    failpoints.Hold(words[1]);
  } else if (words[0] == "release") {
    failpoints.Release(words[1]);
  } else if (words[0] == "fail" && words.size() == 5) {
    failpoints.Fail(words[1], absl::Status(static_cast<absl::StatusCode>(number(2)), words[4]),
                    static_cast<int>(number(3)));
  } else if (words[0] == "flip") {
    failpoints.FlipBit(words[1], static_cast<size_t>(number(2)));
  } else if (words[0] == "await") {
    failpoints.AwaitReached(words[1], static_cast<int>(number(2)));
  } else if (words[0] == "reached") {
    return absl::StrCat(failpoints.reached(words[1]));
  } else if (words[0] == "advance") {
    failpoints.Advance(absl::Nanoseconds(number(1)));
  } else {
    return absl::StrCat("not a command: ", line);
  }
  return "ok";
}

// Signals to the daemon must be delivered to the thread that waits for them.
void BlockSignals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

void ServeFailpoints(const std::string& path, testing::Failpoints& failpoints) {
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_un address = AddressOf(path);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener, SOMAXCONN) != 0) {
    std::perror("croutd_test: the failpoints' socket");
    std::exit(1);
  }
  std::thread([listener, &failpoints] {
    BlockSignals();
    for (int fd; (fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      std::thread([fd, &failpoints] {
        WriteLine(fd, Run(ReadLine(fd), failpoints));
        close(fd);
      }).detach();
    }
  }).detach();
}

std::string RemoteFailpoints::Query(const std::string& line) const {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_un address = AddressOf(path_);
  std::string answer = "no answer";
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    WriteLine(fd, line);
    answer = ReadLine(fd);
  }
  close(fd);
  return answer;
}

void RemoteFailpoints::Command(const std::string& line) const {
  EXPECT_EQ(Query(line), "ok") << line;
}

void RemoteFailpoints::Hold(std::string_view name) const { Command("hold " + std::string(name)); }
void RemoteFailpoints::Release(std::string_view name) const {
  Command("release " + std::string(name));
}
void RemoteFailpoints::Fail(std::string_view name, const absl::Status& status, int times) const {
  Command(absl::StrCat("fail ", std::string(name), " ", static_cast<int>(status.code()), " ", times,
                       " ", status.message()));
}
void RemoteFailpoints::FlipBit(std::string_view name, size_t bit) const {
  Command(absl::StrCat("flip ", std::string(name), " ", bit));
}
void RemoteFailpoints::AwaitReached(std::string_view name, int count) const {
  Command(absl::StrCat("await ", std::string(name), " ", count));
}
int RemoteFailpoints::reached(std::string_view name) const {
  int count = 0;
  EXPECT_TRUE(absl::SimpleAtoi(Query("reached " + std::string(name)), &count)) << name;
  return count;
}
void RemoteFailpoints::Advance(absl::Duration duration) const {
  Command(absl::StrCat("advance ", absl::ToInt64Nanoseconds(duration)));
}

}  // namespace crout::e2e
