// From the bytes of a Matrix Market file to its parsed segments:
//   Append -> [inflate, in order] -> split into segments -> parse, in parallel -> body, in order
#ifndef CROUT_KERNELS_IO_MATRIX_MARKET_PIPELINE_H_
#define CROUT_KERNELS_IO_MATRIX_MARKET_PIPELINE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "kernels/io/gzip_inflater.h"
#include "kernels/io/matrix_market.h"
#include "kernels/io/matrix_market_body.h"
#include "kernels/io/matrix_market_splitter.h"
#include "kernels/util/mutex.h"
#include "kernels/util/thread_pool.h"

namespace crout {

// What MatrixMarketReader shares with its tasks; see there. A task takes whatever is next when it
// runs, so that a caller who waits can do the same work.
class MatrixMarketPipeline : public std::enable_shared_from_this<MatrixMarketPipeline> {
 public:
  MatrixMarketPipeline(const MatrixMarketLimits& limits, ThreadPool* pool)
      : pool_(pool), splitter_(limits), inflater_(limits.max_gzip_ratio) {}

  absl::Status Append(std::string_view bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Finish() ABSL_LOCKS_EXCLUDED(mutex_);

  // Drops everything. What runs ends with its segment.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  std::optional<MatrixMarketHeader> header() const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t memory_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

  // After Finish() returned OK.
  MatrixMarketBody TakeBody() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  enum class Encoding { kUnknown, kPlain, kGzip };
  struct Segment {
    int64_t index;
    std::string text;
  };

  void Feed(std::string_view bytes);
  void FeedCompressed(std::string_view bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  void SplitText(std::string_view text);
  // `error`: why the text ends here, if it should not.
  void EndText(absl::Status error);
  void Publish(std::vector<std::string> segments, absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_);

  // Each does one piece of work, if there is one, and returns whether there was.
  bool InflateStep() ABSL_LOCKS_EXCLUDED(mutex_);
  bool ParseStep() ABSL_LOCKS_EXCLUDED(mutex_);
  // Works and waits until no work is left.
  void Drain() ABSL_LOCKS_EXCLUDED(mutex_);

  void InflateSome();
  bool MayInflate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ScheduleInflate() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropInput() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ThreadPool* const pool_;

  // Used by the one caller of Append and Finish.
  Encoding encoding_ = Encoding::kUnknown;
  std::string magic_;  // The first bytes, which tell the encoding.

  // Used by the one who produces text: that caller, or for gzip who set inflating_.
  MatrixMarketSplitter splitter_;
  GzipInflater inflater_;
  std::string chunk_;            // Compressed.
  std::string_view chunk_left_;  // What of it was not inflated yet.
  std::vector<char> text_;       // Inflater's output.

  mutable Mutex mutex_;
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
  size_t compressed_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // chunk_ and compressed_.
  size_t segment_bytes_ ABSL_GUARDED_BY(mutex_) = 0;     // waiting_ and those being parsed.
  size_t partial_bytes_ ABSL_GUARDED_BY(mutex_) = 0;     // splitter_ and text_.
};

}  // namespace crout

#endif  // CROUT_KERNELS_IO_MATRIX_MARKET_PIPELINE_H_
