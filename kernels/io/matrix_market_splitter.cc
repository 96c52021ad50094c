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
    if (partial_.size() < segment_bytes_) break;
    size_t cut = partial_.rfind('\n');
    if (cut == std::string::npos && partial_.size() <= kMaxMatrixMarketLine) continue;
    cut = cut == std::string::npos ? partial_.size() : cut + 1;
    std::string rest;
    rest.reserve(segment_bytes_);
    rest.assign(partial_, cut, std::string::npos);
    partial_.resize(cut);
    segments->push_back(std::exchange(partial_, std::move(rest)));
  }
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

}  // namespace crout
