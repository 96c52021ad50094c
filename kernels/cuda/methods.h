// SPDX-License-Identifier: Apache-2.0

// Creates methods of the CUDA device, for its catalogue. `core` must outlive them. The other
// methods are classes in getrf/getrf.h, icm/icm.h and solve/solvers.h.
#ifndef CROUT_KERNELS_CUDA_METHODS_H_
#define CROUT_KERNELS_CUDA_METHODS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/batch_lu.h"
#include "kernels/catalogue.h"
#include "kernels/cuda/device/cuda_device_core.h"
#include "kernels/direct_solver.h"
#include "kernels/echelon_reducer.h"
#include "kernels/lu_algorithm.h"
#include "kernels/memory.h"
#include "kernels/out_of_core_lu.h"
#include "kernels/sparse_lu.h"

namespace crout::cuda {

// `crout_lu`: blocked LU with partial pivoting and look-ahead (crout_lu.h).
absl::StatusOr<std::unique_ptr<LuAlgorithm>> MakeCroutLu(DeviceCore& core);

// LU of matrices in pinned host memory (crout_lu/out_of_core.h), in `workspace` and on `context` of
// the same device.
absl::StatusOr<std::unique_ptr<OutOfCoreLu>> MakeOutOfCoreLu(
    DeviceCore& core, std::unique_ptr<ExecutionContext> context, Buffer workspace);

// `pcm` (never pivots) and `pcmpp` (partial pivoting unless a parameter selects another rule),
// after Cejka (2023): column k of L in parallel, arg-max, swap, row k of U in parallel. In the
// published method every column reads all earlier ones. Here a column reads only the earlier
// columns of its panel, and the rest is matrix products (recursive_lu.h). LuParameters::block_size
// selects the tile of the panel that one thread block handles: that many columns (8, 16, 32;
// default 32; complex128 at most 16), and one row per thread.
absl::StatusOr<std::unique_ptr<LuAlgorithm>> MakePcm(DeviceCore& core);
absl::StatusOr<std::unique_ptr<LuAlgorithm>> MakePcmpp(DeviceCore& core);

// `block_lu`: A = LU with the unit diagonal in L, by tiles in shared memory (after the blocked
// method of Rodrigues and Estevao, 2023) under the recursion of recursive_lu.h. For matrices that
// need no pivoting, such as diagonally dominant ones. A pivot that is zero, below the type's normal
// range, or NaN is refused: info is its 1-based index, and the method stops there. The columns to
// its left then hold L and U; the rest of the matrix holds the partially eliminated values.
std::unique_ptr<LuAlgorithm> MakeBlockLu(DeviceCore& core);

// `gauss_jordan`: reduces [A B] to reduced row echelon form by stripes, with partial pivoting
// (Carcenac 2014, Eyvazov 2021). A stripe is a group of columns that are eliminated together.
// Crout's method factors its pivot block and turns the pivot rows to the right into A11^-1 [A12
// B1]. Matrix products then subtract multiples of these rows from all other rows, above and below.
// Carcenac assigns one stream to each stripe. Here one stream handles all stripes, because each
// product fills the device.
//
// n^3 + 2 n^2 nrhs operations. X has the order of B's rows, because every interchange also applies
// to B.
absl::StatusOr<std::unique_ptr<DirectSolver>> MakeGaussJordan(DeviceCore& core);

// Gauss-Jordan elimination (E. Eyvazov, Gauss-Jordan Solver of Linear Equation Systems on GPU, CTU
// 2021) by panels of columns, with partial pivoting, which the published method lacks. The update
// of the columns right of a panel is one matrix product, whose shape does not depend on the number
// of pivots. So only the device needs the rank, and nothing waits for the host before the end.
std::unique_ptr<EchelonReducer> MakeEchelonReducer(DeviceCore& core);

// `irr_lu`: IrrGetrf, IrrGetrs and the probe (irr_lu.h), and LargeMembers for large members. The
// workspace's host memory holds the order of the members and each member's offset in the probe's
// workspace.
absl::StatusOr<std::unique_ptr<BatchLu>> MakeIrrLu(DeviceCore& core);

// Creates `multifrontal`: LU by dense fronts along the elimination tree, with the fronts of one
// level as irregular batches (multifrontal.h). Uses the current device.
absl::StatusOr<std::unique_ptr<SparseLu>> MakeMultifrontal(DeviceCore& core);

// Creates the solver `multifrontal` for such factors.
std::unique_ptr<TriangularSolver> MakeMultifrontalSolver(DeviceCore& core);

// Adds `cudss`: sparse LU by NVIDIA's library (cudss.h), and solves with its factors, whose blocks
// come from `memory`. If the library is missing, the catalogue records `cudss` as absent with the
// package to install. Uses the current device.
void AddCudss(DeviceCore& core, MemoryResource& memory, Catalogue& catalogue);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_METHODS_H_
