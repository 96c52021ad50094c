#include "tests/bench/cudss.h"

#include <dlfcn.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

constexpr const char* kLibrary = "libcudss.so.1";
constexpr const char* kThreadingLayer = "libcudss_mtlayer_gomp.so.1";

// Values of its enumerations, in version 1.
constexpr int kConfigDeterministic = 24;
constexpr int kDataLuEntries = 1;
constexpr int kDataPivots = 2;
constexpr int kAnalysis = 1 | 2;
constexpr int kFactorization = 4;
constexpr int kRefactorization = 8;
constexpr int kSolve = 16 | 32 | 64 | 128 | 256 | 512;
constexpr int kGeneral = 0;      // matrix, not symmetric
constexpr int kFull = 0;         // all of its entries
constexpr int kBaseZero = 0;     // indices
constexpr int kColumnMajor = 0;  // dense matrices

absl::Status StatusOf(int code, absl::string_view call) {
  if (code == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(call, " of cuDSS: status ", code));
}

template <class F>
bool Find(void* library, const char* name, F*& function) {
  function = reinterpret_cast<F*>(dlsym(library, name));
  return function != nullptr;
}

bool FindAll(void* library, CudssFunctions& f) {
  return Find(library, "cudssCreate", f.create) && Find(library, "cudssDestroy", f.destroy) &&
         Find(library, "cudssSetThreadingLayer", f.set_threading_layer) &&
         Find(library, "cudssGetProperty", f.get_property) &&
         Find(library, "cudssConfigCreate", f.config_create) &&
         Find(library, "cudssConfigDestroy", f.config_destroy) &&
         Find(library, "cudssConfigSet", f.config_set) &&
         Find(library, "cudssDataCreate", f.data_create) &&
         Find(library, "cudssDataDestroy", f.data_destroy) &&
         Find(library, "cudssDataGet", f.data_get) &&
         Find(library, "cudssMatrixCreateCsr", f.matrix_create_csr) &&
         Find(library, "cudssMatrixCreateDn", f.matrix_create_dense) &&
         Find(library, "cudssMatrixDestroy", f.matrix_destroy) &&
         Find(library, "cudssExecute", f.execute);
}

// That library beside the one that has `function`; by its name alone where that is not known.
std::string Beside(const void* function, const char* library) {
  Dl_info info;
  if (dladdr(function, &info) == 0) return library;
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? library : path.substr(0, slash + 1) + library;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Cudss>> Cudss::Load() {
  // Never closed: what it registered with the CUDA runtime is used until the process ends.
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::NotFoundError(dlerror());
  std::unique_ptr<Cudss> cudss(new Cudss);
  if (!FindAll(library, cudss->functions_)) return absl::NotFoundError(dlerror());
  CROUT_RETURN_IF_ERROR(cudss->Initialize());
  return cudss;
}

absl::Status Cudss::Initialize() {
  CROUT_RETURN_IF_ERROR(StatusOf(functions_.create(&handle_), "Create"));
  int version[3] = {};
  for (int part = 0; part < 3; ++part) {
    CROUT_RETURN_IF_ERROR(StatusOf(functions_.get_property(part, &version[part]), "GetProperty"));
  }
  description_ = absl::StrCat("cuDSS ", version[0], ".", version[1], ".", version[2]);
  const std::string layer =
      Beside(reinterpret_cast<const void*>(functions_.create), kThreadingLayer);
  const bool threads = functions_.set_threading_layer(handle_, layer.c_str()) == 0;
  absl::StrAppend(&description_, threads ? ", with" : ", without", " its threading layer");
  return absl::OkStatus();
}

Cudss::~Cudss() {
  if (handle_ != nullptr) functions_.destroy(handle_);
}

namespace {

std::vector<int64_t> RowStarts(const AnySparse& a) {
  const int64_t* const begin = a.As<double>().row_start;
  return {begin, begin + a.n + 1};
}

std::vector<int32_t> Columns(const AnySparse& a) {
  const int32_t* const begin = a.As<double>().column;
  return {begin, begin + a.nonzeros};
}

std::vector<double> ValuesByRows(const AnySparse& a) {
  const SparseView<double> view = a.As<double>();
  std::vector<double> values(a.nonzeros);
  for (int64_t e = 0; e < a.nonzeros; ++e) values[e] = view.value[view.position[e]];
  return values;
}

}  // namespace

CudssSolver::CudssSolver(const Cudss& cudss, const AnySparse& a, const std::vector<double>& b)
    : cudss_(cudss),
      n_(a.n),
      nonzeros_(a.nonzeros),
      columns_(static_cast<int64_t>(b.size()) / a.n),
      row_start_(RowStarts(a)),
      column_(Columns(a)),
      value_(ValuesByRows(a)),
      b_(b),
      x_(b.size()) {}

absl::StatusOr<std::unique_ptr<CudssSolver>> CudssSolver::Make(const Cudss& cudss,
                                                               const AnySparse& a,
                                                               const std::vector<double>& b,
                                                               bool deterministic) {
  std::unique_ptr<CudssSolver> solver(new CudssSolver(cudss, a, b));
  CROUT_RETURN_IF_ERROR(solver->Describe(deterministic));
  return solver;
}

absl::Status CudssSolver::Describe(bool deterministic) {
  const CudssFunctions& f = cudss_.functions_;
  CROUT_RETURN_IF_ERROR(StatusOf(f.config_create(&config_), "ConfigCreate"));
  const int on = deterministic ? 1 : 0;
  CROUT_RETURN_IF_ERROR(
      StatusOf(f.config_set(config_, kConfigDeterministic, &on, sizeof(on)), "ConfigSet"));
  CROUT_RETURN_IF_ERROR(
      StatusOf(f.matrix_create_csr(&a_matrix_, n_, n_, nonzeros_, row_start_.get(), nullptr,
                                   column_.get(), value_.get(), CUDA_R_64I, CUDA_R_32I, CUDA_R_64F,
                                   kGeneral, kFull, kBaseZero),
               "MatrixCreateCsr"));
  const auto dense = [&](void** matrix, int64_t columns, const double* values) {
    return StatusOf(
        f.matrix_create_dense(matrix, n_, columns, n_, values, CUDA_R_64F, kColumnMajor),
        "MatrixCreateDn");
  };
  CROUT_RETURN_IF_ERROR(dense(&b_first_, 1, b_.get()));
  CROUT_RETURN_IF_ERROR(dense(&x_first_, 1, x_.get()));
  CROUT_RETURN_IF_ERROR(dense(&b_all_, columns_, b_.get()));
  return dense(&x_all_, columns_, x_.get());
}

CudssSolver::~CudssSolver() {
  const CudssFunctions& f = cudss_.functions_;
  if (data_ != nullptr) f.data_destroy(cudss_.handle_, data_);
  if (config_ != nullptr) f.config_destroy(config_);
  for (void* matrix : {a_matrix_, b_first_, x_first_, b_all_, x_all_}) {
    if (matrix != nullptr) f.matrix_destroy(matrix);
  }
}

absl::Status CudssSolver::NewData() {
  const CudssFunctions& f = cudss_.functions_;
  if (data_ != nullptr) {
    CROUT_RETURN_IF_ERROR(StatusOf(f.data_destroy(cudss_.handle_, data_), "DataDestroy"));
    data_ = nullptr;
  }
  return StatusOf(f.data_create(cudss_.handle_, &data_), "DataCreate");
}

absl::Status CudssSolver::Execute(int phase, void* x, void* b) {
  CROUT_RETURN_IF_ERROR(
      StatusOf(cudss_.functions_.execute(cudss_.handle_, phase, config_, data_, a_matrix_, x, b),
               absl::StrCat("Execute, phase ", phase)));
  return cuda::CudaStatus(cudaDeviceSynchronize(), "cuDSS");
}

absl::Status CudssSolver::Analyze() {
  CROUT_RETURN_IF_ERROR(NewData());
  return Execute(kAnalysis, x_first_, b_first_);
}
absl::Status CudssSolver::Factor() { return Execute(kFactorization, x_first_, b_first_); }
absl::Status CudssSolver::Refactor() { return Execute(kRefactorization, x_first_, b_first_); }
absl::Status CudssSolver::SolveOne() { return Execute(kSolve, x_first_, b_first_); }
absl::Status CudssSolver::SolveAll() { return Execute(kSolve, x_all_, b_all_); }

void CudssSolver::SetFirst(const std::vector<double>& b) {
  CheckCuda(cudaMemcpy(b_.get(), b.data(), n_ * sizeof(double), cudaMemcpyHostToDevice));
}

// Counts are of 64 bits or of 32: the library refuses the other size.
absl::StatusOr<int64_t> CudssSolver::Get(int parameter) const {
  const auto get = [&](auto value) -> absl::StatusOr<int64_t> {
    size_t written = 0;
    CROUT_RETURN_IF_ERROR(StatusOf(cudss_.functions_.data_get(cudss_.handle_, data_, parameter,
                                                              &value, sizeof(value), &written),
                                   absl::StrCat("DataGet, parameter ", parameter)));
    return static_cast<int64_t>(written == sizeof(int32_t) ? static_cast<int32_t>(value) : value);
  };
  const absl::StatusOr<int64_t> wide = get(int64_t{0});
  return wide.ok() ? wide : get(int32_t{0});
}

absl::StatusOr<int64_t> CudssSolver::LuEntries() const { return Get(kDataLuEntries); }
absl::StatusOr<int64_t> CudssSolver::PerturbedPivots() const { return Get(kDataPivots); }

}  // namespace crout
