// SPDX-License-Identifier: Apache-2.0

// Prints the maximum dynamic shared memory, in bytes, of the launches of each kernel. The argument
// is the shared memory of a block of threads. The machine code does not contain these numbers.
// kernel_needs.py runs this program, which needs no GPU.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "kernels/cuda/crout_lu/block_row.h"
#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/device_limits.h"
#include "kernels/cuda/icm/icm_panel.h"
#include "kernels/cuda/icm/icm_plan.h"
#include "kernels/cuda/icm/icm_start.h"
#include "kernels/cuda/icm/section_sweeps.h"
#include "kernels/cuda/solve/invert_diagonal.h"

namespace crout::cuda {
namespace {

void Print(const char* kernel, const char* arguments, size_t bytes) {
  std::printf("%s<%s>\t%zu\n", kernel, arguments, bytes);
}

template <class T>
void PrintIcm(const DeviceLimits& limits, const char* type) {
  for (const char* columns : {", 8", ", 16", ", 32"}) {
    Print("SectionSweepsKernel", (std::string(type) + columns).c_str(), SectionSweepsBytes(limits));
  }
  if (!IcmFits(kDTypeOf<T>, limits, true)) return;
  Print("PanelKernel", type, IcmPanelBytes<T>());
  Print("ExchangeKernel", type, IcmExchangeBytes<T>(MaxSearchedColumns(kDTypeOf<T>, limits)));
}

template <class T>
void PrintInverse(const DeviceLimits& limits, const char* type) {
  Print("InvertDiagonalKernel", type, InvertDiagonalBytes(MaxInvertedOrder(kDTypeOf<T>, limits)));
}

// BlockRowKernel<T, true> supports elements of at most 8 bytes, and runs only on GPUs with enough
// shared memory.
template <class T>
void PrintBlockRow(const DeviceLimits& limits, const char* type) {
  if constexpr (sizeof(T) <= 8) {
    if (BlockRowBytes<T>() <= limits.DynamicBytes(0)) {
      Print("BlockRowKernel", (std::string(type) + ", true").c_str(), BlockRowBytes<T>());
    }
  }
  Print("BlockRowKernel", (std::string(type) + ", false").c_str(), SolveRowsBytes<T>());
}

template <class T>
void PrintFor(const DeviceLimits& limits, const char* type) {
  PrintBlockRow<T>(limits, type);
  PrintInverse<T>(limits, type);
  PrintIcm<T>(limits, type);
}

}  // namespace
}  // namespace crout::cuda

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s BYTES\n", argv[0]);
    return 2;
  }
  crout::cuda::DeviceLimits limits;
  limits.shared_bytes = std::strtoull(argv[1], nullptr, 10);
  crout::cuda::PrintFor<double>(limits, "double");
  crout::cuda::PrintFor<float>(limits, "float");
  crout::cuda::PrintFor<crout::cuda::Complex<double>>(limits, "Complex<double>");
  crout::cuda::PrintFor<crout::cuda::Complex<float>>(limits, "Complex<float>");
  std::printf("ComposeKernel\t%zu\n", crout::cuda::IcmComposeBytes(limits));
  return 0;
}
