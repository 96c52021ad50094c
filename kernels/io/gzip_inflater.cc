// SPDX-License-Identifier: Apache-2.0

#include "kernels/io/gzip_inflater.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace crout {
namespace {

constexpr int kGzipOnly = 15 + 16;  // zlib's windowBits: largest window, gzip header required.
constexpr uint64_t kFreeBytes = uint64_t{1} << 20;

uInt Clamp(size_t size) {
  return static_cast<uInt>(std::min<size_t>(size, std::numeric_limits<uInt>::max()));
}

}  // namespace

// A failed inflateInit2 leaves a state that inflate() rejects, so no separate check is needed.
GzipInflater::GzipInflater(double max_ratio) : max_ratio_(max_ratio) {
  inflateInit2(&stream_, kGzipOnly);
}

GzipInflater::~GzipInflater() { inflateEnd(&stream_); }

absl::Status GzipInflater::Inflate(std::string_view* compressed, std::span<char> text,
                                   size_t* written) {
  *written = 0;
  while (*written < text.size()) {
    if (!within_member_ && compressed->empty()) break;
    const uInt room = Clamp(text.size() - *written);
    const uInt given = Clamp(compressed->size());
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(compressed->data()));
    stream_.avail_in = given;
    stream_.next_out = reinterpret_cast<Bytef*>(text.data() + *written);
    stream_.avail_out = room;
    within_member_ = true;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    const uInt taken = given - stream_.avail_in;
    const uInt made = room - stream_.avail_out;
    compressed->remove_prefix(taken);
    *written += made;
    bytes_in_ += taken;
    bytes_out_ += made;
    if (result == Z_STREAM_END) {
      within_member_ = false;
      inflateReset(&stream_);
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      return absl::InvalidArgumentError(
          absl::StrCat("the gzip stream is damaged after ", bytes_in_,
                       " bytes: ", stream_.msg != nullptr ? stream_.msg : "unknown format"));
    }
    if (absl::Status status = CheckRatio(); !status.ok()) return status;
    if (taken == 0 && made == 0) break;  // More input is needed.
  }
  return absl::OkStatus();
}

absl::Status GzipInflater::CheckRatio() const {
  if (bytes_out_ <= kFreeBytes) return absl::OkStatus();
  if (static_cast<double>(bytes_out_) <= max_ratio_ * static_cast<double>(bytes_in_)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the gzip stream expands to more than ", max_ratio_,
                   " times its size. Send it uncompressed or with less compression"));
}

absl::Status GzipInflater::Finish() const {
  if (!within_member_ && bytes_in_ > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the gzip stream ends within a member after ",
                                                 bytes_in_, " bytes. Send the whole stream"));
}

}  // namespace crout
