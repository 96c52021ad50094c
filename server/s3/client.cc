// SPDX-License-Identifier: Apache-2.0

#include "server/s3/client.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "kernels/util/failpoint.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// A page has 1000 keys of at most 1024 bytes, each character of which may be a reference.
constexpr size_t kMaxPageBytes = size_t{8} << 20;
constexpr size_t kMaxContinuationBytes = 4096;
// The parts of a failed upload are removed even if the call was stopped, within this time.
constexpr std::chrono::milliseconds kAbortLimit{5000};

// Returns `size` bytes from `begin` on, or those up to the end.
std::vector<std::span<const std::byte>> Slice(S3Bytes bytes, size_t begin, size_t size) {
  std::vector<std::span<const std::byte>> slice;
  for (std::span<const std::byte> piece : bytes) {
    const size_t skipped = std::min(begin, piece.size());
    piece = piece.subspan(skipped);
    begin -= skipped;
    piece = piece.first(std::min(size, piece.size()));
    size -= piece.size();
    if (!piece.empty()) slice.push_back(piece);
  }
  return slice;
}

// SHA-256 digests of the blocks of kS3PartBytes. One digest for no bytes.
absl::StatusOr<std::vector<Sha256>> BlockDigests(S3Bytes bytes) {
  const size_t blocks = std::max<size_t>(1, (SizeOf(bytes) + kS3PartBytes - 1) / kS3PartBytes);
  std::vector<Sha256> digests(blocks);
  for (size_t i = 0; i < blocks; ++i) {
    CROUT_ASSIGN_OR_RETURN(digests[i], Sha256Of(Slice(bytes, i * kS3PartBytes, kS3PartBytes)));
  }
  return digests;
}

absl::StatusOr<std::string> ObjectDigest(const std::vector<Sha256>& digests) {
  CROUT_ASSIGN_OR_RETURN(const Sha256 digest, Sha256Of(std::as_bytes(std::span(digests))));
  return HexOf(digest);
}

// Encodes a value of a query as AWS Signature Version 4 requires.
std::string Encode(absl::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const bool is_plain = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' ||
                          c == '_' || c == '.' || c == '~';
    if (is_plain) {
      encoded.push_back(c);
    } else {
      absl::StrAppendFormat(&encoded, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

absl::Status CheckKey(const std::string& key) {
  if (IsS3Key(key)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the key of an object is not valid. Use at most 512 letters, digits and - _ . / in "
      "segments that are not empty");
}

// Returns the header for a tag, which comes from a reply. INVALID_ARGUMENT if it could end a line.
absl::Status AppendTag(const char* name, const std::string& etag,
                       std::vector<std::string>& headers) {
  const bool is_plain = std::ranges::all_of(
      etag, [](char c) { return absl::ascii_isgraph(static_cast<unsigned char>(c)); });
  if (!is_plain || etag.empty() || etag.size() > 256)
    return absl::InvalidArgumentError("the tag of an object is not valid. Take it from a reply");
  headers.push_back(absl::StrCat(name, ": ", etag));
  return absl::OkStatus();
}

absl::Status AppendCondition(const S3Condition& condition, std::vector<std::string>& headers) {
  if (condition.absent) headers.emplace_back("If-None-Match: *");
  if (condition.etag.empty()) return absl::OkStatus();
  return AppendTag("If-Match", condition.etag, headers);
}

struct Refusal {
  absl::StatusCode code;
  const char* next_step;
};

Refusal RefusalOf(int status, absl::string_view code) {
  using enum absl::StatusCode;
  if (code == "BadDigest" || code == "XAmzContentSHA256Mismatch")
    return {kUnavailable, "The request was damaged on its way. Try again"};
  if (code == "NoSuchBucket")
    return {kFailedPrecondition, "Create the bucket, or correct its name"};
  if (code == "QuotaExceeded" || status == 413 || status == 507)
    return {kResourceExhausted, "Remove objects, or raise the quota of the bucket"};
  if (code == "ExpiredToken" || status == 401 || status == 403)
    return {kPermissionDenied,
            "Check the access key, its secret, its rights on the bucket and the time of this "
            "machine"};
  if (status == 404) return {kNotFound, "Check the bucket, or write the object again"};
  if (status == 409) return {kUnavailable, "Another write runs. Read the object, then try again"};
  if (status == 412) return {kAborted, "Another writer was first. Read the object again"};
  if (status == 416) return {kOutOfRange, "Ask for bytes within the object"};
  if (status == 429 || (status >= 500 && status != 501))
    return {kUnavailable, "Check the load and the health of the object store, and try again"};
  if (status == 501)
    return {kUnimplemented, "Use a store with conditional writes and multipart uploads"};
  return {kFailedPrecondition, "Check the endpoint, the region and the style of addresses"};
}

absl::Status StatusOfReply(const char* operation, const S3Reply& reply) {
  if (reply.status >= 200 && reply.status < 300) return absl::OkStatus();
  const std::string code = ParseS3Error(reply.text);
  const Refusal refusal = RefusalOf(reply.status, code);
  return absl::Status(
      refusal.code, absl::StrCat("the object store refused to ", operation, ": HTTP ", reply.status,
                                 code.empty() ? "" : ", ", code, ". ", refusal.next_step));
}

absl::Status NoTag(const char* operation) {
  return absl::UnavailableError(absl::StrCat("the object store sent no tag when asked to ",
                                             operation,
                                             ". Check that the endpoint is an S3 server"));
}

S3CallLimits Remaining(const S3CallLimits& limits, std::chrono::steady_clock::time_point deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return {std::max(left, std::chrono::milliseconds(0)), limits.stop};
}

}  // namespace

absl::StatusOr<std::unique_ptr<S3Client>> S3Client::Create(S3Settings settings) {
  CROUT_RETURN_IF_ERROR(CheckS3Settings(settings));
  return std::unique_ptr<S3Client>(new S3Client(std::move(settings)));
}

// Sends a request, and returns its reply if its status is 2xx.
absl::StatusOr<S3Reply> S3Client::Send(const char* operation, S3Request request,
                                       const S3CallLimits& limits) {
  if (request.body.empty()) {
    CROUT_ASSIGN_OR_RETURN(request.body_digest, Sha256Of(S3Bytes()));
  }
  CROUT_ASSIGN_OR_RETURN(S3Reply reply, transport_.Send(request, limits));
  CROUT_RETURN_IF_ERROR(StatusOfReply(operation, reply));
  return reply;
}

absl::StatusOr<std::string> S3Client::Put(const std::string& key, S3Bytes bytes,
                                          const S3Condition& condition,
                                          const S3CallLimits& limits) {
  CROUT_RETURN_IF_ERROR(CheckKey(key));
  if (SizeOf(bytes) > kS3MaxObjectBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("an object of ", SizeOf(bytes), " bytes exceeds the limit of ",
                     kS3MaxObjectBytes, " bytes. Store less in it"));
  }
  CROUT_ASSIGN_OR_RETURN(const std::vector<Sha256> digests, BlockDigests(bytes));
  if (digests.size() > 1) return PutParts(key, bytes, digests, condition, limits);
  CROUT_ASSIGN_OR_RETURN(const std::string digest, ObjectDigest(digests));
  S3Request request{.method = "PUT",
                    .key = key,
                    .headers = {absl::StrCat(kS3DigestHeader, ": ", digest)},
                    .body = bytes,
                    .body_digest = digests[0],
                    .repeatable = !condition.absent && condition.etag.empty()};
  CROUT_RETURN_IF_ERROR(AppendCondition(condition, request.headers));
  CROUT_ASSIGN_OR_RETURN(S3Reply reply, Send("write an object", std::move(request), limits));
  if (reply.etag.empty()) return NoTag("write an object");
  return std::move(reply.etag);
}

absl::StatusOr<std::string> S3Client::PutParts(const std::string& key, S3Bytes bytes,
                                               const std::vector<Sha256>& digests,
                                               const S3Condition& condition,
                                               const S3CallLimits& limits) {
  const auto deadline = std::chrono::steady_clock::now() + limits.duration;
  CROUT_ASSIGN_OR_RETURN(const std::string digest, ObjectDigest(digests));
  // Not repeatable: a lost reply would leave an upload that nobody ends.
  CROUT_ASSIGN_OR_RETURN(const S3Reply begun,
                         Send("begin an upload",
                              {.method = "POST",
                               .key = key,
                               .query = "uploads=",
                               .headers = {absl::StrCat(kS3DigestHeader, ": ", digest)}},
                              limits));
  CROUT_ASSIGN_OR_RETURN(std::string upload,
                         ParseS3Text(begun.text, "InitiateMultipartUploadResult", "UploadId"));
  upload = absl::StrCat("uploadId=", Encode(upload));
  absl::StatusOr<std::string> etag =
      SendParts(key, upload, bytes, digests, condition, Remaining(limits, deadline));
  if (!etag.ok()) {
    // The first error counts. A bucket's rule for incomplete uploads removes what this leaves.
    Send("end an upload", {.method = "DELETE", .key = key, .query = upload, .repeatable = true},
         {.duration = kAbortLimit})
        .IgnoreError();
  }
  return etag;
}

absl::StatusOr<std::string> S3Client::SendParts(const std::string& key, const std::string& upload,
                                                S3Bytes bytes, const std::vector<Sha256>& digests,
                                                const S3Condition& condition,
                                                const S3CallLimits& limits) {
  const auto deadline = std::chrono::steady_clock::now() + limits.duration;
  std::string list = "<CompleteMultipartUpload>";
  for (size_t i = 0; i < digests.size(); ++i) {
    const auto part = Slice(bytes, i * kS3PartBytes, kS3PartBytes);
    CROUT_ASSIGN_OR_RETURN(const S3Reply sent,
                           Send("write a part of an object",
                                {.method = "PUT",
                                 .key = key,
                                 .query = absl::StrCat("partNumber=", i + 1, "&", upload),
                                 .body = part,
                                 .body_digest = digests[i],
                                 .repeatable = true},
                                Remaining(limits, deadline)));
    if (sent.etag.empty() || absl::StrContains(sent.etag, '<') || absl::StrContains(sent.etag, '&'))
      return NoTag("write a part of an object");
    absl::StrAppend(&list, "<Part><PartNumber>", i + 1, "</PartNumber><ETag>", sent.etag,
                    "</ETag></Part>");
  }
  list += "</CompleteMultipartUpload>";
  const auto body = std::as_bytes(std::span(list));
  S3Request request{.method = "POST", .key = key, .query = upload, .body = S3Bytes(&body, 1)};
  CROUT_ASSIGN_OR_RETURN(request.body_digest, Sha256Of(body));
  CROUT_RETURN_IF_ERROR(AppendCondition(condition, request.headers));
  CROUT_ASSIGN_OR_RETURN(
      S3Reply reply, Send("complete an upload", std::move(request), Remaining(limits, deadline)));
  // S3 begins the reply before it is done, so that an error can follow the status 200.
  const std::string error = ParseS3Error(reply.text);
  if (!error.empty()) {
    reply.status = error == "PreconditionFailed" ? 412 : 500;
    return StatusOfReply("complete an upload", reply);
  }
  return ParseS3Text(reply.text, "CompleteMultipartUploadResult", "ETag");
}

absl::StatusOr<S3ObjectInfo> S3Client::Get(const std::string& key, std::span<std::byte> to,
                                           const S3CallLimits& limits) {
  CROUT_RETURN_IF_ERROR(CheckKey(key));
  std::byte nothing;  // an empty span would not be content
  const std::span<std::byte> content = to.empty() ? std::span(&nothing, 0) : to;
  CROUT_ASSIGN_OR_RETURN(
      S3Reply reply,
      Send("read an object", {.key = key, .repeatable = true, .content = content}, limits));
  CROUT_RETURN_IF_ERROR(Failpoint("s3.get", to.first(reply.received)));
  const std::span<const std::byte> bytes = to.first(reply.received);
  CROUT_ASSIGN_OR_RETURN(const std::vector<Sha256> digests, BlockDigests(S3Bytes(&bytes, 1)));
  CROUT_ASSIGN_OR_RETURN(const std::string digest, ObjectDigest(digests));
  if (reply.digest != digest) {
    return absl::DataLossError(absl::StrCat("an object of ", bytes.size(), " bytes ",
                                            reply.digest.empty() ? "has no" : "differs from its",
                                            " digest. Write it again"));
  }
  if (reply.etag.empty()) return NoTag("read an object");
  return S3ObjectInfo{bytes.size(), std::move(reply.etag)};
}

absl::Status S3Client::GetRange(const std::string& key, const std::string& etag, uint64_t offset,
                                std::span<std::byte> to, const S3CallLimits& limits) {
  CROUT_RETURN_IF_ERROR(CheckKey(key));
  if (to.empty()) return absl::OkStatus();
  if (offset > UINT64_MAX - to.size())
    return absl::OutOfRangeError(
        "the range of bytes is too large. Ask for bytes within the object");
  const std::string range = absl::StrCat(offset, "-", offset + to.size() - 1);
  S3Request request{.key = key,
                    .headers = {absl::StrCat("Range: bytes=", range)},
                    .repeatable = true,
                    .content = to};
  CROUT_RETURN_IF_ERROR(AppendTag("If-Match", etag, request.headers));
  CROUT_ASSIGN_OR_RETURN(const S3Reply reply,
                         Send("read a part of an object", std::move(request), limits));
  if (reply.status != 206 ||
      !absl::StartsWith(reply.content_range, absl::StrCat("bytes ", offset, "-"))) {
    return absl::UnavailableError(
        "the object store sent other bytes than a part of an object. Check that the endpoint is an "
        "S3 server");
  }
  if (reply.received < to.size()) {
    return absl::OutOfRangeError(absl::StrCat("an object ends at byte ", offset + reply.received,
                                              "; bytes up to ", offset + to.size(),
                                              " were requested. Ask for bytes within the object"));
  }
  return Failpoint("s3.get", to);
}

absl::StatusOr<S3ObjectInfo> S3Client::Head(const std::string& key, const S3CallLimits& limits) {
  CROUT_RETURN_IF_ERROR(CheckKey(key));
  CROUT_ASSIGN_OR_RETURN(
      S3Reply reply,
      Send("describe an object", {.method = "HEAD", .key = key, .repeatable = true}, limits));
  if (reply.etag.empty()) return NoTag("describe an object");
  if (!reply.content_length.has_value()) {
    return absl::UnavailableError(
        "the object store sent no length of an object. Check that the endpoint is an S3 server");
  }
  return S3ObjectInfo{*reply.content_length, std::move(reply.etag)};
}

absl::Status S3Client::Remove(const std::string& key, const S3CallLimits& limits) {
  CROUT_RETURN_IF_ERROR(CheckKey(key));
  const absl::Status status =
      Send("remove an object", {.method = "DELETE", .key = key, .repeatable = true}, limits)
          .status();
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::StatusOr<S3Page> S3Client::List(const std::string& prefix, const std::string& continuation,
                                      const S3CallLimits& limits) {
  if (!prefix.empty()) CROUT_RETURN_IF_ERROR(CheckKey(std::string(absl::StripSuffix(prefix, "/"))));
  if (continuation.size() > kMaxContinuationBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a continuation of ", continuation.size(), " bytes exceeds the limit of ",
                     kMaxContinuationBytes, ". Take it from the last page"));
  }
  std::string query;
  if (!continuation.empty()) query = absl::StrCat("continuation-token=", Encode(continuation), "&");
  absl::StrAppend(&query, "list-type=2&max-keys=", kS3PageEntries, "&prefix=", Encode(prefix));
  CROUT_ASSIGN_OR_RETURN(
      const S3Reply reply,
      Send("list objects", {.query = query, .repeatable = true, .max_text = kMaxPageBytes},
           limits));
  return ParseS3Page(reply.text, prefix);
}

}  // namespace crout
