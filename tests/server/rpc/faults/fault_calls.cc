// SPDX-License-Identifier: Apache-2.0

// The calls of the fault matrix and their payloads.
#include "absl/strings/str_cat.h"
#include "tests/server/rpc/faults/fault_fixture.h"
#include "tests/server/rpc/sparse/sparse_fixture.h"

namespace crout::testing {
namespace {

constexpr int64_t kGrid = 20;  // the sparse matrix has order kGrid^2

// Returns members with the total size of the first payload of other calls.
std::vector<Member> Members() { return std::vector<Member>(9, Random(32, 32, 1)); }
std::vector<int64_t> Indexes() { return {0, 1, 2, 3, 4, 5, 6, 7, 8}; }

// A tridiagonal matrix of order 50.
std::string MatrixMarket() {
  std::string text = "%%MatrixMarket matrix coordinate real general\n50 50 148\n";
  for (int i = 1; i <= 50; ++i) {
    absl::StrAppend(&text, i, " ", i, " 4\n");
    if (i < 50) absl::StrAppend(&text, i, " ", i + 1, " -1\n", i + 1, " ", i, " -2\n");
  }
  return text;
}

}  // namespace

void FaultFixture::SetClient(const ClientName& client, OpenCall& call) {
  call.context().AddMetadata("authorization", "Bearer " + client.token);
  call.context().AddMetadata("crout-tenant", client.tenant);
}

std::string FaultFixture::BatchPayload() { return Encode(Members()).data; }

std::unique_ptr<OpenCall> FaultFixture::MakeFactorizeBatch(Stub& stub) {
  v1::FactorizeRequest request;
  *request.mutable_header() = HeaderOf(Encode(Members()));
  request.mutable_header()->mutable_options()->set_device("cuda:0");
  return Streamed(stub, &Stub::Factorize, request);
}

std::unique_ptr<OpenCall> FaultFixture::MakeFactorize(const ClientName& client, int64_t n,
                                                      const std::string& device, bool durable) {
  v1::FactorizeRequest request;
  *request.mutable_header()->mutable_matrix() = Dense(n, n);
  request.mutable_header()->mutable_options()->set_device(device);
  request.mutable_header()->mutable_cache()->set_durable(durable);
  auto call = Streamed(stub(), &Stub::Factorize, request);
  SetClient(client, *call);
  return call;
}

std::unique_ptr<OpenCall> FaultFixture::MakeSolve(const ClientName& client,
                                                  const std::string& handle) {
  v1::SolveRequest request;
  request.mutable_header()->set_handle(handle);
  *request.mutable_header()->mutable_rhs() = Dense(kSmall, 1);
  auto call = Streamed(stub(), &Stub::Solve, request);
  SetClient(client, *call);
  return call;
}

std::unique_ptr<OpenCall> FaultFixture::MakeOccupant() {
  v1::FactorizeAndSolveRequest request;
  *request.mutable_header()->mutable_matrix() = Dense(kSmall, kSmall);
  *request.mutable_header()->mutable_rhs() = Dense(kSmall, 0);
  request.mutable_header()->mutable_options()->set_device("cuda:0");
  auto call = Streamed(stub(), &Stub::FactorizeAndSolve, request);
  SetClient(kOther, *call);
  return call;
}

std::string FaultFixture::Payload() const {
  switch (call_kind()) {
    case CallKind::kSolveBatch:
      return Encode(Members(), Indexes()).data;
    case CallKind::kFactorizeBatch:
    case CallKind::kFactorizeAndSolveBatch:
      return BatchPayload();
    case CallKind::kFactorizeSparse:
      return BytesOf(Grid(kGrid));
    case CallKind::kFactorizeText:
      return MatrixMarket();
    case CallKind::kSolve:
      return Bytes(std::vector<double>(kOrder * kOrder, 1.0));  // kOrder right-hand sides
    default:
      return traits().has_payload ? Bytes(Matrix(kOrder)) : "";
  }
}

std::unique_ptr<OpenCall> FaultFixture::MakeCall(Stub& stub) {
  const auto make = [&]() -> std::unique_ptr<OpenCall> {
    v1::FactorizeRequest factorize;
    factorize.mutable_header()->mutable_options()->set_device("cuda:0");
    *factorize.mutable_header()->mutable_matrix() = Dense(kOrder, kOrder);
    factorize.mutable_header()->mutable_cache()->set_durable(traits().stores);
    v1::FactorizeAndSolveRequest both;
    both.mutable_header()->mutable_options()->set_device("cuda:0");
    *both.mutable_header()->mutable_matrix() = Dense(kOrder, kOrder);
    *both.mutable_header()->mutable_rhs() = Dense(kOrder, 0);
    switch (call_kind()) {
      case CallKind::kFactorize:
      case CallKind::kFactorizeDurable:
        return Streamed(stub, &Stub::Factorize, factorize);
      case CallKind::kFactorizeSparse: {
        const Triplets grid = Grid(kGrid);
        v1::SparseSpec& spec = *factorize.mutable_header()->mutable_matrix()->mutable_sparse();
        spec.set_rows(kGrid * kGrid);
        spec.set_cols(kGrid * kGrid);
        spec.set_entries(std::ssize(grid));
        factorize.mutable_header()->mutable_options()->set_algorithm(v1::ALGORITHM_MULTIFRONTAL);
        return Streamed(stub, &Stub::Factorize, factorize);
      }
      case CallKind::kFactorizeText:
        *factorize.mutable_header()->mutable_matrix() = Text();
        return Streamed(stub, &Stub::Factorize, factorize);
      case CallKind::kFactorizeBatch:
        return MakeFactorizeBatch(stub);
      case CallKind::kRefactorize:
      case CallKind::kRefactorizeDurable: {
        v1::RefactorizeRequest request;
        request.mutable_header()->set_handle(handle_);
        *request.mutable_header()->mutable_matrix() = Dense(kOrder, kOrder);
        return Streamed(stub, &Stub::Refactorize, request);
      }
      case CallKind::kSolve: {
        v1::SolveRequest request;
        request.mutable_header()->set_handle(handle_);
        *request.mutable_header()->mutable_rhs() = Dense(kOrder, kOrder);
        return Streamed(stub, &Stub::Solve, request);
      }
      case CallKind::kSolveBatch: {
        v1::SolveRequest request;
        *request.mutable_header() = Header(batch_, Encode(Members(), Indexes()));
        return Streamed(stub, &Stub::Solve, request);
      }
      case CallKind::kFactorizeAndSolve:
        return Streamed(stub, &Stub::FactorizeAndSolve, both);
      case CallKind::kFactorizeAndSolveBatch:
        *both.mutable_header()->mutable_matrix() = HeaderOf(Encode(Members())).matrix();
        both.mutable_header()->clear_rhs();
        SetRhs(Encode({}), *both.mutable_header()->mutable_rhs());
        return Streamed(stub, &Stub::FactorizeAndSolve, both);
      case CallKind::kDirect:
        both.mutable_header()->mutable_options()->set_algorithm(v1::ALGORITHM_GAUSS_JORDAN);
        return Streamed(stub, &Stub::FactorizeAndSolve, both);
      case CallKind::kSchur: {
        v1::ComputeSchurComplementRequest request;
        *request.mutable_header()->mutable_matrix() = Dense(kOrder, kOrder);
        request.mutable_header()->set_leading_order(kOrder / 2);
        request.mutable_header()->mutable_options()->set_device("cuda:0");
        return Streamed(stub, &Stub::ComputeSchurComplement, request);
      }
      case CallKind::kEchelon: {
        v1::ReduceToEchelonFormRequest request;
        *request.mutable_header()->mutable_matrix() = Dense(kOrder, kOrder);
        request.mutable_header()->set_device("cuda:0");
        return Streamed(stub, &Stub::ReduceToEchelonForm, request);
      }
      case CallKind::kSeries: {
        v1::SolveSeriesRequest request, last;
        *request.mutable_header()->mutable_matrix() = Dense(kOrder, kOrder);
        *request.mutable_header()->mutable_rhs() = Dense(kOrder, 1);
        request.mutable_header()->mutable_options()->set_device("cuda:0");
        last.set_rhs_data(Bytes(std::vector<double>(kOrder, 1)));
        return Streamed(stub, &Stub::SolveSeries, request, std::optional(last));
      }
      case CallKind::kGetFactors: {
        v1::GetFactorsRequest request;
        request.set_handle(handle_);
        return std::make_unique<DownloadCall>(stub, request);
      }
      case CallKind::kListFactors:
        return Unary(stub, &Stub::AsyncListFactors, v1::ListFactorsRequest());
      case CallKind::kDescribeFactor: {
        v1::DescribeFactorRequest request;
        request.set_handle(handle_);
        return Unary(stub, &Stub::AsyncDescribeFactor, request);
      }
      case CallKind::kRenewLease: {
        v1::RenewLeaseRequest request;
        request.set_handle(handle_);
        request.mutable_lease()->set_seconds(7200);
        return Unary(stub, &Stub::AsyncRenewLease, request);
      }
      case CallKind::kReleaseFactor: {
        v1::ReleaseFactorRequest request;
        request.set_handle(handle_);
        return Unary(stub, &Stub::AsyncReleaseFactor, request);
      }
      case CallKind::kEstimateFactorize: {
        v1::EstimateFactorizeRequest request;
        request.set_n(kOrder);
        return Unary(stub, &Stub::AsyncEstimateFactorize, request);
      }
      case CallKind::kGetServerInfo:
        break;
    }
    return Unary(stub, &Stub::AsyncGetServerInfo, v1::GetServerInfoRequest());
  };
  auto call = make();
  SetClient(kCaller, *call);
  return call;
}

}  // namespace crout::testing
