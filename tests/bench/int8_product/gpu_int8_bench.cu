// SPDX-License-Identifier: Apache-2.0

// Measures C := C - A B in float64 on a GPU's INT8 tensor cores, beside cublasDgemm.
//   gpu_int8_bench check                     compares both multiplications bit by bit
//   gpu_int8_bench accuracy                  errors by family of matrices and number of moduli
//   gpu_int8_bench speed ORDER INNER ROUNDS  times of products of ORDER x INNER and INNER x ORDER
// check and speed cover all schedules of our own multiplication. The last argument `library` leaves
// it out.
// An error is |computed - exact| / (|A||B|) of an element, in units of 2^-53.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/bench/int8_product/cuda_check.h"
#include "tests/bench/int8_product/int8_product.h"
#include "tests/bench/int8_product/test_matrices.h"

namespace crout::int8_product {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kFusedSlab = 4096;

// Fills A (rows x inner) or B (inner x columns), column-major.
__global__ void FillKernel(Family family, bool of_b, int64_t outer, int64_t inner, double* matrix) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= outer * inner) return;
  matrix[i] = of_b ? Element(family, true, i / inner, i % inner, inner)
                   : Element(family, false, i % outer, i / outer, inner);
}

__global__ void CountDifferencesKernel(const double* x, const double* y, int64_t size,
                                       unsigned long long* count) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < size && __double_as_longlong(x[i]) != __double_as_longlong(y[i])) atomicAdd(count, 1ull);
}

unsigned BlocksFor(int64_t work) { return static_cast<unsigned>((work + kThreads - 1) / kThreads); }

// The matrices of a product and the library's handle.
class Workbench {
 public:
  explicit Workbench(const Shape& shape)
      : shape_(shape),
        a_(shape.rows * shape.inner),
        b_(shape.inner * shape.columns),
        c_(Size()),
        workspace_(kWorkspace) {
    Require(cublasCreate(&library_), "cublasCreate");
    Require(cublasSetWorkspace(library_, workspace_.get(), kWorkspace), "cublasSetWorkspace");
  }
  ~Workbench() { cublasDestroy(library_); }

  void Fill(Family family) {
    FillKernel<<<BlocksFor(shape_.rows * shape_.inner), kThreads>>>(family, false, shape_.rows,
                                                                    shape_.inner, a_.get());
    FillKernel<<<BlocksFor(shape_.columns * shape_.inner), kThreads>>>(family, true, shape_.columns,
                                                                       shape_.inner, b_.get());
    Require(cudaGetLastError(), "FillKernel");
  }
  void Clear() { Require(cudaMemsetAsync(c_.get(), 0, Size() * sizeof(double)), "cudaMemset"); }

  void Native() {
    const auto [rows, columns, inner, slab] = shape_;
    const double minus_one = -1;
    const double one = 1;
    Require(
        cublasDgemm(library_, CUBLAS_OP_N, CUBLAS_OP_N, static_cast<int>(rows),
                    static_cast<int>(columns), inner, &minus_one, a_.get(), static_cast<int>(rows),
                    b_.get(), inner, &one, c_.get(), static_cast<int>(rows)),
        "cublasDgemm");
  }
  void Emulated(Int8Product& product) {
    product.Enqueue({a_.get(), b_.get(), c_.get()}, library_, nullptr, events_);
  }

  const Shape& shape() const { return shape_; }
  const StageEvents& events() const { return events_; }
  const double* a() const { return a_.get(); }
  const double* b() const { return b_.get(); }
  const double* c() const { return c_.get(); }
  int64_t Size() const { return shape_.rows * shape_.columns; }

 private:
  static constexpr int64_t kWorkspace = int64_t{64} << 20;

  Shape shape_;
  DeviceArray<double> a_;
  DeviceArray<double> b_;
  DeviceArray<double> c_;
  DeviceArray<uint8_t> workspace_;
  cublasHandle_t library_ = nullptr;
  StageEvents events_;
};

std::vector<double> CopyToHost(const double* data, int64_t size) {
  std::vector<double> result(size);
  Require(cudaMemcpy(result.data(), data, size * sizeof(double), cudaMemcpyDeviceToHost),
          "cudaMemcpy");
  return result;
}

// Prints the number of elements that the two multiplications compute differently.
bool CheckBits(Workbench& bench, Int8Product& library, Int8Product& fused) {
  const int64_t size = bench.Size();
  DeviceArray<double> expected(size);
  DeviceArray<unsigned long long> count(1);
  bench.Clear();
  bench.Emulated(library);
  Require(cudaMemcpy(expected.get(), bench.c(), size * sizeof(double), cudaMemcpyDeviceToDevice),
          "cudaMemcpy");
  bench.Clear();
  bench.Emulated(fused);
  Require(cudaMemset(count.get(), 0, sizeof(unsigned long long)), "cudaMemset");
  CountDifferencesKernel<<<BlocksFor(size), kThreads>>>(expected.get(), bench.c(), size,
                                                        count.get());
  unsigned long long differences = 0;
  Require(cudaMemcpy(&differences, count.get(), sizeof differences, cudaMemcpyDeviceToHost),
          "the comparison");
  const Shape& shape = bench.shape();
  std::printf("check %lld x %lld, inner %d: %llu of %lld elements differ\n",
              static_cast<long long>(shape.rows), static_cast<long long>(shape.columns),
              shape.inner, differences, static_cast<long long>(size));
  return differences == 0;
}

// Returns whether both multiplications compute the same bits.
bool Check() {
  bool same = true;
  for (const Shape& shape :
       {Shape{256, 512, 128, 512}, Shape{512, 1024, 640, 512}, Shape{2048, 3072, 4096, 3072}}) {
    Workbench bench(shape);
    bench.Fill(Family::kSpread);
    Int8Product library(shape, 15, Multiplication::kLibrary);
    for (int schedule = 0; schedule < kSchedules; ++schedule) {
      std::printf("%s: ", kScheduleNames[schedule]);
      Int8Product fused(shape, 15, Multiplication::kFused, static_cast<Schedule>(schedule));
      same = CheckBits(bench, library, fused) && same;
    }
  }
  return same;
}

// Prints the largest and the mean square error of sampled elements of C = -A B.
void PrintErrors(const char* label, const std::vector<ExactDot>& exact,
                 const std::vector<int64_t>& sample, const Workbench& bench) {
  const std::vector<double> c = CopyToHost(bench.c(), bench.Size());
  double largest = 0;
  double squares = 0;
  for (size_t i = 0; i < sample.size(); ++i) {
    const double error = exact[i].ErrorOf(-c[sample[i]]);
    largest = std::max(largest, error);
    squares += error * error;
  }
  std::printf("  %-8s max %9.3g  rms %9.3g\n", label, largest,
              std::sqrt(squares / static_cast<double>(sample.size())));
}

void Accuracy(Multiplication multiplication) {
  constexpr int kSamples = 400;
  for (const int inner : {1024, 4096}) {
    const Shape shape = {1024, 1024, inner, 1024};
    Workbench bench(shape);
    for (int family = 0; family < kFamilies; ++family) {
      bench.Fill(static_cast<Family>(family));
      const std::vector<double> a = CopyToHost(bench.a(), shape.rows * inner);
      const std::vector<double> b = CopyToHost(bench.b(), shape.columns * inner);
      std::vector<int64_t> sample(kSamples);
      std::vector<ExactDot> exact(kSamples);
      for (int i = 0; i < kSamples; ++i) {
        const auto row = static_cast<int64_t>((1 + Uniform(40, i, 0)) / 2 * 1024);
        const auto column = static_cast<int64_t>((1 + Uniform(41, i, 0)) / 2 * 1024);
        sample[i] = column * shape.rows + row;
        for (int l = 0; l < inner; ++l) {
          exact[i].Add(a[l * shape.rows + row], b[column * inner + l]);
        }
      }
      std::printf("accuracy %s, inner %d\n", kFamilyNames[family], inner);
      bench.Clear();
      bench.Native();
      PrintErrors("native", exact, sample, bench);
      for (int moduli = kMinModuli; moduli <= kMaxModuli; ++moduli) {
        Int8Product product(shape, moduli, multiplication);
        bench.Clear();
        bench.Emulated(product);
        PrintErrors(std::to_string(moduli).c_str(), exact, sample, bench);
      }
    }
  }
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A way to compute the product, and its measured milliseconds.
struct Subject {
  std::string name;
  int moduli;                            // 0 for the native product
  std::unique_ptr<Int8Product> product;  // null for the native product
  std::vector<double> times;
  std::vector<double> stages[kStages];
};

void Measure(Workbench& bench, Subject& subject, cudaEvent_t begin, cudaEvent_t end) {
  Require(cudaEventRecord(begin), "cudaEventRecord");
  if (subject.product != nullptr) {
    bench.Emulated(*subject.product);
  } else {
    bench.Native();
  }
  Require(cudaEventRecord(end), "cudaEventRecord");
  Require(cudaEventSynchronize(end), "the product");
  float milliseconds = 0;
  Require(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
  subject.times.push_back(milliseconds);
  if (subject.product == nullptr) return;
  const std::vector<float> stages = bench.events().Milliseconds();
  for (int i = 0; i < kStages; ++i) subject.stages[i].push_back(stages[i]);
}

void PrintTimes(const Shape& shape, const Subject& subject) {
  const double operations =
      2.0 * static_cast<double>(shape.rows) * static_cast<double>(shape.columns) * shape.inner;
  const auto [least, most] = std::minmax_element(subject.times.begin(), subject.times.end());
  const double median = Median(subject.times);
  std::printf("  %-22s %8.3f ms [%.3f, %.3f] %7.2f TFLOP/s", subject.name.c_str(), median, *least,
              *most, operations / median * 1e-9);
  if (subject.product != nullptr) {
    const double multiply = Median(subject.stages[kMultiply]);
    std::printf("  scale %.3f multiply %.3f (%.0f TOP/s) reduce %.3f reconstruct %.3f",
                Median(subject.stages[kScale]), multiply,
                subject.moduli * operations / multiply * 1e-9, Median(subject.stages[kReduce]),
                Median(subject.stages[kReconstruct]));
  }
  std::printf("\n");
  std::fflush(stdout);
}

// Measures all subjects in turn, our own multiplication only if `with_fused`.
void Speed(int64_t order, int inner, int rounds, bool with_fused) {
  Shape shape = {order, order, inner, order};
  Workbench bench(shape);
  bench.Fill(Family::kUnit);
  std::vector<Subject> subjects;
  const auto add = [&](std::string name, int64_t slab, int moduli, Multiplication multiplication,
                       Schedule schedule) {
    shape.slab = std::min(slab, order);
    auto product = std::make_unique<Int8Product>(shape, moduli, multiplication, schedule);
    subjects.push_back({std::move(name), moduli, std::move(product), {}, {}});
  };
  subjects.push_back({"native", 0, nullptr, {}, {}});
  add("14 library", order, 14, Multiplication::kLibrary, Schedule::kPairs);
  add("15 library", order, 15, Multiplication::kLibrary, Schedule::kPairs);
  if (with_fused) {
    for (const int moduli : {14, 15}) {
      for (int schedule = 0; schedule < kSchedules; ++schedule) {
        add(std::to_string(moduli) + " " + kScheduleNames[schedule], kFusedSlab, moduli,
            Multiplication::kFused, static_cast<Schedule>(schedule));
        CheckBits(bench, *subjects[moduli == 14 ? 1 : 2].product, *subjects.back().product);
      }
    }
  }
  cudaEvent_t begin;
  cudaEvent_t end;
  Require(cudaEventCreate(&begin), "cudaEventCreate");
  Require(cudaEventCreate(&end), "cudaEventCreate");
  constexpr int kRepetitions = 3;  // repeats a subject in a round, so that it determines the clock
  for (int round = -1; round < rounds; ++round) {
    for (Subject& subject : subjects) {
      for (int i = 0; i < kRepetitions; ++i) Measure(bench, subject, begin, end);
      if (round >= 0) continue;  // warm-up
      subject.times.clear();
      for (std::vector<double>& stage : subject.stages) stage.clear();
    }
  }
  std::printf("speed order %lld, inner %d, %d products each\n", static_cast<long long>(order),
              inner, rounds * kRepetitions);
  for (const Subject& subject : subjects) PrintTimes(shape, subject);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
}

}  // namespace
}  // namespace crout::int8_product

int main(int argc, char** argv) {
  using namespace crout::int8_product;
  const bool fused = std::strcmp(argv[argc - 1], "library") != 0;
  if (!fused) --argc;
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "check") return Check() ? 0 : 1;
  if (mode == "accuracy") {
    Accuracy(fused ? Multiplication::kFused : Multiplication::kLibrary);
    return 0;
  }
  if (mode == "speed" && argc == 5) {
    const int64_t order = std::atoll(argv[2]);
    const int inner = std::atoi(argv[3]);
    const int rounds = std::atoi(argv[4]);
    const bool whole = order > 0 && order % kFusedSlab == 0 && inner > 0 &&
                       inner % kTileInner == 0 && inner <= kMaxInner && rounds > 0;
    if (whole) {
      Speed(order, inner, rounds, fused);
      return 0;
    }
    std::fprintf(stderr,
                 "ORDER must be a multiple of %lld, INNER a multiple of %d up to %d, ROUNDS "
                 "positive.\n",
                 static_cast<long long>(kFusedSlab), kTileInner, kMaxInner);
    return 2;
  }
  std::fprintf(
      stderr,
      "usage: gpu_int8_bench check | accuracy [library] | speed ORDER INNER ROUNDS [library]\n");
  return 2;
}
