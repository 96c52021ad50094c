// SPDX-License-Identifier: Apache-2.0

// Factors a matrix on a Crout server and solves with its factors, from C++.
//
// usage: solve_cc [HOST:PORT]
#include <crout/factor.h>

#include <iostream>
#include <memory>
#include <utility>
#include <vector>

// [docs]
using crout::MatrixSource;

absl::Status Solve(const std::string& server) {
  auto client = crout::Client::Connect({.server = server});
  if (!client.ok()) return client.status();
  const std::vector<double> a = {4, 1, 0, 1, 4, 1, 0, 1, 4};  // by columns
  const std::vector<double> b = {6, 12, 14};                  // A (1, 2, 3)
  auto factor = crout::Factor::Make(*std::move(client), MatrixSource::Dense(a, 3, 3));
  if (!factor.ok()) return factor.status();

  std::vector<double> x(3);
  crout::SpanSink solution(absl::MakeSpan(x));
  auto pending = factor->SolveAsync(MatrixSource::Dense(b, 3, 1), {}, &solution);
  const auto result = pending.get();
  if (!result.ok()) return result.status();
  std::cout << "x = " << x[0] << " " << x[1] << " " << x[2] << "\n"
            << "growth " << factor->description().pivot_growth << ", backward error "
            << (*result->backward_error < 1e-15 ? "below" : "above") << " 1e-15\n";
  return factor->Release();
}
// [end]

int main(int argc, char** argv) {
  const absl::Status status = Solve(argc > 1 ? argv[1] : "127.0.0.1:50051");
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
