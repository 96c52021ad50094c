// SPDX-License-Identifier: Apache-2.0

// Invalid Factorize requests: streams, options, values and texts.
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/e2e/input/bad_input.h"

namespace crout::e2e::bad_input {
namespace {

using absl::StatusCode;

constexpr double kInf = std::numeric_limits<double>::infinity();

v1::FactorizeRequest FactorizeHead(const v1::MatrixSpec& spec, const std::string& data = "") {
  v1::FactorizeRequest request;
  *request.mutable_header()->mutable_matrix() = spec;
  request.set_data(data);
  return request;
}

Case Factorize(std::string name, StatusCode code, std::vector<v1::FactorizeRequest> messages,
               std::string text = "") {
  return {std::move(name), code,
          [messages](Fixture& fixture) {
            grpc::ClientContext context;
            return Exchange(fixture.stub().Factorize(&context), messages);
          },
          std::move(text)};
}

// Returns the size line and the entries of the identity matrix.
std::string DiagonalEntries(int n) {
  std::string text = absl::StrCat(n, " ", n, " ", n, "\n");
  for (int i = 1; i <= n; ++i) absl::StrAppend(&text, i, " ", i, " 1\n");
  return text;
}

// Returns a case with a dense 2 x 2 request that is valid except for the change to its header.
Case FactorizeWith(std::string name, StatusCode code,
                   const std::function<void(v1::FactorizeHeader*)>& change, std::string text = "") {
  v1::FactorizeRequest request = FactorizeHead(DenseSpecOf(2, 2), DominantBytes(2));
  change(request.mutable_header());
  return Factorize(std::move(name), code, {request}, std::move(text));
}

Case Text(std::string name, StatusCode code, std::string text, std::string message = "") {
  return Factorize("text: " + name, code, {FactorizeHead(TextSpec(), text)}, std::move(message));
}

void AddStreams(std::vector<Case>* cases) {
  const std::string four = DominantBytes(2);
  v1::FactorizeRequest data_only;
  data_only.set_data(four);
  const auto invalid = StatusCode::kInvalidArgument;
  cases->push_back(Factorize("no message at all", invalid, {}));
  cases->push_back(Factorize("header missing", invalid, {data_only}));
  cases->push_back(
      Factorize("header repeated", invalid,
                {FactorizeHead(DenseSpecOf(2, 2)), FactorizeHead(DenseSpecOf(2, 2), four)}));
  cases->push_back(Factorize("no format", invalid, {FactorizeHead({}, four)}));
  cases->push_back(Factorize("no data", invalid, {FactorizeHead(DenseSpecOf(2, 2))}));
  cases->push_back(
      Factorize("truncated", invalid, {FactorizeHead(DenseSpecOf(2, 2), four.substr(0, 31))}));
  cases->push_back(Factorize("oversized", invalid, {FactorizeHead(DenseSpecOf(2, 2), four + "x")}));
  cases->push_back(Factorize("oversized in a later message", invalid,
                             {FactorizeHead(DenseSpecOf(2, 2), four), data_only}));
  cases->push_back(Factorize("bytes of float32 declared as float64", invalid,
                             {FactorizeHead(DenseSpecOf(2, 2), std::string(16, '\0'))}));
  cases->push_back(Factorize("bytes of float64 declared as float32", invalid,
                             {FactorizeHead(DenseSpecOf(2, 2, v1::DTYPE_FLOAT32), four)}));
  cases->push_back(Factorize("not square", invalid, {FactorizeHead(DenseSpecOf(2, 3), four)}));
  cases->push_back(Factorize("data for 0 x 0", invalid, {FactorizeHead(DenseSpecOf(0, 0), four)}));
  for (const int64_t n :
       {int64_t{-1}, int64_t{1} << 31, (int64_t{1} << 32) + 2, int64_t{1} << 62,
        std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
    cases->push_back(Factorize("declared n of " + std::to_string(n), invalid,
                               {FactorizeHead(DenseSpecOf(n, n), four)}));
  }
  cases->push_back(Factorize("more than the memory budget", StatusCode::kResourceExhausted,
                             {FactorizeHead(DenseSpecOf(100'000, 100'000), four)}));
}

void AddOptions(std::vector<Case>* cases) {
  const auto invalid = StatusCode::kInvalidArgument;
  const auto unimplemented = StatusCode::kUnimplemented;
  const auto dtype = [](int value) {
    return [value](auto* header) {
      header->mutable_matrix()->mutable_dense()->set_dtype(static_cast<v1::Dtype>(value));
    };
  };
  cases->push_back(FactorizeWith("half of complex128", invalid, dtype(v1::DTYPE_COMPLEX128)));
  cases->push_back(FactorizeWith("unknown dtype", invalid, dtype(99)));
  cases->push_back(FactorizeWith("unknown layout", invalid, [](auto* header) {
    header->mutable_matrix()->mutable_dense()->set_layout(static_cast<v1::Layout>(99));
  }));
  cases->push_back(FactorizeWith("unknown algorithm", unimplemented, [](auto* header) {
    header->mutable_options()->set_algorithm(static_cast<v1::Algorithm>(99));
  }));
  cases->push_back(FactorizeWith(
      "algorithm that the device lacks", unimplemented,
      [](auto* header) { header->mutable_options()->set_algorithm(v1::ALGORITHM_CROUT_LU); },
      "getrf"));
  cases->push_back(FactorizeWith("unknown device", invalid, [](auto* header) {
    header->mutable_options()->set_device("cuda:99");
  }));
  cases->push_back(FactorizeWith("unknown equilibrate", invalid, [](auto* header) {
    header->mutable_options()->set_equilibrate(static_cast<v1::Equilibrate>(99));
  }));
  for (const double threshold : {-0.5, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    cases->push_back(FactorizeWith("pivot threshold out of range", invalid, [=](auto* header) {
      header->mutable_options()->set_pivot_threshold(threshold);
    }));
  }
  cases->push_back(FactorizeWith("pivot threshold of a dense method", invalid, [](auto* header) {
    header->mutable_options()->set_algorithm(v1::ALGORITHM_GETRF);
    header->mutable_options()->set_pivot_threshold(0.1);
  }));
  cases->push_back(FactorizeWith("complex factors of a real matrix", invalid, [](auto* header) {
    header->mutable_options()->set_factor_dtype(v1::DTYPE_COMPLEX64);
  }));
  cases->push_back(FactorizeWith("negative lease", invalid, [](auto* header) {
    header->mutable_cache()->mutable_lease()->set_seconds(-1);
  }));
  cases->push_back(FactorizeWith("lease above the limit", invalid, [](auto* header) {
    header->mutable_cache()->mutable_lease()->set_seconds(int64_t{1} << 33);
  }));
  cases->push_back(FactorizeWith("lease that overflows", invalid, [](auto* header) {
    header->mutable_cache()->mutable_lease()->set_seconds(std::numeric_limits<int64_t>::max());
  }));
  cases->push_back(FactorizeWith("long name", invalid, [](auto* header) {
    header->mutable_cache()->set_name(std::string(129, 'n'));
  }));
  cases->push_back(FactorizeWith("long request_id", invalid, [](auto* header) {
    header->mutable_cache()->set_request_id(std::string(129, 'r'));
  }));
}

void AddValues(std::vector<Case>* cases) {
  const auto invalid = StatusCode::kInvalidArgument;
  const auto values = [](std::vector<double> a) {
    return std::vector{FactorizeHead(DenseSpecOf(2, 2), Bytes(a))};
  };
  // In column-major order, the third element is in row 0, column 1.
  cases->push_back(Factorize("NaN", invalid, values({1, 2, kNan, 4}), "row 0, column 1"));
  cases->push_back(Factorize("Inf", invalid, values({1, 2, 3, -kInf}), "row 1, column 1"));
  v1::FactorizeRequest overflow =
      FactorizeHead(DenseSpecOf(2, 2), Bytes(std::vector<double>{1, 0, 0, 1e300}));
  overflow.mutable_header()->mutable_options()->set_factor_dtype(v1::DTYPE_FLOAT32);
  // With equilibration the matrix would not overflow.
  overflow.mutable_header()->mutable_options()->set_equilibrate(v1::EQUILIBRATE_OFF);
  cases->push_back(Factorize("float64 that overflows float32 factors", invalid, {overflow}));
}

void AddTexts(std::vector<Case>* cases) {
  const auto invalid = StatusCode::kInvalidArgument;
  const std::string banner = "%%MatrixMarket matrix coordinate real general\n";
  cases->push_back(Text("empty", invalid, ""));
  cases->push_back(Text("no banner", invalid, "2 2 1\n1 1 1\n"));
  cases->push_back(Text("banner alone", invalid, banner));
  cases->push_back(Text("complex", invalid,
                        "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 0\n"));
  cases->push_back(Text("hermitian", invalid,
                        "%%MatrixMarket matrix coordinate complex hermitian\n1 1 1\n1 1 1 0\n"));
  cases->push_back(Text("negative size", invalid, banner + "-2 -2 1\n1 1 1\n"));
  cases->push_back(Text("negative count", invalid, banner + "2 2 -1\n"));
  cases->push_back(
      Text("declared n of 2^31", invalid, banner + "2147483648 2147483648 1\n1 1 1\n"));
  cases->push_back(
      Text("declared n beyond int64", invalid, banner + "9999999999999999999 2 1\n1 1 1\n"));
  cases->push_back(Text("2^60 entries declared, one there", StatusCode::kResourceExhausted,
                        banner + "2 2 1152921504606846976\n1 1 1\n"));
  cases->push_back(Text("fewer entries than declared", invalid, banner + "2 2 3\n1 1 1\n2 2 1\n"));
  cases->push_back(Text("more entries than declared", invalid, banner + "2 2 1\n1 1 1\n2 2 1\n"));
  cases->push_back(Text("index 0", invalid, banner + "2 2 1\n0 1 1\n", "3"));
  cases->push_back(Text("index above n", invalid, banner + "2 2 2\n1 1 1\n3 1 1\n", "4"));
  cases->push_back(
      Text("index beyond int64", invalid, banner + "2 2 1\n99999999999999999999 1 1\n"));
  cases->push_back(Text("value missing", invalid, banner + "2 2 1\n1 1\n", "3"));
  cases->push_back(Text("value that is no number", invalid, banner + "2 2 1\n1 1 one\n", "3"));
  cases->push_back(Text("NaN", invalid, banner + "2 2 1\n1 1 nan\n", "3"));
  cases->push_back(Text("value that overflows", invalid, banner + "2 2 1\n1 1 1e999\n", "3"));
  cases->push_back(Text("not square", invalid, banner + "2 3 1\n1 1 1\n"));
  cases->push_back(Text("array with too few values", invalid,
                        "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n"));
  cases->push_back(Text("array with too many values", invalid,
                        "%%MatrixMarket matrix array real general\n1 1\n1\n2\n"));
  cases->push_back(Text("broken gzip", invalid, "\x1f\x8b\x08 this is no deflate stream"));
  v1::FactorizeRequest dense_form = FactorizeHead(TextSpec(), banner + DiagonalEntries(100000));
  dense_form.mutable_header()->mutable_options()->set_algorithm(v1::ALGORITHM_GETRF);
  cases->push_back(
      Factorize("text: dense form above the budget", StatusCode::kResourceExhausted, {dense_form}));
  cases->push_back(
      Factorize("text: value that overflows float32", invalid,
                {FactorizeHead(TextSpec(v1::DTYPE_FLOAT32), banner + "1 1 1\n1 1 1e99\n")}));
}

}  // namespace

void AddFactorizes(std::vector<Case>* cases) {
  AddStreams(cases);
  AddOptions(cases);
  AddValues(cases);
  AddTexts(cases);
}

}  // namespace crout::e2e::bad_input
