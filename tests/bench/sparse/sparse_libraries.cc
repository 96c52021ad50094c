// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/sparse/sparse_libraries.h"

#include <klu.h>
#include <umfpack.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/util/strings.h"
#include "tests/bench/harness/bench_result.h"

namespace crout {
#ifdef CROUT_BENCH_SUPERLU
std::unique_ptr<LibrarySolver> MakeSuperLu(const SparseView<double>& a, int64_t nonzeros);
#endif
namespace {

void CheckCall(bool ok, std::string_view library, int status) {
  if (!ok) Check(absl::InternalError(absl::StrCat(ToAbsl(library), " ended with status ", status)));
}

class Umfpack final : public LibrarySolver {
 public:
  Umfpack(const SparseView<double>& a, int64_t nonzeros)
      : n_(a.n),
        start_(a.column_start, a.column_start + a.n + 1),
        row_(a.row, a.row + nonzeros),
        value_(a.value, a.value + nonzeros),
        x_(a.n) {
    umfpack_dl_defaults(control_);
    control_[UMFPACK_IRSTEP] = 0;
  }
  ~Umfpack() override {
    umfpack_dl_free_symbolic(&symbolic_);
    umfpack_dl_free_numeric(&numeric_);
  }
  Umfpack(const Umfpack&) = delete;
  Umfpack& operator=(const Umfpack&) = delete;

  void Factor() override {
    Must(umfpack_dl_symbolic(n_, n_, start_.data(), row_.data(), value_.data(), &symbolic_,
                             control_, info_));
    Must(umfpack_dl_numeric(start_.data(), row_.data(), value_.data(), symbolic_, &numeric_,
                            control_, info_));
  }
  void Refactor() override {
    umfpack_dl_free_numeric(&numeric_);
    Must(umfpack_dl_numeric(start_.data(), row_.data(), value_.data(), symbolic_, &numeric_,
                            control_, info_));
  }
  void Solve(std::vector<double>& x) override {
    Must(umfpack_dl_solve(UMFPACK_A, start_.data(), row_.data(), value_.data(), x_.data(), x.data(),
                          numeric_, control_, info_));
    x.swap(x_);
  }

 private:
  static void Must(int status) { CheckCall(status == UMFPACK_OK, "UMFPACK", status); }

  const SuiteSparse_long n_;
  const std::vector<SuiteSparse_long> start_, row_;
  const std::vector<double> value_;
  std::vector<double> x_;
  double control_[UMFPACK_CONTROL];
  double info_[UMFPACK_INFO];
  void* symbolic_ = nullptr;
  void* numeric_ = nullptr;
};

class Klu final : public LibrarySolver {
 public:
  Klu(const SparseView<double>& a, int64_t nonzeros)
      : n_(static_cast<int>(a.n)),
        start_(a.column_start, a.column_start + a.n + 1),
        row_(a.row, a.row + nonzeros),
        value_(a.value, a.value + nonzeros) {
    klu_defaults(&common_);
  }
  ~Klu() override {
    klu_free_numeric(&numeric_, &common_);
    klu_free_symbolic(&symbolic_, &common_);
  }
  Klu(const Klu&) = delete;
  Klu& operator=(const Klu&) = delete;

  void Factor() override {
    symbolic_ = klu_analyze(n_, start_.data(), row_.data(), &common_);
    CheckCall(symbolic_ != nullptr, "KLU", common_.status);
    numeric_ = klu_factor(start_.data(), row_.data(), value_.data(), symbolic_, &common_);
    CheckCall(numeric_ != nullptr, "KLU", common_.status);
  }
  void Refactor() override {
    const int ok =
        klu_refactor(start_.data(), row_.data(), value_.data(), symbolic_, numeric_, &common_);
    CheckCall(ok != 0, "KLU", common_.status);
  }
  void Solve(std::vector<double>& x) override {
    CheckCall(klu_solve(symbolic_, numeric_, n_, 1, x.data(), &common_) != 0, "KLU",
              common_.status);
  }

 private:
  const int n_;
  std::vector<int> start_, row_;
  std::vector<double> value_;
  klu_common common_;
  klu_symbolic* symbolic_ = nullptr;
  klu_numeric* numeric_ = nullptr;
};

template <class Rival>
std::unique_ptr<LibrarySolver> Make(const SparseView<double>& a, int64_t nonzeros) {
  return std::make_unique<Rival>(a, nonzeros);
}

}  // namespace

std::vector<SparseLibrary> SparseLibraries() {
  return {{"umfpack", Make<Umfpack>},
#ifdef CROUT_BENCH_SUPERLU
          {"superlu", MakeSuperLu},
#endif
          {"klu", Make<Klu>}};
}

}  // namespace crout
