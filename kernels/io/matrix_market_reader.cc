// SPDX-License-Identifier: Apache-2.0

#include "kernels/io/matrix_market_reader.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"
#include "kernels/io/matrix_market_body.h"
#include "kernels/io/matrix_market_pipeline.h"
#include "kernels/io/packed_array.h"
#include "kernels/stop_requested.h"

namespace crout {

MatrixMarketReader::MatrixMarketReader(const MatrixMarketLimits& limits, ThreadPool* pool,
                                       std::shared_ptr<MemoryGrant> grant)
    : pipeline_(std::make_shared<MatrixMarketPipeline>(limits, pool, std::move(grant))),
      build_value_map_(limits.build_value_map) {}

MatrixMarketReader::~MatrixMarketReader() { pipeline_->Stop(); }

void MatrixMarketReader::SetAccount(std::string_view account) { pipeline_->SetAccount(account); }

bool MatrixMarketReader::TryReserve(size_t bytes) { return pipeline_->TryReserve(bytes); }

absl::Status MatrixMarketReader::Reserve(size_t bytes) { return pipeline_->Reserve(bytes); }

absl::Status MatrixMarketReader::Append(std::span<const char> bytes) {
  return pipeline_->Append({bytes.data(), bytes.size()});
}

absl::Status MatrixMarketReader::Finish(StopRequested stop) {
  if (absl::Status status = pipeline_->Finish(stop); !status.ok()) return status;
  const MatrixMarketHeader header = *pipeline_->header();
  MatrixMarketBody body = pipeline_->TakeBody();
  const size_t peak = PeakBytes(header);
  if (absl::Status status = pipeline_->Claim(peak - std::min(peak, body.bytes())); !status.ok()) {
    return status;
  }
  if (!header.coordinate) {
    StopCounter counter(stop);
    dense_ = ExpandPacked(header, MirrorSign(header.symmetry), body.TakeValues(), counter);
    if (header.complex()) {
      dense_imaginary_ =
          ExpandPacked(header, ImaginaryMirrorSign(header.symmetry), body.TakeImaginary(), counter);
    }
    pipeline_->HoldResult((dense_.capacity() + dense_imaginary_.capacity()) * sizeof(double));
    return counter.status();
  }
  const bool map = build_value_map_ && header.entries <= ValueMapShape::kMaxLines;
  if (map) {
    if (absl::Status status = pipeline_->Claim(ValueMapBytes(header)); !status.ok()) return status;
  }
  absl::StatusOr<SparseMatrix> sparse = AssembleSparse(
      header, body.TakeEntries(), body.TakeImaginary(),
      [this](size_t bytes) { return pipeline_->Claim(bytes); }, stop, map ? &map_ : nullptr);
  if (sparse.ok()) sparse_ = *std::move(sparse);
  pipeline_->HoldResult(ResultBytes(sparse_, map_));
  return sparse.status();
}

std::optional<MatrixMarketHeader> MatrixMarketReader::header() const { return pipeline_->header(); }

size_t MatrixMarketReader::memory_bytes() const { return pipeline_->memory_bytes(); }

SparseMatrix MatrixMarketReader::TakeSparse() {
  pipeline_->ReleaseResult();
  return std::exchange(sparse_, SparseMatrix());
}

std::vector<double> MatrixMarketReader::TakeDense() {
  pipeline_->ReleaseResult();
  return std::exchange(dense_, std::vector<double>());
}

std::vector<double> MatrixMarketReader::TakeDenseImaginary() {
  pipeline_->ReleaseResult();
  return std::exchange(dense_imaginary_, std::vector<double>());
}

}  // namespace crout
