// SPDX-License-Identifier: Apache-2.0

// Client calls for batches.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "client/cpp/batch_layout.h"
#include "client/cpp/matrix_reply.h"
#include "crout/client.h"

namespace crout::client {
namespace {

// Bytes of the size of one member at the start of a payload.
constexpr int64_t kPairBytes = 2 * sizeof(int64_t);

absl::Status CheckBatch(const v1::GetFactorsHeader& header) {
  if (!header.has_batch()) {
    return absl::FailedPreconditionError("the handle belongs to a single matrix, not to a batch");
  }
  const int64_t members = header.batch().members();
  if (members >= 0 && members <= std::numeric_limits<int32_t>::max()) return absl::OkStatus();
  return absl::InternalError("the server announced an impossible batch");
}

}  // namespace

absl::StatusOr<FactoredBatch> Client::Factorize(const BatchSource& matrices,
                                                const v1::FactorizeOptions& options,
                                                const v1::CacheOptions& cache,
                                                const CallOptions& call) {
  return FactorizeAny(matrices.AsMatrices(), options, cache, call);
}

absl::StatusOr<FactoredBatch> Client::Refactorize(const std::string& handle,
                                                  const BatchSource& matrices,
                                                  const v1::FactorizeOptions& options,
                                                  const CallOptions& call) {
  v1::RefactorizeHeader header;
  header.set_handle(handle);
  *header.mutable_options() = options;
  return RefactorizeAny(matrices.AsMatrices(), std::move(header), call);
}

BatchSolution Client::SolutionIn(const BatchSource& sides, v1::SolveResult result,
                                 std::vector<std::byte> bytes) {
  BatchSolution solution;
  const std::vector<size_t> order = *sides.Order();
  const int64_t systems = sides.size();
  const int64_t end = AlignBatch(sides.ValueBytes(order));
  const auto errors = ArrayAt<double>(bytes, end, systems);
  const auto info =
      ArrayAt<int32_t>(bytes, end + systems * static_cast<int64_t>(sizeof(double)), systems);
  solution.result = std::move(result);
  solution.x.dtype_ = sides.dtype();
  solution.x.places_.resize(order.size());
  solution.backward_error.resize(order.size());
  solution.info.resize(order.size());
  const auto element = static_cast<int64_t>(ElementSize(sides.dtype()));
  int64_t offset = 0;
  for (size_t k = 0; k < order.size(); ++k) {
    const BatchSource::Item& item = sides.items_[order[k]];
    solution.x.places_[order[k]] = {item.rows, item.cols, static_cast<size_t>(offset)};
    solution.backward_error[order[k]] = errors[k];
    solution.info[order[k]] = info[k];
    offset = AlignBatch(offset + item.rows * item.cols * element);
  }
  solution.x.bytes_ = std::move(bytes);
  return solution;
}

absl::StatusOr<BatchSolution> Client::Solve(const std::string& handle, const BatchSource& sides,
                                            const v1::SolveOptions& options,
                                            const CallOptions& call) {
  BufferSink x;
  auto result = Solve(handle, sides.AsSides(), options, &x, call);
  if (!result.ok()) return result.status();
  return SolutionIn(sides, *std::move(result), x.TakeBytes());
}

absl::StatusOr<BatchSolution> Client::FactorizeAndSolve(const BatchSource& matrices,
                                                        const BatchSource& sides,
                                                        v1::FactorizeAndSolveHeader header,
                                                        FactoredBatch* factored,
                                                        const CallOptions& call) {
  if (absl::Status place = CheckPlace(factored, "factored"); !place.ok()) return place;
  const BatchSource none(matrices.dtype());
  BufferSink x;
  auto result =
      FactorizeAndSolveAny(matrices.AsMatrices(), (sides.size() > 0 ? sides : none).AsSides(),
                           std::move(header), &factored->factor, &factored->figures, &x, call);
  if (!result.ok()) return result.status();
  return SolutionIn(sides, *std::move(result), x.TakeBytes());
}

absl::Status Client::ReadDownload(const v1::BatchSpec& spec, std::vector<std::byte> bytes,
                                  BatchDownload* download) {
  const absl::Status wrong = absl::InternalError("the server sent no batch that it announced");
  const auto element = static_cast<int64_t>(ElementSize(spec.dtype()));
  const auto size = static_cast<int64_t>(bytes.size());
  const int64_t values_at = kPairBytes * spec.members();
  if (element == 0 || values_at > size) return wrong;
  const auto pairs = ArrayAt<int64_t>(bytes, 0, 2 * spec.members());
  BatchMatrices& lu = download->lu;
  lu.dtype_ = spec.dtype();
  lu.places_.clear();
  download->first_interchange = {0};
  int64_t end = 0, diagonals = 0;
  for (size_t k = 0; k < pairs.size(); k += 2) {
    const int64_t rows = pairs[k], cols = pairs[k + 1];
    const int64_t begin = AlignBatch(end);
    if (rows < 0 || cols < 0 || begin > size ||
        static_cast<__int128>(rows) * cols > (size - begin) / element) {
      return wrong;
    }
    lu.places_.push_back({rows, cols, static_cast<size_t>(values_at + begin)});
    end = begin + rows * cols * element;
    diagonals += std::min(rows, cols);
    download->first_interchange.push_back(diagonals);
  }
  const int64_t pivots_at = spec.members() == 0 ? 0 : AlignBatch(values_at + end);
  if (size != pivots_at + diagonals * static_cast<int64_t>(sizeof(int32_t))) return wrong;
  download->interchanges = ArrayAt<int32_t>(bytes, pivots_at, diagonals);
  lu.bytes_ = std::move(bytes);
  return absl::OkStatus();
}

absl::StatusOr<BatchDownload> Client::GetMembers(const std::string& handle, int64_t first,
                                                 int64_t count, const CallOptions& call) {
  v1::GetFactorsRequest request;
  request.set_handle(handle);
  request.set_first(first);
  request.set_count(count);
  v1::GetFactorsHeader header;
  std::vector<std::byte> bytes;
  const absl::Status status = Download(
      request, call,
      [&](v1::GetFactorsHeader* received) {
        header = std::move(*received);
        bytes.clear();
        return CheckBatch(header);
      },
      [&](absl::Span<const std::byte> piece) {
        bytes.insert(bytes.end(), piece.begin(), piece.end());
        return absl::OkStatus();
      });
  if (!status.ok()) return status;
  BatchDownload download;
  download.factor = std::move(*header.mutable_factor());
  const absl::Status read = ReadDownload(header.batch(), std::move(bytes), &download);
  if (!read.ok()) return read;
  return download;
}

absl::StatusOr<std::vector<BatchShape>> Client::GetShapes(const std::string& handle,
                                                          const CallOptions& call) {
  v1::GetFactorsRequest request;
  request.set_handle(handle);
  std::optional<int64_t> missing;  // bytes
  std::vector<std::byte> bytes;
  // The call is left as soon as the sizes are there.
  const auto leave_if_whole = [&] {
    return *missing == 0 ? absl::CancelledError("no more is needed") : absl::OkStatus();
  };
  const absl::Status status = Download(
      request, call,
      [&](v1::GetFactorsHeader* header) {
        if (absl::Status batch = CheckBatch(*header); !batch.ok()) return batch;
        missing = kPairBytes * header->batch().members();
        bytes.clear();
        return leave_if_whole();
      },
      [&](absl::Span<const std::byte> piece) {
        const auto taken = std::min<int64_t>(*missing, std::ssize(piece));
        bytes.insert(bytes.end(), piece.begin(), piece.begin() + taken);
        *missing -= taken;
        return leave_if_whole();
      });
  if (missing != 0) return status.ok() ? absl::InternalError("the server sent no sizes") : status;
  const auto pairs = ArrayAt<int64_t>(bytes, 0, std::ssize(bytes) / kPairBytes * 2);
  std::vector<BatchShape> shapes;
  for (size_t k = 0; k < pairs.size(); k += 2) shapes.push_back({pairs[k], pairs[k + 1]});
  return shapes;
}

}  // namespace crout::client
