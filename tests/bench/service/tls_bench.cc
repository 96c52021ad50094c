// SPDX-License-Identifier: Apache-2.0

// Measures the cost of gRPC and of TLS: two croutds on this machine over TCP, with and without TLS,
// and bare TCP connections, in turn.
// Prints one JSON object with the device, the commit and the date:
//   tls_bench > result.json
//
//   tls_latency  the time of the client for a solve with a cached factor of order 256 and one
//                right-hand side, over open connections
//   tls_upload   bytes per second of 512 MiB matrices, one or several at once on separate
//                connections. The server receives each matrix completely and refuses it, without
//                factoring it, because its last value is NaN. The transport "socket" is a bare
//                connection that a thread writes to and another thread reads from.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "crout/client.h"
#include "kernels/host/device/host_device.h"
#include "nlohmann/json.hpp"
#include "tests/bench/harness/bench_result.h"
#include "tests/e2e/harness/certificates.h"
#include "tests/e2e/harness/daemon.h"

namespace crout {
namespace {

constexpr int64_t kLatencyOrder = 256;
constexpr int kLatencyRounds = 2001;
constexpr int64_t kPayloadOrder = 8192;  // 512 MiB of float64
constexpr size_t kPayloadBytes = kPayloadOrder * kPayloadOrder * sizeof(double);
constexpr int kPayloadRounds = 5;

// A daemon with TLS and a daemon without TLS.
class Daemons {
 public:
  Daemons() {
    e2e::MakeAuthority(files_, "ca");
    e2e::MakeCertificate(files_, "server", "ca");
    const std::vector<std::string> flags = {"--host-budget=24GiB", "--receive-buffers=4GiB"};
    plain_ = std::make_unique<e2e::Daemon>(flags);
    std::vector<std::string> tls = flags;
    tls.insert(tls.end(), {"--tls-cert=" + files_.File("server.crt"),
                           "--tls-key=" + files_.File("server.key")});
    tls_ = std::make_unique<e2e::Daemon>(tls);
  }
  std::unique_ptr<Client> NewClient(bool tls) const {
    ClientOptions options;
    options.server = (tls ? tls_ : plain_)->address();
    options.retry.max_attempts = 1;
    if (tls) options.tls = TlsOptions{.ca_file = files_.File("ca.crt")};
    return Check(Client::Connect(std::move(options)));
  }

 private:
  const e2e::TempDir files_;
  std::unique_ptr<e2e::Daemon> plain_;
  std::unique_ptr<e2e::Daemon> tls_;
};

double Quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

nlohmann::ordered_json BenchLatency(const Daemons& daemons) {
  const int64_t n = kLatencyOrder;
  std::vector<double> a(n * n, 1.0);
  for (int64_t i = 0; i < n; ++i) a[i * (n + 1)] = static_cast<double>(2 * n);
  const std::vector<double> b(n, 1.0);
  std::vector<double> x(n);
  SpanSink sink(absl::MakeSpan(x));
  std::unique_ptr<Client> clients[2];
  std::string handles[2];
  std::vector<double> seconds[2];
  for (const bool tls : {false, true}) {
    clients[tls] = daemons.NewClient(tls);
    handles[tls] = Check(clients[tls]->Factor(MatrixSource::Dense(a, n, n), {}, {})).handle;
  }
  for (int round = -200; round < kLatencyRounds; ++round) {  // the first are warm-up
    for (const bool tls : {round % 2 == 0, round % 2 != 0}) {
      const double took = Time([&] {
        Check(clients[tls]->Solve(handles[tls], MatrixSource::Dense(b, n, 1), {}, &sink).status());
      });
      if (round >= 0) seconds[tls].push_back(took);
    }
  }
  return {{"n", n},
          {"rounds", kLatencyRounds},
          {"plain_median_us", 1e6 * Median(seconds[0])},
          {"tls_median_us", 1e6 * Median(seconds[1])},
          {"extra_us", 1e6 * (Median(seconds[1]) - Median(seconds[0]))},
          {"plain_p99_us", 1e6 * Quantile(seconds[0], 0.99)},
          {"tls_p99_us", 1e6 * Quantile(seconds[1], 0.99)}};
}

// A TCP connection of this process to itself.
class Loopback {
 public:
  Loopback() {
    const int listener = CheckCall(socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    CheckCall(bind(listener, name, size));
    CheckCall(listen(listener, 1));
    CheckCall(getsockname(listener, name, &size));
    sender_ = CheckCall(socket(AF_INET, SOCK_STREAM, 0));
    CheckCall(connect(sender_, name, size));
    receiver_ = CheckCall(accept(listener, nullptr, nullptr));
    close(listener);
  }
  ~Loopback() {
    close(sender_);
    close(receiver_);
  }
  Loopback(const Loopback&) = delete;  // It owns descriptors.
  Loopback& operator=(const Loopback&) = delete;

  // Sends all of `data` into `received`, which has the same size.
  void Transfer(std::span<const std::byte> data, std::span<std::byte> received) const {
    const std::jthread sender([&] {
      while (!data.empty()) {
        const size_t most = std::min(data.size(), kMost);
        data = data.subspan(CheckCall(send(sender_, data.data(), most, MSG_NOSIGNAL)));
      }
    });
    while (!received.empty()) {
      const size_t most = std::min(received.size(), kMost);
      received = received.subspan(CheckCall(recv(receiver_, received.data(), most, 0)));
    }
  }

 private:
  static constexpr size_t kMost = size_t{1} << 20;  // bytes of a call

  template <class Result>
  static Result CheckCall(Result result) {
    if (result < 0) Check(absl::ErrnoToStatus(errno, "a TCP connection to this machine"));
    return result;
  }

  int sender_;
  int receiver_;
};

void Upload(Client& client, const std::vector<double>& a) {
  FactorOptions options;
  options.equilibrate = Equilibrate::kOff;
  const absl::Status refused =
      client.Factor(MatrixSource::Dense(a, kPayloadOrder, kPayloadOrder), options, {}).status();
  if (!absl::IsInvalidArgument(refused)) {
    Check(absl::InternalError("the NaN was not found: " + refused.ToString()));
  }
}

// Measures `transfer(i)` for each i below `count` at the same time, each in a thread of its own.
nlohmann::ordered_json TimeTransfers(const char* transport, unsigned count,
                                     const std::function<void(unsigned)>& transfer) {
  std::vector<double> rates;
  for (int round = -1; round < kPayloadRounds; ++round) {
    const double seconds = Time([&] {
      std::vector<std::jthread> threads;
      for (unsigned i = 0; i < count; ++i) threads.emplace_back([&, i] { transfer(i); });
    });
    if (round >= 0) rates.push_back(static_cast<double>(kPayloadBytes * count) / seconds * 1e-9);
  }
  return {{"transport", transport},
          {"clients", count},
          {"mib", kPayloadBytes >> 20},
          {"rounds", kPayloadRounds},
          {"gb_per_s_median", Median(rates)},
          {"gb_per_s_min", *std::min_element(rates.begin(), rates.end())},
          {"gb_per_s_max", *std::max_element(rates.begin(), rates.end())}};
}

// Measures 1, 4 and 8 concurrent uploads. Eight need eight cores.
nlohmann::ordered_json BenchUpload(const Daemons& daemons, unsigned cores) {
  nlohmann::ordered_json cases = nlohmann::ordered_json::array();
  std::vector<double> a(kPayloadOrder * kPayloadOrder, 1.0);
  a.back() = std::numeric_limits<double>::quiet_NaN();
  for (const unsigned side_by_side : {1U, 4U, 8U}) {
    if (side_by_side > std::max(cores, 4U)) break;
    {
      const std::vector<Loopback> connections(side_by_side);
      std::vector<std::vector<std::byte>> received(side_by_side,
                                                   std::vector<std::byte>(kPayloadBytes));
      cases.push_back(TimeTransfers("socket", side_by_side, [&](unsigned i) {
        connections[i].Transfer(std::as_bytes(std::span(a)), received[i]);
      }));
    }
    for (const bool tls : {false, true}) {
      std::vector<std::unique_ptr<Client>> clients;
      for (unsigned i = 0; i < side_by_side; ++i) clients.push_back(daemons.NewClient(tls));
      cases.push_back(TimeTransfers(tls ? "TLS" : "plain", side_by_side,
                                    [&](unsigned i) { Upload(*clients[i], a); }));
    }
  }
  return cases;
}

int Main() {
  const auto device = host::MakeDevice({});
  nlohmann::ordered_json result = ResultHeader("tls", device->info());
  const unsigned cores = std::thread::hardware_concurrency();
  result["cores"] = cores;
  const Daemons daemons;
  result["tls_latency"] = nlohmann::ordered_json::array({BenchLatency(daemons)});
  result["tls_upload"] = BenchUpload(daemons, cores);
  std::cout << FormatResult(result);
  return 0;
}

}  // namespace
}  // namespace crout

int main() { return crout::Main(); }
