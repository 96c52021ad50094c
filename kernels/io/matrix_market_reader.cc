#include "kernels/io/matrix_market_reader.h"

#include <utility>

#include "absl/status/statusor.h"
#include "kernels/io/matrix_market_body.h"
#include "kernels/io/matrix_market_pipeline.h"
#include "kernels/io/packed_array.h"

namespace crout {

MatrixMarketReader::MatrixMarketReader(const MatrixMarketLimits& limits, ThreadPool* pool)
    : pipeline_(std::make_shared<MatrixMarketPipeline>(limits, pool)) {}

MatrixMarketReader::~MatrixMarketReader() { pipeline_->Stop(); }

absl::Status MatrixMarketReader::Append(std::span<const char> bytes) {
  return pipeline_->Append({bytes.data(), bytes.size()});
}

absl::Status MatrixMarketReader::Finish() {
  if (absl::Status status = pipeline_->Finish(); !status.ok()) return status;
  const MatrixMarketHeader header = *pipeline_->header();
  result_bytes_ = PeakBytes(header);
  MatrixMarketBody body = pipeline_->TakeBody();
  if (!header.coordinate) {
    dense_ = ExpandPacked(header, body.TakeValues());
    result_bytes_ = dense_.capacity() * sizeof(double);
    return absl::OkStatus();
  }
  absl::StatusOr<SparseMatrix> sparse = AssembleSparse(header, body.TakeEntries());
  result_bytes_ = 0;
  if (!sparse.ok()) return sparse.status();
  sparse_ = *std::move(sparse);
  result_bytes_ = sparse_.column_start.capacity() * sizeof(int64_t) +
                  sparse_.row.capacity() * sizeof(int32_t) +
                  sparse_.value.capacity() * sizeof(double);
  return absl::OkStatus();
}

std::optional<MatrixMarketHeader> MatrixMarketReader::header() const { return pipeline_->header(); }

size_t MatrixMarketReader::memory_bytes() const {
  return pipeline_->memory_bytes() + result_bytes_;
}

SparseMatrix MatrixMarketReader::TakeSparse() {
  result_bytes_ = 0;
  return std::exchange(sparse_, SparseMatrix());
}

std::vector<double> MatrixMarketReader::TakeDense() {
  result_bytes_ = 0;
  return std::exchange(dense_, std::vector<double>());
}

}  // namespace crout
