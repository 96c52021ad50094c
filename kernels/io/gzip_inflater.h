// Streaming decompression of gzip (RFC 1952), with a limit on what it may expand to.
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

  // Text may be `max_ratio` times as long as the compressed bytes read for it; this is judged
  // once more than 1 MiB of text came out, since short texts compress without bound.
  explicit GzipInflater(double max_ratio);
  ~GzipInflater();
  GzipInflater(const GzipInflater&) = delete;  // zlib's state points into itself.
  GzipInflater& operator=(const GzipInflater&) = delete;

  // Decompresses from the front of *compressed into `text` until one of them is used up. Moves
  // *compressed past what was read and sets *written. When the whole of `text` was written, more
  // may be waiting inside: call again, with an empty *compressed if need be, until less is
  // written. Members one after the other give their texts one after the other.
  absl::Status Inflate(std::string_view* compressed, std::span<char> text, size_t* written);

  // Call at the end of the compressed bytes: an error unless a member ends there.
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
