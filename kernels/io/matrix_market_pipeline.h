// From the bytes of a Matrix Market file to its parsed segments:
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

// What MatrixMarketReader shares with its tasks; see there. A task takes whatever is next when it
// runs, so that a caller who waits can do the same work.
class MatrixMarketPipeline : public std::enable_shared_from_this<MatrixMarketPipeline> {
 public:
  MatrixMarketPipeline(const MatrixMarketLimits& limits, ThreadPool* pool,
                       std::shared_ptr<MemoryGrant> grant)
      : pool_(pool),
        grant_(std::move(grant)),
        taken_(grant_.get()),
        max_gzip_ratio_(limits.max_gzip_ratio),
        splitter_(limits) {}

  bool TryReserve(size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Reserve(size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Append(std::string_view bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Finish(StopRequested stop) ABSL_LOCKS_EXCLUDED(mutex_);

  // Drops everything. What runs ends with its segment.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  std::optional<MatrixMarketHeader> header() const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t memory_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

  // After Finish() returned OK. Its bytes stay granted.
  MatrixMarketBody TakeBody() ABSL_LOCKS_EXCLUDED(mutex_);

  // For what is made of the body: `bytes` more.
  absl::Status Claim(size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // All that is held now is a result of that size: gives back what was claimed beyond.
  void HoldResult(size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // The result has a new owner, and with it the duty to give its memory back to the grant.
  void HandOver() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  enum class Encoding { kUnknown, kPlain, kGzip };

  struct Segment {
    int64_t index;
    std::string text;
  };

  void Feed(std::string_view bytes);
  // The encoding is known: feeds the bytes that told it.
  void Start(Encoding encoding);
  void FeedEncoded(std::string_view bytes);
  void FeedCompressed(std::string_view bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  void SplitText(std::string_view text);
  // `error`: why the text ends here, if it should not.
  void EndText(absl::Status error);
  void Publish(std::vector<std::string> segments, absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_);

  // Each does one piece of work, if there is one, and returns whether there was.
  bool InflateStep() ABSL_LOCKS_EXCLUDED(mutex_);
  bool ParseStep() ABSL_LOCKS_EXCLUDED(mutex_);
  // Gives a step to the pool; false where there is none, or no memory to. Drain() does what no task
  // does.
  bool Schedule(bool (MatrixMarketPipeline::*step)());
  // `parsed`: whether there was memory for it.
  void EndParse(int64_t index, ParsedSegment segment, absl::Status parsed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Works and waits until no work is left. CANCELLED by `stop`, which is polled before each piece.
  absl::Status Drain(StopRequested stop) ABSL_LOCKS_EXCLUDED(mutex_);

  // The most that Append of so many bytes comes to hold besides what is held before.
  size_t AppendBytes(size_t bytes) const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t InflateBytes() const;
  void AddClaim(size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // The work that `claim` was for has ended: gives back what is neither held nor claimed.
  void Settle(size_t claim) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t Held() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // There is no memory to go on with.
  void Fail(absl::Status error) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void InflateSome();
  bool MayInflate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ScheduleInflate() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropInput() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ThreadPool* const pool_;
  const std::shared_ptr<MemoryGrant> grant_;  // Null: as much as it likes.

  // At any time what is held, and what running steps may come to hold, was taken.
  mutable Mutex mutex_;
  TakenMemory taken_ ABSL_GUARDED_BY(mutex_);  // Destroyed after what it was for.
  size_t claims_ ABSL_GUARDED_BY(mutex_) = 0;

  // Used by the one caller of Append and Finish.
  const double max_gzip_ratio_;
  Encoding encoding_ = Encoding::kUnknown;
  std::string magic_;        // The first bytes, which tell the encoding.
  size_t append_claim_ = 0;  // By TryReserve or Reserve, for the next Append.

  // Used by the one who produces text: that caller, or for gzip who set inflating_.
  MatrixMarketSplitter splitter_;
  std::optional<GzipInflater> inflater_;  // Of a gzip file.
  std::string chunk_;                     // Compressed.
  std::string_view chunk_left_;           // What of it was not inflated yet.
  std::vector<char> text_;                // Inflater's output.

  CondVar changed_;
  std::deque<std::string> compressed_ ABSL_GUARDED_BY(mutex_);
  bool chunk_open_ ABSL_GUARDED_BY(mutex_) = false;  // chunk_ is not used up.
  bool inflating_ ABSL_GUARDED_BY(mutex_) = false;
  bool inflate_scheduled_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // No more text matters: an error, or stopped.
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Segment> waiting_ ABSL_GUARDED_BY(mutex_);
  int parsing_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t next_segment_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<MatrixMarketHeader> header_ ABSL_GUARDED_BY(mutex_);
  MatrixMarketBody body_ ABSL_GUARDED_BY(mutex_);
  size_t compressed_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // compressed_
  size_t chunk_bytes_ ABSL_GUARDED_BY(mutex_) = 0;       // chunk_
  size_t segment_bytes_ ABSL_GUARDED_BY(mutex_) = 0;     // waiting_ and those being parsed.
  size_t partial_bytes_ ABSL_GUARDED_BY(mutex_) = 0;     // splitter_, text_ and inflater_.
  size_t result_bytes_ ABSL_GUARDED_BY(mutex_) = 0;      // What was made of the body.
};

}  // namespace crout

#endif  // CROUT_KERNELS_IO_MATRIX_MARKET_PIPELINE_H_
