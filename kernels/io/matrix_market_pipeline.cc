#include "kernels/io/matrix_market_pipeline.h"

#include <algorithm>
#include <utility>

#include "kernels/io/matrix_market_entries.h"

namespace crout {
namespace {

// Inflating pauses while this many segments wait, so that a small file that expands far cannot
// fill the memory faster than it is parsed.
constexpr size_t kMaxWaitingSegments = 8;
constexpr size_t kInflateBytes = size_t{256} << 10;
// Small pieces of compressed bytes are put together up to here.
constexpr size_t kChunkBytes = size_t{256} << 10;

}  // namespace

absl::Status MatrixMarketPipeline::Append(std::string_view bytes) {
  {
    MutexLock lock(&mutex_);
    if (ended_) return body_.status();
  }
  if (encoding_ == Encoding::kUnknown) {
    const size_t taken = std::min(bytes.size(), GzipInflater::kMagic.size() - magic_.size());
    magic_.append(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
    if (magic_.size() < GzipInflater::kMagic.size()) return absl::OkStatus();
    encoding_ = magic_ == GzipInflater::kMagic ? Encoding::kGzip : Encoding::kPlain;
    Feed(magic_);
  }
  Feed(bytes);
  MutexLock lock(&mutex_);
  return body_.status();
}

void MatrixMarketPipeline::Feed(std::string_view bytes) {
  if (encoding_ == Encoding::kGzip) {
    FeedCompressed(bytes);
  } else {
    SplitText(bytes);
  }
  if (pool_ == nullptr) Drain();
}

void MatrixMarketPipeline::FeedCompressed(std::string_view bytes) {
  MutexLock lock(&mutex_);
  if (ended_ || bytes.empty()) return;
  if (compressed_.empty() || compressed_.back().size() + bytes.size() > kChunkBytes) {
    compressed_.emplace_back();
  }
  compressed_.back().append(bytes);
  compressed_bytes_ += bytes.size();
  ScheduleInflate();
}

void MatrixMarketPipeline::SplitText(std::string_view text) {
  std::vector<std::string> segments;
  absl::Status status = splitter_.Append(text, &segments);
  Publish(std::move(segments), std::move(status));
}

void MatrixMarketPipeline::EndText(absl::Status error) {
  std::vector<std::string> segments;
  if (error.ok()) {
    error = splitter_.Finish(&segments);
  } else {
    splitter_.BreakOff(&segments);
  }
  Publish(std::move(segments), std::move(error));
}

void MatrixMarketPipeline::Publish(std::vector<std::string> segments, absl::Status status) {
  MutexLock lock(&mutex_);
  if (ended_) return;
  partial_bytes_ = splitter_.bytes() + text_.capacity();
  if (!header_.has_value() && splitter_.has_header()) {
    header_ = splitter_.header();
    body_.Start(*header_, splitter_.header_lines());
  }
  for (std::string& text : segments) {
    segment_bytes_ += text.capacity();
    waiting_.push_back({next_segment_++, std::move(text)});
    if (pool_ != nullptr) {
      pool_->Schedule([self = shared_from_this()] { self->ParseStep(); });
    }
  }
  if (status.ok()) return;
  // The segments that wait come before this error and may hold an earlier one.
  body_.AddError(next_segment_++, std::move(status));
  ended_ = true;
  compressed_.clear();
  compressed_bytes_ = 0;
}

bool MatrixMarketPipeline::ParseStep() {
  Segment segment;
  MatrixMarketHeader header;
  {
    MutexLock lock(&mutex_);
    if (waiting_.empty()) return false;
    segment = std::move(waiting_.front());
    waiting_.pop_front();
    header = *header_;
    ++parsing_;
    ScheduleInflate();
  }
  const size_t text_bytes = segment.text.capacity();
  ParsedSegment parsed = ParseSegment(header, std::move(segment.text));
  MutexLock lock(&mutex_);
  --parsing_;
  segment_bytes_ -= text_bytes;
  changed_.SignalAll();
  if (stopped_) return true;
  // Segments were taken in order: those that still wait come after the faulty line.
  if (parsed.faulty.has_value()) DropInput();
  body_.Add(segment.index, std::move(parsed));
  if (!body_.status().ok()) DropInput();
  return true;
}

bool MatrixMarketPipeline::MayInflate() const {
  return !inflating_ && !ended_ && (chunk_open_ || !compressed_.empty()) &&
         waiting_.size() < kMaxWaitingSegments;
}

void MatrixMarketPipeline::ScheduleInflate() {
  if (pool_ == nullptr || inflate_scheduled_ || !MayInflate()) return;
  inflate_scheduled_ = true;
  pool_->Schedule([self = shared_from_this()] { self->InflateStep(); });
}

bool MatrixMarketPipeline::InflateStep() {
  {
    MutexLock lock(&mutex_);
    inflate_scheduled_ = false;
    if (!MayInflate()) return false;
    inflating_ = true;
    if (!chunk_open_) {
      chunk_ = std::move(compressed_.front());
      chunk_left_ = chunk_;
      compressed_.pop_front();
      chunk_open_ = true;
    }
  }
  InflateSome();
  MutexLock lock(&mutex_);
  inflating_ = false;
  changed_.SignalAll();
  ScheduleInflate();
  return true;
}

void MatrixMarketPipeline::InflateSome() {
  text_.resize(kInflateBytes);
  size_t written = 0;
  absl::Status status = inflater_.Inflate(&chunk_left_, text_, &written);
  SplitText({text_.data(), written});
  if (!status.ok()) EndText(std::move(status));
  if (!chunk_left_.empty() || written == text_.size()) return;
  MutexLock lock(&mutex_);
  chunk_open_ = false;
  if (!ended_) compressed_bytes_ -= chunk_.size();  // Else they are no longer counted.
}

void MatrixMarketPipeline::DropInput() {
  ended_ = true;
  for (const Segment& segment : waiting_) segment_bytes_ -= segment.text.capacity();
  waiting_.clear();
  compressed_.clear();
  compressed_bytes_ = 0;
}

void MatrixMarketPipeline::Drain() {
  for (;;) {
    if (InflateStep() || ParseStep()) continue;
    MutexLock lock(&mutex_);
    if (MayInflate() || !waiting_.empty()) continue;
    if (!inflating_ && parsing_ == 0) return;
    changed_.Wait(&mutex_);
  }
}

absl::Status MatrixMarketPipeline::Finish() {
  if (encoding_ == Encoding::kUnknown) {
    encoding_ = Encoding::kPlain;
    Feed(magic_);
  }
  Drain();  // All that is compressed becomes text.
  EndText(encoding_ == Encoding::kGzip ? inflater_.Finish() : absl::OkStatus());
  Drain();
  MutexLock lock(&mutex_);
  ended_ = true;
  return body_.Finish();
}

void MatrixMarketPipeline::Stop() {
  MutexLock lock(&mutex_);
  DropInput();
  stopped_ = true;
  body_ = MatrixMarketBody();
}

std::optional<MatrixMarketHeader> MatrixMarketPipeline::header() const {
  MutexLock lock(&mutex_);
  return header_;
}

size_t MatrixMarketPipeline::memory_bytes() const {
  MutexLock lock(&mutex_);
  return compressed_bytes_ + segment_bytes_ + partial_bytes_ + body_.bytes();
}

MatrixMarketBody MatrixMarketPipeline::TakeBody() {
  MutexLock lock(&mutex_);
  return std::exchange(body_, MatrixMarketBody());
}

}  // namespace crout
