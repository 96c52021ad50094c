// SPDX-License-Identifier: Apache-2.0

// Sequential LU of SuperLU, with COLAMD.
#include <slu_ddefs.h>

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tests/bench/harness/bench_result.h"
#include "tests/bench/sparse/sparse_libraries.h"

namespace crout {
namespace {

class SuperLu final : public LibrarySolver {
 public:
  SuperLu(const SparseView<double>& a, int64_t nonzeros)
      : n_(static_cast<int>(a.n)),
        start_(a.column_start, a.column_start + a.n + 1),
        row_(a.row, a.row + nonzeros),
        value_(a.value, a.value + nonzeros),
        column_order_(a.n),
        row_order_(a.n),
        tree_(a.n) {
    set_default_options(&options_);
    options_.ColPerm = COLAMD;
    dCreate_CompCol_Matrix(&a_, n_, n_, static_cast<int>(nonzeros), value_.data(), row_.data(),
                           start_.data(), SLU_NC, SLU_D, SLU_GE);
    StatInit(&statistics_);
  }
  ~SuperLu() override {
    FreeFactor();
    Destroy_SuperMatrix_Store(&a_);
    StatFree(&statistics_);
  }
  SuperLu(const SuperLu&) = delete;
  SuperLu& operator=(const SuperLu&) = delete;

  void Factor() override {
    get_perm_c(options_.ColPerm, &a_, column_order_.data());
    Eliminate();
  }
  void Refactor() override {
    FreeFactor();
    options_.Fact = SamePattern;
    Eliminate();
  }
  void Solve(std::vector<double>& x) override {
    SuperMatrix b;
    dCreate_Dense_Matrix(&b, n_, 1, x.data(), n_, SLU_DN, SLU_D, SLU_GE);
    int info = 0;
    dgstrs(NOTRANS, &l_, &u_, column_order_.data(), row_order_.data(), &b, &statistics_, &info);
    Destroy_SuperMatrix_Store(&b);
    Must(info);
  }

 private:
  static void Must(int info) {
    if (info != 0) Check(absl::InternalError(absl::StrCat("SuperLU ended with info ", info)));
  }

  void Eliminate() {
    SuperMatrix permuted;
    sp_preorder(&options_, &a_, column_order_.data(), tree_.data(), &permuted);
    int info = 0;
    dgstrf(&options_, &permuted, sp_ienv(2), sp_ienv(1), tree_.data(), nullptr, 0,
           column_order_.data(), row_order_.data(), &l_, &u_, &memory_, &statistics_, &info);
    Destroy_CompCol_Permuted(&permuted);
    Must(info);
    factored_ = true;
  }
  void FreeFactor() {
    if (!factored_) return;
    Destroy_SuperNode_Matrix(&l_);
    Destroy_CompCol_Matrix(&u_);
    factored_ = false;
  }

  const int n_;
  std::vector<int> start_, row_;
  std::vector<double> value_;
  std::vector<int> column_order_, row_order_, tree_;
  superlu_options_t options_;
  SuperLUStat_t statistics_;
  GlobalLU_t memory_;
  SuperMatrix a_, l_, u_;
  bool factored_ = false;
};

}  // namespace

std::unique_ptr<LibrarySolver> MakeSuperLu(const SparseView<double>& a, int64_t nonzeros) {
  return std::make_unique<SuperLu>(a, nonzeros);
}

}  // namespace crout
