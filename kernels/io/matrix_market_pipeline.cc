// SPDX-License-Identifier: Apache-2.0

#include "kernels/io/matrix_market_pipeline.h"

#include <algorithm>
#include <new>
#include <utility>

#include "kernels/io/matrix_market_entries.h"
#include "kernels/util/allocation.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// Inflating pauses while this many segments wait, so that a small file with a large expansion
// cannot fill the memory faster than it is parsed.
constexpr size_t kMaxWaitingSegments = 8;
constexpr size_t kInflateBytes = size_t{256} << 10;
// Small pieces of compressed bytes are combined up to this size.
constexpr size_t kChunkBytes = size_t{256} << 10;
// Size of zlib's state and window.
constexpr size_t kInflaterBytes = size_t{48} << 10;

}  // namespace

size_t MatrixMarketPipeline::AppendBytes(size_t bytes) const {
  switch (encoding_) {
    case Encoding::kUnknown:
      return kInflaterBytes + kSplitterGrowth * (GzipInflater::kMagic.size() + bytes);
    case Encoding::kPlain:
      return kSplitterGrowth * (splitter_.size() + bytes);
    case Encoding::kGzip:
      break;
  }
  MutexLock lock(&mutex_);
  // A growing string doubles its capacity, and both copies exist meanwhile.
  return 3 * ((compressed_.empty() ? 0 : compressed_.back().size()) + bytes);
}

size_t MatrixMarketPipeline::InflateBytes() const {
  return kInflateBytes - text_.capacity() + kSplitterGrowth * (splitter_.size() + kInflateBytes);
}

void MatrixMarketPipeline::AddClaim(size_t bytes) {
  MutexLock lock(&mutex_);
  taken_.Add(bytes);
  claims_ += bytes;
}

absl::Status MatrixMarketPipeline::Claim(size_t bytes) {
  if (grant_ != nullptr) {
    if (absl::Status status = grant_->Take(bytes); !status.ok()) return status;
  }
  AddClaim(bytes);
  return absl::OkStatus();
}

void MatrixMarketPipeline::Settle(size_t claim) {
  claims_ -= claim;
  taken_.Keep(Held() + claims_);
}

size_t MatrixMarketPipeline::Held() const {
  return compressed_bytes_ + chunk_bytes_ + segment_bytes_ + partial_bytes_ + body_.bytes() +
         result_bytes_;
}

bool MatrixMarketPipeline::TryReserve(size_t bytes) {
  const size_t wanted = AppendBytes(bytes);
  if (wanted <= append_claim_) return true;
  const size_t more = wanted - append_claim_;
  if (grant_ != nullptr && !grant_->TryTake(more)) return false;
  AddClaim(more);
  append_claim_ = wanted;
  return true;
}

absl::Status MatrixMarketPipeline::Reserve(size_t bytes) {
  const size_t wanted = AppendBytes(bytes);
  if (wanted <= append_claim_) return absl::OkStatus();
  if (absl::Status status = Claim(wanted - append_claim_); !status.ok()) return status;
  append_claim_ = wanted;
  return absl::OkStatus();
}

absl::Status MatrixMarketPipeline::Append(std::string_view bytes) {
  {
    MutexLock lock(&mutex_);
    if (ended_) return body_.status();
  }
  if (absl::Status status = Reserve(bytes.size()); !status.ok()) return status;
  Feed(bytes);
  MutexLock lock(&mutex_);
  Settle(std::exchange(append_claim_, 0));
  return body_.status();
}

void MatrixMarketPipeline::Feed(std::string_view bytes) {
  if (encoding_ == Encoding::kUnknown) {
    const size_t taken = std::min(bytes.size(), GzipInflater::kMagic.size() - magic_.size());
    magic_.append(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
    if (magic_.size() < GzipInflater::kMagic.size()) return;
    Start(magic_ == GzipInflater::kMagic ? Encoding::kGzip : Encoding::kPlain);
  }
  FeedEncoded(bytes);
}

void MatrixMarketPipeline::Start(Encoding encoding) {
  encoding_ = encoding;
  if (encoding == Encoding::kGzip) inflater_.emplace(max_gzip_ratio_);
  FeedEncoded(magic_);
}

void MatrixMarketPipeline::FeedEncoded(std::string_view bytes) {
  if (encoding_ == Encoding::kGzip) {
    FeedCompressed(bytes);
  } else {
    SplitText(bytes);
  }
  if (pool_ == nullptr) (void)Drain([] { return false; });
}

void MatrixMarketPipeline::FeedCompressed(std::string_view bytes) {
  MutexLock lock(&mutex_);
  if (ended_ || bytes.empty()) return;
  partial_bytes_ = std::max(partial_bytes_, kInflaterBytes);
  if (compressed_.empty() || compressed_.back().size() + bytes.size() > kChunkBytes) {
    compressed_.emplace_back();
    compressed_bytes_ += compressed_.back().capacity();
  }
  std::string& chunk = compressed_.back();
  compressed_bytes_ -= chunk.capacity();
  chunk.append(bytes);
  compressed_bytes_ += chunk.capacity();
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
    splitter_.EndAfterError(&segments);
  }
  Publish(std::move(segments), std::move(error));
}

void MatrixMarketPipeline::Publish(std::vector<std::string> segments, absl::Status status) {
  MutexLock lock(&mutex_);
  if (ended_) return;
  partial_bytes_ =
      splitter_.bytes() + text_.capacity() + (inflater_.has_value() ? kInflaterBytes : 0);
  if (!header_.has_value() && splitter_.has_header()) {
    header_ = splitter_.header();
    body_.Start(*header_, splitter_.header_lines());
  }
  for (std::string& text : segments) {
    const size_t bytes = text.capacity();
    waiting_.push_back({next_segment_, std::move(text)});
    ++next_segment_;
    segment_bytes_ += bytes;
    Schedule(&MatrixMarketPipeline::ParseStep, bytes);
  }
  if (status.ok()) return;
  // Waiting segments precede this error and may contain an earlier one.
  body_.AddError(next_segment_++, std::move(status));
  ended_ = true;
  compressed_.clear();
  compressed_bytes_ = 0;
}

bool MatrixMarketPipeline::Schedule(bool (MatrixMarketPipeline::*step)(), size_t bytes) {
  if (pool_ == nullptr) return false;
  try {
    pool_->Schedule(
        account_, [self = shared_from_this(), step] { ((*self).*step)(); },
        static_cast<double>(std::max<size_t>(bytes, 1)));
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

bool MatrixMarketPipeline::ParseStep() {
  int64_t index = 0;
  ParsedSegment segment;
  MatrixMarketHeader header;
  size_t text_bytes = 0;
  {
    MutexLock lock(&mutex_);
    if (waiting_.empty()) return false;
    index = waiting_.front().index;
    segment.text = std::move(waiting_.front().text);
    text_bytes = segment.text.capacity();
    waiting_.pop_front();
    header = *header_;
    ++parsing_;
    ScheduleInflate();
  }
  size_t claim = 0;
  absl::Status parsed = CatchBadAlloc([&]() -> absl::Status {
    segment = CountLines(std::move(segment.text));
    const size_t wanted = ParseBytes(header, segment);
    CROUT_RETURN_IF_ERROR(Claim(wanted));
    claim = wanted;
    ParseSegment(header, &segment);
    return absl::OkStatus();
  });
  MutexLock lock(&mutex_);
  --parsing_;
  segment_bytes_ -= text_bytes;
  changed_.SignalAll();
  EndParse(index, std::move(segment), std::move(parsed));
  Settle(claim);
  return true;
}

void MatrixMarketPipeline::EndParse(int64_t index, ParsedSegment segment, absl::Status parsed) {
  if (stopped_) return;
  if (!parsed.ok()) return Fail(std::move(parsed));
  // Segments are taken in order, so the waiting ones come after the faulty line.
  if (segment.faulty.has_value()) DropInput();
  try {
    body_.Add(index, std::move(segment));
  } catch (const std::bad_alloc&) {
    return Fail(OutOfSystemMemory());
  }
  if (!body_.status().ok()) DropInput();
}

void MatrixMarketPipeline::Fail(absl::Status error) {
  DropInput();
  body_.Fail(std::move(error));
}

bool MatrixMarketPipeline::MayInflate() const {
  return !inflating_ && !ended_ && (chunk_open_ || !compressed_.empty()) &&
         waiting_.size() < kMaxWaitingSegments;
}

void MatrixMarketPipeline::ScheduleInflate() {
  if (inflate_scheduled_ || !MayInflate()) return;
  inflate_scheduled_ = Schedule(&MatrixMarketPipeline::InflateStep, kInflateBytes);
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
      chunk_bytes_ = chunk_.capacity();
      compressed_bytes_ -= chunk_bytes_;
    }
  }
  size_t claim = 0;
  absl::Status inflated = CatchBadAlloc([&]() -> absl::Status {
    const size_t wanted = InflateBytes();
    CROUT_RETURN_IF_ERROR(Claim(wanted));
    claim = wanted;
    InflateSome();
    return absl::OkStatus();
  });
  MutexLock lock(&mutex_);
  inflating_ = false;
  changed_.SignalAll();
  if (!inflated.ok()) Fail(std::move(inflated));
  Settle(claim);
  ScheduleInflate();
  return true;
}

void MatrixMarketPipeline::InflateSome() {
  text_.resize(kInflateBytes);
  size_t written = 0;
  absl::Status status = inflater_->Inflate(&chunk_left_, text_, &written);
  SplitText({text_.data(), written});
  if (!status.ok()) EndText(std::move(status));
  if (!chunk_left_.empty() || written == text_.size()) return;
  std::string().swap(chunk_);  // Assignment would keep the memory.
  MutexLock lock(&mutex_);
  chunk_open_ = false;
  chunk_bytes_ = 0;
}

void MatrixMarketPipeline::DropInput() {
  ended_ = true;
  for (const Segment& segment : waiting_) segment_bytes_ -= segment.text.capacity();
  waiting_.clear();
  compressed_.clear();
  compressed_bytes_ = 0;
}

absl::Status MatrixMarketPipeline::Drain(StopRequested stop) {
  for (;;) {
    if (absl::Status status = CheckNotStopped(stop); !status.ok()) return status;
    if (InflateStep() || ParseStep()) continue;
    MutexLock lock(&mutex_);
    if (MayInflate() || !waiting_.empty()) continue;
    if (!inflating_ && parsing_ == 0) return absl::OkStatus();
    changed_.Wait(&mutex_);
  }
}

absl::Status MatrixMarketPipeline::Finish(StopRequested stop) {
  if (absl::Status status = Reserve(/*bytes=*/1); !status.ok()) return status;
  if (encoding_ == Encoding::kUnknown) Start(Encoding::kPlain);
  // All that is compressed becomes text.
  if (absl::Status status = Drain(stop); !status.ok()) return status;
  const size_t claim = kSplitterGrowth * (splitter_.size() + 1);  // For a last newline.
  if (absl::Status status = Claim(claim); !status.ok()) return status;
  EndText(encoding_ == Encoding::kGzip ? inflater_->Finish() : absl::OkStatus());
  {
    MutexLock lock(&mutex_);
    Settle(claim + std::exchange(append_claim_, 0));
  }
  if (absl::Status status = Drain(stop); !status.ok()) return status;
  std::vector<char>().swap(text_);
  inflater_.reset();
  MutexLock lock(&mutex_);
  partial_bytes_ = splitter_.bytes();
  Settle(0);
  ended_ = true;
  return body_.Finish();
}

void MatrixMarketPipeline::Stop() {
  MutexLock lock(&mutex_);
  DropInput();
  stopped_ = true;
  body_ = MatrixMarketBody();
  Settle(0);
}

std::optional<MatrixMarketHeader> MatrixMarketPipeline::header() const {
  MutexLock lock(&mutex_);
  return header_;
}

size_t MatrixMarketPipeline::memory_bytes() const {
  MutexLock lock(&mutex_);
  return Held();
}

MatrixMarketBody MatrixMarketPipeline::TakeBody() {
  MutexLock lock(&mutex_);
  result_bytes_ = body_.bytes();
  return std::exchange(body_, MatrixMarketBody());
}

void MatrixMarketPipeline::HoldResult(size_t bytes) {
  MutexLock lock(&mutex_);
  result_bytes_ = bytes;
  Settle(claims_);
}

void MatrixMarketPipeline::ReleaseResult() {
  MutexLock lock(&mutex_);
  taken_.Forget(std::exchange(result_bytes_, 0));
}

}  // namespace crout
