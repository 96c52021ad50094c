// SPDX-License-Identifier: Apache-2.0

#include "kernels/io/matrix_market_splitter.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace crout {

absl::Status MatrixMarketSplitter::Append(std::string_view text,
                                          std::vector<std::string>* segments) {
  if (absl::Status status = TakeHeaderLines(&text); !status.ok()) return status;
  if (has_header()) TakeBody(text, segments);
  return absl::OkStatus();
}

absl::Status MatrixMarketSplitter::TakeHeaderLines(std::string_view* text) {
  while (!header_.done() && !text->empty()) {
    const size_t newline = text->find('\n');
    const bool whole = newline != std::string_view::npos;
    // One byte beyond the limit shows that the line is too long.
    partial_.append(text->substr(0, std::min(newline, kMaxMatrixMarketLine + 1)));
    text->remove_prefix(whole ? newline + 1 : text->size());
    if (!whole && partial_.size() <= kMaxMatrixMarketLine) break;
    if (absl::Status status = header_.AddLine(partial_); !status.ok()) return status;
    partial_.clear();
  }
  return absl::OkStatus();
}

void MatrixMarketSplitter::TakeBody(std::string_view text, std::vector<std::string>* segments) {
  while (!text.empty()) {
    const std::string_view piece =
        text.substr(0, segment_bytes_ - partial_.size() % segment_bytes_);
    Grow(piece.size());
    partial_.append(piece);
    text.remove_prefix(piece.size());
    if (const size_t newline = piece.rfind('\n'); newline != std::string_view::npos) {
      whole_lines_ = partial_.size() - piece.size() + newline + 1;
    }
    if (partial_.size() >= segment_bytes_) Cut(segments);
  }
}

// Grows to a power of two, but at most to a whole number of segments, so that most segments fill
// their memory. Uses a new string, because std::string at least doubles its capacity, even in
// reserve().
void MatrixMarketSplitter::Grow(size_t bytes) {
  const size_t needed = partial_.size() + bytes;
  if (needed <= partial_.capacity()) return;
  const size_t segments = (needed + segment_bytes_ - 1) / segment_bytes_ * segment_bytes_;
  std::string larger;
  larger.reserve(std::min(std::bit_ceil(needed), segments));
  larger.append(partial_);
  partial_ = std::move(larger);
}

void MatrixMarketSplitter::Cut(std::vector<std::string>* segments) {
  const bool too_long = partial_.size() - whole_lines_ > kMaxMatrixMarketLine;
  const size_t cut = too_long ? partial_.size() : whole_lines_;
  if (cut == 0) return;
  whole_lines_ = 0;
  if (cut < partial_.capacity() / 2) {
    segments->push_back(partial_.substr(0, cut));
    partial_.erase(0, cut);
    return;
  }
  std::string rest;
  rest.reserve(std::min(segment_bytes_, partial_.capacity()));
  rest.assign(partial_, cut, std::string::npos);
  partial_.resize(cut);
  segments->push_back(std::exchange(partial_, std::move(rest)));
}

absl::Status MatrixMarketSplitter::Finish(std::vector<std::string>* segments) {
  if (!header_.done() && !partial_.empty()) {
    if (absl::Status status = header_.AddLine(partial_); !status.ok()) return status;
    partial_.clear();
  }
  if (!header_.done()) return header_.MissingLine();
  if (partial_.empty()) return absl::OkStatus();
  if (partial_.back() != '\n') {
    Grow(1);
    partial_.push_back('\n');
  }
  segments->push_back(std::exchange(partial_, std::string()));
  return absl::OkStatus();
}

void MatrixMarketSplitter::EndAfterError(std::vector<std::string>* segments) {
  if (has_header()) Cut(segments);
  std::string().swap(partial_);
}

}  // namespace crout
