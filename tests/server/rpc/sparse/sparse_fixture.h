// SPDX-License-Identifier: Apache-2.0

// A fixture for sparse matrices in binary form, with a server that has methods for them.
#ifndef CROUT_TESTS_SERVER_RPC_SPARSE_SPARSE_FIXTURE_H_
#define CROUT_TESTS_SERVER_RPC_SPARSE_SPARSE_FIXTURE_H_

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/host/methods.h"
#include "server/rpc/codec/names.h"
#include "tests/server/rpc/fixture.h"

namespace crout::testing {

// Indices are 0-based.
struct Triplet {
  int64_t row;
  int64_t column;
  double value;
};
using Triplets = std::vector<Triplet>;

// Returns the five-point stencil with convection, which makes it unsymmetric, on m x m points.
// `seed` varies the values.
inline Triplets Grid(int64_t m, int seed = 0) {
  Triplets entries;
  const auto add = [&](int64_t i, int64_t j, int64_t k, int64_t l, double value) {
    if (k < 0 || l < 0 || k == m || l == m) return;
    entries.push_back({i + j * m, k + l * m, value * (1 + 1e-3 * seed * ((i + l) % 7))});
  };
  for (int64_t j = 0; j < m; ++j) {
    for (int64_t i = 0; i < m; ++i) {
      add(i, j, i, j, 4.5);
      add(i, j, i - 1, j, -1.4);
      add(i, j, i + 1, j, -1);
      add(i, j, i, j - 1, -1.1);
      add(i, j, i, j + 1, -1);
    }
  }
  return entries;
}

// The matrix of a star graph, of order kStar. Without matching, its leaves are eliminated first,
// each with the pivot `pivot`.
inline constexpr int64_t kLeaves = 30, kBorder = 60, kStar = kLeaves + kBorder;
inline Triplets Star(double pivot) {
  Triplets a;
  for (int64_t i = 0; i < kLeaves; ++i) {
    a.push_back({i, i, pivot});
    for (int64_t k = 0; k < 3; ++k) {
      const int64_t j = kLeaves + (7 * i + 11 * k) % kBorder;
      a.push_back({i, j, 1.0 + static_cast<double>(k)});
      a.push_back({j, i, 2.0 - 0.3 * static_cast<double>(k)});
    }
  }
  for (int64_t i = 0; i < kBorder; ++i) {
    for (int64_t j = 0; j < kBorder; ++j) {
      const double shift = i == j ? 4 : 0;
      a.push_back(
          {kLeaves + i, kLeaves + j, shift + std::cos(static_cast<double>(i * i + 3 * i * j))});
    }
  }
  return a;
}

template <class T>
void Append(T value, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Returns the entries in the wire format: rows, columns, then float64 values.
inline std::string BytesOf(const Triplets& entries) {
  std::string bytes;
  for (const Triplet& entry : entries) Append(static_cast<int32_t>(entry.row), &bytes);
  for (const Triplet& entry : entries) Append(static_cast<int32_t>(entry.column), &bytes);
  for (const Triplet& entry : entries) Append(entry.value, &bytes);
  return bytes;
}

// Returns the normwise backward error of x, in the infinity norm.
inline double BackwardError(const Triplets& a, bool transposed, const std::vector<double>& x,
                            const std::vector<double>& b) {
  std::vector<double> r = b, row(b.size());
  for (const Triplet& entry : a) {
    const int64_t i = transposed ? entry.column : entry.row;
    const int64_t j = transposed ? entry.row : entry.column;
    r[i] -= entry.value * x[j];
    row[i] += std::abs(entry.value);
  }
  const auto largest = [](const std::vector<double>& v) {
    double most = 0;
    for (const double value : v) most = std::max(most, std::abs(value));
    return most;
  };
  return largest(r) / (largest(row) * largest(x) + largest(b));
}

// A test with a server that has the given sparse methods. Matrices are n x n in float64. Functions
// that run a call return its status.
class RpcSparseTest : public RpcTest {
 protected:
  explicit RpcSparseTest(std::vector<v1::Algorithm> methods) : methods_(std::move(methods)) {}

  void Start(int64_t max_n = 4096, size_t device_budget = size_t{256} << 20) {
    Config config = SmallConfig();
    config.limits.max_n = max_n;
    config.pool.device_budget_bytes = device_budget;
    FakeDeviceOptions options;
    options.has_sparse_ops = true;
    options.register_more = [this](Catalogue& catalogue) {
      for (const v1::Algorithm method : methods_) catalogue.sparse_lus.push_back(Make(method));
      catalogue.absent = absent_;
    };
    StartServer(options, config);
  }

  static v1::MatrixSpec Sparse(int64_t n, const Triplets& a) {
    v1::MatrixSpec spec;
    spec.mutable_sparse()->set_rows(n);
    spec.mutable_sparse()->set_cols(n);
    spec.mutable_sparse()->set_entries(std::ssize(a));
    return spec;
  }
  // Return a header for this method, by default for the first method of the server.
  v1::FactorizeHeader Header(int64_t n, const Triplets& a) const {
    return Header(n, a, methods_.front());
  }
  static v1::FactorizeHeader Header(int64_t n, const Triplets& a, v1::Algorithm algorithm) {
    v1::FactorizeHeader header;
    *header.mutable_matrix() = Sparse(n, a);
    header.mutable_options()->set_algorithm(algorithm);
    return header;
  }
  v1::Factor MustFactor(const v1::FactorizeHeader& header, const Triplets& a) {
    v1::Factor factor;
    const grpc::Status status = Factorize(header, BytesOf(a), &factor);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return factor;
  }
  grpc::Status Refactorize(const v1::RefactorizeHeader& header, const std::string& data,
                           v1::Factor* factor) {
    grpc::ClientContext context;
    auto stream = stub().Refactorize(&context);
    v1::RefactorizeRequest request;
    *request.mutable_header() = header;
    request.set_data(data);
    stream->Write(request);
    stream->WritesDone();
    v1::RefactorizeResponse response;
    while (stream->Read(&response)) {
      if (response.has_factor()) *factor = response.factor();
    }
    return stream->Finish();
  }
  grpc::Status Refactorize(const std::string& handle, int64_t n, const Triplets& a,
                           v1::Factor* factor) {
    v1::RefactorizeHeader header;
    header.set_handle(handle);
    *header.mutable_matrix() = Sparse(n, a);
    header.mutable_options()->set_algorithm(methods_.front());
    return Refactorize(header, BytesOf(a), factor);
  }

  void ExpectSolves(const std::string& handle, int64_t n, const Triplets& a) {
    std::vector<double> b(n);
    for (int64_t i = 0; i < n; ++i) b[i] = 1 + i % 5;
    Solved solved;
    const grpc::Status status = Solve(handle, b, &solved);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_TRUE(SolvesItsOwn(solved.result.solver()));
    EXPECT_LT(solved.result.backward_error(), 1e-15);
    EXPECT_LT(BackwardError(a, false, solved.x, b), 1e-15);
  }

  void ExpectRefused(const v1::FactorizeHeader& header, const std::string& data,
                     grpc::StatusCode code, const std::string& text) {
    v1::Factor factor;
    const grpc::Status status = Factorize(header, data, &factor);
    EXPECT_EQ(status.error_code(), code) << status.error_message();
    EXPECT_THAT(status.error_message(), ::testing::HasSubstr(text));
    ExpectHeldSoon(Holdings());
  }

  virtual std::unique_ptr<SparseLu> Make(v1::Algorithm method) {
    return method == v1::ALGORITHM_KLU ? host::MakeKlu(executor_)
                                       : host::MakeMultifrontal(executor_);
  }
  // Returns whether `solver` belongs to the first method.
  bool SolvesItsOwn(v1::Solver solver) const {
    return SolverName(solver) == AlgorithmName(methods_.front());
  }

  const std::vector<v1::Algorithm> methods_;
  std::vector<AbsentMethod> absent_;  // methods to report as absent; set before Start()
  host::Executor executor_{2};
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SERVER_RPC_SPARSE_SPARSE_FIXTURE_H_
