#include "kernels/io/matrix_market_splitter.h"

#include <algorithm>
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
    // One byte beyond the limit is enough to see that the line is too long.
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
    partial_.append(piece);
    text.remove_prefix(piece.size());
    if (const size_t newline = piece.rfind('\n'); newline != std::string_view::npos) {
      whole_lines_ = partial_.size() - piece.size() + newline + 1;
    }
    if (partial_.size() >= segment_bytes_) Cut(segments);
  }
}

void MatrixMarketSplitter::Cut(std::vector<std::string>* segments) {
  const bool too_long = partial_.size() - whole_lines_ > kMaxMatrixMarketLine;
  const size_t cut = too_long ? partial_.size() : whole_lines_;
  if (cut == 0) return;
  std::string rest;
  rest.reserve(std::min(segment_bytes_, partial_.capacity()));
  rest.assign(partial_, cut, std::string::npos);
  partial_.resize(cut);
  segments->push_back(std::exchange(partial_, std::move(rest)));
  whole_lines_ = 0;
}

absl::Status MatrixMarketSplitter::Finish(std::vector<std::string>* segments) {
  if (!header_.done() && !partial_.empty()) {
    if (absl::Status status = header_.AddLine(partial_); !status.ok()) return status;
    partial_.clear();
  }
  if (!header_.done()) return header_.MissingLine();
  if (!partial_.empty()) segments->push_back(std::exchange(partial_, std::string()));
  return absl::OkStatus();
}

void MatrixMarketSplitter::BreakOff(std::vector<std::string>* segments) {
  if (has_header()) Cut(segments);
  partial_ = std::string();
}

}  // namespace crout
