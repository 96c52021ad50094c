// SPDX-License-Identifier: Apache-2.0

// Pipeline from the bytes of a Matrix Market file to its parsed segments:
//   Append -> [inflate, in order] -> split into segments -> parse, in parallel -> body, in order
#ifndef CROUT_KERNELS_IO_MATRIX_MARKET_PIPELINE_H_
#define CROUT_KERNELS_IO_MATRIX_MARKET_PIPELINE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "kernels/io/gzip_inflater.h"
#include "kernels/io/matrix_market.h"
#include "kernels/io/matrix_market_body.h"
#include "kernels/io/matrix_market_entries.h"
#include "kernels/io/matrix_market_splitter.h"
#include "kernels/io/memory_grant.h"
#include "kernels/stop_requested.h"
#include "kernels/util/mutex.h"
#include "kernels/util/thread_pool.h"

namespace crout {

// State that MatrixMarketReader shares with its tasks; see there. A task takes the next piece of
// work when it runs, so a waiting caller can do the same work.
class MatrixMarketPipeline : public std::enable_shared_from_this<MatrixMarketPipeline> {
 public:
  MatrixMarketPipeline(const MatrixMarketLimits& limits, ThreadPool* pool,
                       std::shared_ptr<MemoryGrant> grant)
      : pool_(pool),
        grant_(std::move(grant)),
        taken_(grant_.get()),
        max_gzip_ratio_(limits.max_gzip_ratio),
        splitter_(limits) {}

  // These functions implement those of MatrixMarketReader.
  void SetAccount(std::string_view account) { account_ = std::string(account); }
  bool TryReserve(size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Reserve(size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Append(std::string_view bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Finish(StopRequested stop) ABSL_LOCKS_EXCLUDED(mutex_);

  // Drops everything. Running tasks end after their segment.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  std::optional<MatrixMarketHeader> header() const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t memory_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Call after Finish() returned OK. The body's bytes stay granted.
  MatrixMarketBody TakeBody() ABSL_LOCKS_EXCLUDED(mutex_);

  // Claims `bytes` more, for the result.
  absl::Status Claim(size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Declares that only a result of this size is held. Gives back all other claims.
  void HoldResult(size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Transfers the result, and the duty to give its memory back to the grant, to the caller.
  void ReleaseResult() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  enum class Encoding { kUnknown, kPlain, kGzip };

  struct Segment {
    int64_t index;
    std::string text;
  };

  void Feed(std::string_view bytes);
  // Sets the encoding and feeds the bytes that identified it.
  void Start(Encoding encoding);
  void FeedEncoded(std::string_view bytes);
  void FeedCompressed(std::string_view bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  void SplitText(std::string_view text);
  // `error`: the reason if the text ends prematurely.
  void EndText(absl::Status error);
  void Publish(std::vector<std::string> segments, absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_);

  // Each does one piece of work if there is one, and returns whether there was.
  bool InflateStep() ABSL_LOCKS_EXCLUDED(mutex_);
  bool ParseStep() ABSL_LOCKS_EXCLUDED(mutex_);
  // Schedules a step for about this many bytes of text on the pool. Returns false if there is no
  // pool, or no memory to schedule. Drain() does the remaining work.
  bool Schedule(bool (MatrixMarketPipeline::*step)(), size_t bytes);
  // `parsed`: OK, or the error if there was no memory for parsing.
  void EndParse(int64_t index, ParsedSegment segment, absl::Status parsed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Works and waits until no work is left. CANCELLED by `stop`, which is polled before each piece.
  absl::Status Drain(StopRequested stop) ABSL_LOCKS_EXCLUDED(mutex_);

  // Upper bound on the additional memory that Append() of `bytes` bytes needs.
  size_t AppendBytes(size_t bytes) const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t InflateBytes() const;
  void AddClaim(size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the claim of finished work. Gives back all memory that is neither held nor claimed.
  void Settle(size_t claim) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t Held() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the pipeline for lack of memory.
  void Fail(absl::Status error) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void InflateSome();
  bool MayInflate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ScheduleInflate() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropInput() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ThreadPool* const pool_;
  std::string account_;                       // Constant after the first Append().
  const std::shared_ptr<MemoryGrant> grant_;  // Null: no limit.

  // Invariant: memory held, and memory that running steps may need, was taken from the grant.
  mutable Mutex mutex_;
  TakenMemory taken_ ABSL_GUARDED_BY(mutex_);  // Destroyed after the memory it accounts for.
  size_t claims_ ABSL_GUARDED_BY(mutex_) = 0;

  // Used by the single caller of Append() and Finish().
  const double max_gzip_ratio_;
  Encoding encoding_ = Encoding::kUnknown;
  std::string magic_;        // The first bytes, which identify the encoding.
  size_t append_claim_ = 0;  // Claimed by TryReserve() or Reserve() for the next Append().

  // Used by the producer of text: that caller, or for gzip the thread that set inflating_.
  MatrixMarketSplitter splitter_;
  std::optional<GzipInflater> inflater_;  // For gzip files.
  std::string chunk_;                     // Compressed bytes.
  std::string_view chunk_left_;           // The part of chunk_ not inflated yet.
  std::vector<char> text_;                // Output of inflater_.

  CondVar changed_;
  std::deque<std::string> compressed_ ABSL_GUARDED_BY(mutex_);
  bool chunk_open_ ABSL_GUARDED_BY(mutex_) = false;  // chunk_ is not used up.
  bool inflating_ ABSL_GUARDED_BY(mutex_) = false;
  bool inflate_scheduled_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // No more text is needed: an error, or stopped.
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Segment> waiting_ ABSL_GUARDED_BY(mutex_);
  int parsing_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t next_segment_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<MatrixMarketHeader> header_ ABSL_GUARDED_BY(mutex_);
  MatrixMarketBody body_ ABSL_GUARDED_BY(mutex_);
  size_t compressed_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // compressed_
  size_t chunk_bytes_ ABSL_GUARDED_BY(mutex_) = 0;       // chunk_
  size_t segment_bytes_ ABSL_GUARDED_BY(mutex_) = 0;     // waiting_ and segments being parsed.
  size_t partial_bytes_ ABSL_GUARDED_BY(mutex_) = 0;     // splitter_, text_ and inflater_.
  size_t result_bytes_ ABSL_GUARDED_BY(mutex_) = 0;      // The result built from the body.
};

}  // namespace crout

#endif  // CROUT_KERNELS_IO_MATRIX_MARKET_PIPELINE_H_
