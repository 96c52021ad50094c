// SPDX-License-Identifier: Apache-2.0

// Solves with blocks of Eigen matrices on a Crout server: column-major, row-major and complex.
//
// usage: solve_eigen [HOST:PORT]
#include <crout/eigen.h>
#include <crout/factor.h>

#include <Eigen/Dense>
#include <complex>
#include <iostream>
#include <utility>

using RowMajorMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Solves A X = B, where A is the 3 x 3 block of `big` that starts at (1, 2).
template <class Matrix>
absl::Status Solve(std::shared_ptr<crout::Client> client, const Matrix& big) {
  const auto a = big.block(1, 2, 3, 3);
  auto factor = crout::Factor::Make(std::move(client), crout::ToSource(a));
  if (!factor.ok()) return factor.status();
  Matrix wanted(3, 2);
  wanted << 1, 4, 2, 5, 3, 6;
  const Matrix b = a * wanted;
  Matrix x(3, 2);
  crout::StridedSink sink = crout::ToSink(x);
  const auto result = factor->Solve(crout::ToSource(b), {}, &sink);
  if (!result.ok()) return result.status();
  std::cout << "X is " << ((x - wanted).norm() < 1e-13 ? "right" : "wrong") << "\n";
  return factor->Release();
}

int main(int argc, char** argv) {
  auto client = crout::Client::Connect({.server = argc > 1 ? argv[1] : "127.0.0.1:50051"});
  absl::Status status = client.status();
  if (status.ok()) {
    const std::shared_ptr<crout::Client> shared = *std::move(client);
    Eigen::MatrixXd big = Eigen::MatrixXd::NullaryExpr(
        6, 6, [](auto i, auto j) { return static_cast<double>(i - 2 * j); });
    big.diagonal(1).setConstant(40);  // diagonal of the block
    status = Solve(shared, big);
    if (status.ok()) status = Solve(shared, RowMajorMatrix(big));
    const std::complex<double> shift(0, 1);
    if (status.ok()) status = Solve(shared, Eigen::MatrixXcd(big + shift * big.transpose()));
  }
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
