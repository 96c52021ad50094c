// SPDX-License-Identifier: Apache-2.0

// Streaming decompression of gzip (RFC 1952) with a limit on the expansion.
#ifndef CROUT_KERNELS_IO_GZIP_INFLATER_H_
#define CROUT_KERNELS_IO_GZIP_INFLATER_H_

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"

namespace crout {

// Not thread-safe. Errors are INVALID_ARGUMENT and final.
class GzipInflater {
 public:
  // The first two bytes of every gzip member.
  static constexpr std::string_view kMagic = "\x1f\x8b";

  // Limits the text to `max_ratio` times the compressed bytes read. Checked only beyond 1 MiB of
  // text, because short texts compress without bound.
  explicit GzipInflater(double max_ratio);
  ~GzipInflater();
  GzipInflater(const GzipInflater&) = delete;  // zlib's state points into itself.
  GzipInflater& operator=(const GzipInflater&) = delete;

  // Decompresses from the front of *compressed into `text` until either is used up. Advances
  // *compressed past the bytes read and sets *written. If all of `text` was written, more text may
  // be pending: call again, with an empty *compressed if necessary, until less is written. The
  // texts of consecutive members are concatenated.
  absl::Status Inflate(std::string_view* compressed, std::span<char> text, size_t* written);

  // Call at the end of the compressed bytes. Returns an error unless a member ends there.
  absl::Status Finish() const;

 private:
  absl::Status CheckRatio() const;

  const double max_ratio_;
  z_stream stream_ = {};
  uint64_t bytes_in_ = 0;
  uint64_t bytes_out_ = 0;
  bool within_member_ = false;
};

}  // namespace crout

#endif  // CROUT_KERNELS_IO_GZIP_INFLATER_H_
