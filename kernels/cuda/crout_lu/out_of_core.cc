// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/crout_lu/out_of_core.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/blocked/interchange_rows.h"
#include "kernels/cuda/blocked/lu_product.h"
#include "kernels/cuda/crout_lu/crout_lu.h"
#include "kernels/cuda/crout_lu/out_of_core_workspace.h"
#include "kernels/cuda/crout_lu/tf32_product.h"
#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/cuda_handles.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/ops/blas.h"
#include "kernels/cuda/ops/permute_rows.h"
#include "kernels/util/poll_pause.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

// The streams of the copies in both directions, and the events that order them with the products.
// Each event exists twice: for even and odd block columns, or for the two pieces on the GPU.
struct Transfers {
  Stream in;
  Stream out;
  Event loaded;      // a block column has arrived
  Event updated;     // the products with the previous block column have ended
  Event factored;    // a block column is final on the GPU
  Event stored[2];   // a block column, or a permuted piece, has returned
  Event arrived[2];  // a piece has arrived
  Event used[2];     // the products with a piece have ended

  static absl::StatusOr<Transfers> Create() {
    Transfers transfers;
    CROUT_ASSIGN_OR_RETURN(transfers.in, MakeStream());
    CROUT_ASSIGN_OR_RETURN(transfers.out, MakeStream());
    for (Event* const event : {&transfers.loaded, &transfers.updated, &transfers.factored,
                               &transfers.stored[0], &transfers.stored[1], &transfers.arrived[0],
                               &transfers.arrived[1], &transfers.used[0], &transfers.used[1]}) {
      CROUT_ASSIGN_OR_RETURN(*event, MakeEvent());
    }
    return transfers;
  }
};

absl::Status Record(const Event& event, cudaStream_t stream) {
  return CudaStatus(cudaEventRecord(event.get(), stream), "cudaEventRecord");
}

// Later work on `stream` follows the last recording of `event`, if there is one.
absl::Status Follow(cudaStream_t stream, const Event& event) {
  return CudaStatus(cudaStreamWaitEvent(stream, event.get(), 0), "cudaStreamWaitEvent");
}

template <class T>
class OutOfCoreLu {
 public:
  OutOfCoreLu(Context& context, const LuPanelKernels& kernels, const OutOfCoreBlocking& blocking,
              const MatrixView<T>& a, std::span<std::byte> workspace, Transfers& transfers,
              const StopRequested& stop)
      : context_(context),
        kernels_(kernels),
        blocking_(blocking),
        a_(a),
        n_(a.rows),
        blocks_((n_ + blocking.width - 1) / blocking.width),
        layout_(OutOfCoreWorkspace::For(kernels, blocking, kDTypeOf<T>, n_)),
        workspace_(workspace),
        control_(At<LuControl<T>>(layout_.control)),
        ipiv_(At<int64_t>(layout_.ipiv)),
        infos_(At<int>(layout_.infos)),
        transfers_(transfers),
        main_(context.stream()),
        stop_(stop) {}

  absl::StatusOr<int64_t> Run(int64_t* ipiv) {
    context_.report().stop = 0;
    context_.report().ReportColumns(0);
    CROUT_RETURN_IF_CUDA_ERROR(LaunchStartLu(control_, main_));
    CROUT_RETURN_IF_ERROR(Load(0));
    for (int64_t j = 0; j < blocks_; ++j) {
      CROUT_RETURN_IF_ERROR(Update(j));
      if (j + 1 < blocks_) {
        CROUT_RETURN_IF_ERROR(Load(j + 1));
        for (int64_t t = 0; t < kPieces; ++t) CROUT_RETURN_IF_ERROR(Fetch(j + 1, t));
      }
      CROUT_RETURN_IF_ERROR(Factor(j));
      CROUT_RETURN_IF_ERROR(Store(j));
    }
    CROUT_RETURN_IF_ERROR(Await(transfers_.stored[(blocks_ - 1) % 2]));
    context_.report().ReportColumns(n_);  // only the rows of L are not yet in order
    CROUT_ASSIGN_OR_RETURN(const int64_t info, FetchPivots(ipiv));
    CROUT_RETURN_IF_ERROR(PermuteL());
    return info;
  }

  // Waits for all work in flight. The context's stream follows the other queues of products.
  absl::Status Drain() {
    CROUT_RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(main_));
    CROUT_RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(transfers_.in.get()));
    CROUT_RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(transfers_.out.get()));
    return absl::OkStatus();
  }

 private:
  static constexpr int64_t kPieces = 2;  // pieces of L on the GPU at a time

  // Columns [begin, end) of the matrix.
  struct Columns {
    int64_t begin;
    int64_t end;
    int64_t count() const { return end - begin; }
  };

  template <class V>
  V* At(size_t offset) const {
    return reinterpret_cast<V*>(workspace_.data() + offset);
  }
  Columns BlockColumn(int64_t j) const {
    return {j * blocking_.width, std::min((j + 1) * blocking_.width, n_)};
  }
  int64_t PiecesOf(Columns columns) const {
    return (columns.count() + blocking_.piece - 1) / blocking_.piece;
  }
  // Pieces of all block columns before `j`. Only the last block column may be narrower.
  int64_t PiecesBefore(int64_t j) const { return j * PiecesOf(BlockColumn(0)); }
  Columns Piece(int64_t t) const {
    const int64_t per_block = PiecesOf(BlockColumn(0));
    const Columns block = BlockColumn(t / per_block);
    const int64_t begin = block.begin + t % per_block * blocking_.piece;
    return {begin, std::min(begin + blocking_.piece, block.end)};
  }

  // Memory on the GPU keeps every row at its place in the matrix.
  MatrixView<T> Resident(int64_t j) const {
    return {At<T>(layout_.resident[j % 2]), n_, BlockColumn(j).count(), layout_.ld};
  }
  MatrixView<T> Staged(int64_t t) const {
    return {At<T>(layout_.staged[t % kPieces]), n_, Piece(t).count(), layout_.ld};
  }
  static MatrixView<T> Rows(const MatrixView<T>& m, int64_t begin, int64_t end) {
    return {m.data + begin, end - begin, m.cols, m.ld};
  }
  MatrixView<T> InHost(Columns columns, int64_t first_row) const {
    return {&a_(first_row, columns.begin), n_ - first_row, columns.count(), a_.ld};
  }

  static absl::Status Copy(const MatrixView<T>& from, const MatrixView<T>& to,
                           cudaMemcpyKind direction, const Stream& stream) {
    CROUT_RETURN_IF_CUDA_ERROR(cudaMemcpy2DAsync(to.data, to.ld * sizeof(T), from.data,
                                                 from.ld * sizeof(T), from.rows * sizeof(T),
                                                 from.cols, direction, stream.get()));
    return absl::OkStatus();
  }

  // Waits for the last recording of `event`, and polls `stop`.
  absl::Status Await(const Event& event) {
    const auto begin = std::chrono::steady_clock::now();
    for (;;) {
      if (absl::Status status = CheckNotStopped(stop_); !status.ok()) {
        context_.report().stop = 1;
        return status;
      }
      const cudaError_t state = cudaEventQuery(event.get());
      if (state != cudaErrorNotReady) return CudaStatus(state, "cudaEventQuery");
      const auto pause = PollPause(std::chrono::steady_clock::now() - begin);
      if (pause.count() > 0) std::this_thread::sleep_for(pause);
    }
  }

  // Copies block column j to the GPU, over block column j - 2.
  absl::Status Load(int64_t j) {
    CROUT_RETURN_IF_ERROR(Follow(transfers_.in.get(), transfers_.updated));
    CROUT_RETURN_IF_ERROR(Follow(transfers_.in.get(), transfers_.stored[j % 2]));
    CROUT_RETURN_IF_ERROR(
        Copy(InHost(BlockColumn(j), 0), Resident(j), cudaMemcpyHostToDevice, transfers_.in));
    return Record(transfers_.loaded, transfers_.in.get());
  }

  // Copies piece t to the GPU for the update of block column j. The block column before j is there
  // already. Earlier ones are in host memory, because Load(j) followed their return.
  absl::Status Fetch(int64_t j, int64_t t) {
    if (t >= PiecesBefore(j - 1)) return absl::OkStatus();
    const Columns piece = Piece(t);
    CROUT_RETURN_IF_ERROR(Follow(transfers_.in.get(), transfers_.used[t % kPieces]));
    CROUT_RETURN_IF_ERROR(Copy(InHost(piece, piece.begin), Rows(Staged(t), piece.begin, n_),
                               cudaMemcpyHostToDevice, transfers_.in));
    return Record(transfers_.arrived[t % kPieces], transfers_.in.get());
  }

  // Applies all earlier block columns to block column j. Pieces 0 and 1 have been fetched.
  absl::Status Update(int64_t j) {
    const Queue queue = context_.queue();
    CROUT_RETURN_IF_ERROR(queue.Bind());
    const DeviceScalars scalars(queue.cublas);
    CROUT_RETURN_IF_ERROR(Follow(main_, transfers_.loaded));
    const int64_t pieces = PiecesBefore(j);
    for (int64_t t = 0; t < pieces; ++t) {
      // The host enqueues at most two pieces ahead of the GPU, so that a job can be stopped.
      CROUT_RETURN_IF_ERROR(Await(transfers_.used[t % kPieces]));
      if (t == kPieces) context_.report().ReportColumns(BlockColumn(j).begin);
      CROUT_RETURN_IF_ERROR(Apply(queue, j, t));
      CROUT_RETURN_IF_ERROR(Record(transfers_.used[t % kPieces], main_));
      CROUT_RETURN_IF_ERROR(Fetch(j, t + kPieces));
    }
    return Record(transfers_.updated, main_);
  }

  // Applies piece t of L to block column j. The first piece of a block column is preceded by the
  // interchanges of that block column.
  absl::Status Apply(const Queue& queue, int64_t j, int64_t t) {
    const Columns piece = Piece(t);
    const int64_t k = piece.begin / blocking_.width;
    const Columns block = BlockColumn(k);
    const MatrixView<T> right = Resident(j);
    if (piece.begin == block.begin) {
      CROUT_RETURN_IF_CUDA_ERROR(
          LaunchInterchangeRows(Rows(right, block.begin, n_), ipiv_ + block.begin, 0, block.count(),
                                At<InterchangePlan>(layout_.plan), control_, main_));
    }
    MatrixView<T> l = Staged(t);
    if (k == j - 1) {
      const MatrixView<T> resident = Resident(k);
      l = {&resident(0, piece.begin - block.begin), n_, piece.count(), resident.ld};
    } else {
      CROUT_RETURN_IF_ERROR(Follow(main_, transfers_.arrived[t % kPieces]));
    }
    const MatrixView<T> triangle = Rows(l, piece.begin, piece.end);
    const MatrixView<T> u = Rows(right, piece.begin, piece.end);
    CROUT_RETURN_IF_CUBLAS_ERROR(
        Trsm<T>(queue.cublas, CUBLAS_FILL_MODE_LOWER, Op::kNone, CUBLAS_DIAG_UNIT, &control_->one,
                {triangle.data, triangle.rows, triangle.cols, triangle.ld}, u));
    return Subtract(queue, Rows(l, piece.end, n_), u, Rows(right, piece.end, n_));
  }

  // c := c - l u, by the kind of product that the blocking names.
  absl::Status Subtract(const Queue& queue, const MatrixView<T>& l, const MatrixView<T>& u,
                        const MatrixView<T>& c) {
    if (c.rows == 0) return absl::OkStatus();
    if constexpr (std::is_same_v<RealPart<T>, float>) {
      if (blocking_.panel.one_tf32_product) {
        return SubtractOneTf32Product(queue, *control_, l, u, c);
      }
      if (blocking_.panel.tf32) {
        std::byte* const left = At<std::byte>(layout_.split_left);
        CROUT_RETURN_IF_ERROR(SplitLeft(queue, *control_, l, left));
        return SubtractTf32Product(queue, *control_, left, u, c,
                                   At<std::byte>(layout_.split_right));
      }
    }
    return SubtractLuProduct(queue.cublas, *control_, l, u, c);
  }

  absl::Status Factor(int64_t j) {
    const Columns block = BlockColumn(j);
    const std::span<std::byte> workspace = workspace_.subspan(layout_.lu, layout_.lu_bytes);
    CROUT_RETURN_IF_ERROR(EnqueueCroutLu(LuStreams::WithoutProgress(context_), kernels_,
                                         blocking_.panel, Rows(Resident(j), block.begin, n_),
                                         ipiv_ + block.begin, workspace, stop_));
    CROUT_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(infos_ + j, CroutLuInfo(kDTypeOf<T>, workspace),
                                               sizeof(int), cudaMemcpyDeviceToDevice, main_));
    return Record(transfers_.factored, main_);
  }

  absl::Status Store(int64_t j) {
    CROUT_RETURN_IF_ERROR(Follow(transfers_.out.get(), transfers_.factored));
    CROUT_RETURN_IF_ERROR(
        Copy(Resident(j), InHost(BlockColumn(j), 0), cudaMemcpyDeviceToHost, transfers_.out));
    return Record(transfers_.stored[j % 2], transfers_.out.get());
  }

  // Writes the pivots as rows of the whole matrix, in host and device memory. Returns info. All
  // block columns are final.
  absl::StatusOr<int64_t> FetchPivots(int64_t* ipiv) {
    std::vector<int> infos(blocks_);
    CROUT_RETURN_IF_CUDA_ERROR(
        cudaMemcpyAsync(ipiv, ipiv_, n_ * sizeof(int64_t), cudaMemcpyDeviceToHost, main_));
    CROUT_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(infos.data(), infos_, blocks_ * sizeof(int),
                                               cudaMemcpyDeviceToHost, main_));
    CROUT_RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(main_));
    for (int64_t i = 0; i < n_; ++i) ipiv[i] += i / blocking_.width * blocking_.width;
    CROUT_RETURN_IF_CUDA_ERROR(
        cudaMemcpyAsync(ipiv_, ipiv, n_ * sizeof(int64_t), cudaMemcpyHostToDevice, main_));
    for (int64_t j = 0; j < blocks_; ++j) {
      if (infos[j] != 0) return BlockColumn(j).begin + infos[j];
    }
    return 0;
  }

  // Applies the interchanges of all later block columns to L. Each piece passes through the GPU:
  // one piece arrives and one returns while one is permuted.
  absl::Status PermuteL() {
    int64_t* const sources = At<int64_t>(layout_.sources);
    CROUT_RETURN_IF_CUDA_ERROR(
        LaunchTraceInterchanges(ipiv_, n_, n_, blocking_.width, sources, main_));
    const int64_t pieces = PiecesBefore(blocks_ - 1);
    for (int64_t t = 0; t < pieces; ++t) {
      const int64_t slot = t % kPieces;
      const Columns piece = Piece(t);
      const int64_t block = piece.begin / blocking_.width + 1;  // the first whose rows move
      const int64_t first = block * blocking_.width;
      MatrixView<T> permuted = Resident(slot);
      permuted.cols = piece.count();
      CROUT_RETURN_IF_ERROR(Await(transfers_.stored[slot]));
      CROUT_RETURN_IF_ERROR(Follow(transfers_.in.get(), transfers_.used[slot]));
      CROUT_RETURN_IF_ERROR(Copy(InHost(piece, first), Rows(Staged(t), first, n_),
                                 cudaMemcpyHostToDevice, transfers_.in));
      CROUT_RETURN_IF_ERROR(Record(transfers_.arrived[slot], transfers_.in.get()));
      CROUT_RETURN_IF_ERROR(Follow(main_, transfers_.arrived[slot]));
      // `sources` counts rows from the top, where the input view starts.
      MatrixView<T> staged = Staged(t);
      staged.rows = n_ - first;
      CROUT_RETURN_IF_CUDA_ERROR(LaunchPermuteRows(staged, sources + block * n_ + first, false,
                                                   Rows(permuted, first, n_), main_));
      CROUT_RETURN_IF_ERROR(Record(transfers_.used[slot], main_));
      CROUT_RETURN_IF_ERROR(Follow(transfers_.out.get(), transfers_.used[slot]));
      CROUT_RETURN_IF_ERROR(Copy(Rows(permuted, first, n_), InHost(piece, first),
                                 cudaMemcpyDeviceToHost, transfers_.out));
      CROUT_RETURN_IF_ERROR(Record(transfers_.stored[slot], transfers_.out.get()));
    }
    return absl::OkStatus();
  }

  Context& context_;
  const LuPanelKernels& kernels_;
  const OutOfCoreBlocking blocking_;
  const MatrixView<T> a_;
  const int64_t n_;
  const int64_t blocks_;
  const OutOfCoreWorkspace layout_;
  const std::span<std::byte> workspace_;
  LuControl<T>* const control_;  // scalars of the products; EnqueueCroutLu has another control word
  int64_t* const ipiv_;          // on the GPU; relative to their block column until all are known
  int* const infos_;             // on the GPU, one per block column
  Transfers& transfers_;
  const cudaStream_t main_;
  const StopRequested& stop_;
};

}  // namespace

template <class T>
absl::StatusOr<int64_t> FactorOutOfCore(Context& context, const LuPanelKernels& kernels,
                                        const OutOfCoreBlocking& blocking, const MatrixView<T>& a,
                                        int64_t* ipiv, std::span<std::byte> workspace,
                                        const StopRequested& stop) {
  if (a.rows == 0) return 0;
  CROUT_RETURN_IF_ERROR(CheckPanelHeight("crout_lu", a.rows, kernels.MaxRows(kDTypeOf<T>)));
  if (const size_t bytes = OutOfCoreBytes(kernels, blocking, kDTypeOf<T>, a.rows);
      workspace.size() < bytes) {
    return absl::InternalError(absl::StrCat("crout_lu out of core needs ", bytes,
                                            " bytes of workspace, got ", workspace.size()));
  }
  CROUT_ASSIGN_OR_RETURN(Transfers transfers, Transfers::Create());
  OutOfCoreLu<T> lu(context, kernels, blocking, a, workspace, transfers, stop);
  absl::StatusOr<int64_t> info = lu.Run(ipiv);
  const absl::Status drained = lu.Drain();
  // A loss of the device during a cancelled job must not be missed.
  if (!drained.ok() && (info.ok() || absl::IsUnavailable(drained))) return drained;
  return info;
}

#define CROUT_INSTANTIATE(T)                                                                     \
  template absl::StatusOr<int64_t> FactorOutOfCore(                                              \
      Context&, const LuPanelKernels&, const OutOfCoreBlocking&, const MatrixView<T>&, int64_t*, \
      std::span<std::byte>, const StopRequested&)
CROUT_INSTANTIATE(float);
CROUT_INSTANTIATE(double);
CROUT_INSTANTIATE(Complex<float>);
CROUT_INSTANTIATE(Complex<double>);
#undef CROUT_INSTANTIATE

}  // namespace crout::cuda
