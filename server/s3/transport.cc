// SPDX-License-Identifier: Apache-2.0

#include "server/s3/transport.h"

#include <curl/curl.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <random>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kernels/util/failpoint.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"

namespace crout {
namespace {

using std::chrono::milliseconds;
using SteadyTime = std::chrono::steady_clock::time_point;

constexpr size_t kMaxIdleSessions = 4;
constexpr size_t kMaxHeaderBytes = size_t{1} << 16;
constexpr long kConnectMs = 10'000;
// A body of 1 MiB or more follows so long after its header if the store does not ask for it.
constexpr long kExpectMs = 200;
// A repeatable transfer of fewer bytes for so long is given up.
constexpr long kStallBytesPerSecond = 1024;
constexpr long kStallSeconds = 30;
constexpr long kReceiveBuffer = 256 << 10;
constexpr long kSendBuffer = 1 << 20;
constexpr int kAttempts = 4;
constexpr milliseconds kFirstPause{200};
// An idle transfer is looked at so often.
constexpr milliseconds kMaxPoll{1000};

bool IsTransient(int status) {
  return status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

absl::Status StoppedStatus() {
  return absl::CancelledError("a call of the object store was stopped");
}

absl::Status LateStatus(milliseconds limit) {
  return absl::UnavailableError(absl::StrCat("the object store did not reply completely within ",
                                             limit.count(),
                                             " ms. Check its load and the network, and try again"));
}

absl::Status StatusOfCurl(CURLcode code) {
  switch (code) {
    case CURLE_OUT_OF_MEMORY:
      return absl::ResourceExhaustedError("no memory for a request to the object store");
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      return absl::FailedPreconditionError(
          "the certificate of the object store is not accepted. Check its name and date, and set "
          "the file of its authority");
    default:
      // Without libcurl's error buffer, which names hosts and addresses.
      return absl::UnavailableError(
          absl::StrCat("the object store cannot be reached: ", curl_easy_strerror(code),
                       ". Check the endpoint and the network"));
  }
}

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
struct FreeDigest {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using HeaderList = std::unique_ptr<curl_slist, FreeList>;

// Appends a line. Returns false if there is no memory.
bool Append(HeaderList& list, const std::string& line) {
  curl_slist* const longer = curl_slist_append(list.get(), line.c_str());
  if (longer == nullptr) return false;
  (void)list.release();
  list.reset(longer);
  return true;
}

std::string BaseUrl(const S3Settings& settings) {
  if (settings.path_style) return absl::StrCat(settings.endpoint, "/", settings.bucket);
  const size_t host = settings.endpoint.find("://") + 3;
  return absl::StrCat(settings.endpoint.substr(0, host), settings.bucket, ".",
                      settings.endpoint.substr(host));
}

// Receives the reply to one attempt.
class ReplyReader {
 public:
  ReplyReader(CURL* easy, const S3Request& request) : easy_(easy), request_(request) {}

  // Callbacks of libcurl. A result other than `count` ends the transfer.
  static size_t OnHeader(char* data, size_t /*size*/, size_t count, void* self) {
    return static_cast<ReplyReader*>(self)->Try(&ReplyReader::TakeHeader, {data, count});
  }
  static size_t OnBody(char* data, size_t /*size*/, size_t count, void* self) {
    return static_cast<ReplyReader*>(self)->Try(&ReplyReader::TakeBody, {data, count});
  }

  bool too_long() const { return too_long_; }
  bool out_of_memory() const { return out_of_memory_; }
  S3Reply Take() {
    reply_.status = Status();
    return std::move(reply_);
  }

 private:
  // An exception must not reach libcurl, which is C.
  size_t Try(bool (ReplyReader::*take)(std::string_view), std::string_view bytes) {
    try {
      return (this->*take)(bytes) ? bytes.size() : 0;
    } catch (const std::bad_alloc&) {
      out_of_memory_ = true;
      return 0;
    }
  }
  int Status() const {
    long status = 0;
    curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
    return static_cast<int>(status);
  }
  bool TakeHeader(std::string_view text) {
    const absl::string_view line = ToAbsl(text);
    header_bytes_ += line.size();
    too_long_ |= header_bytes_ > kMaxHeaderBytes;
    const size_t colon = line.find(':');
    if (too_long_ || colon == absl::string_view::npos) return !too_long_;
    const absl::string_view name = line.substr(0, colon);
    const absl::string_view value = absl::StripAsciiWhitespace(line.substr(colon + 1));
    const auto is = [&](std::string_view known) {
      return absl::EqualsIgnoreCase(name, ToAbsl(known));
    };
    if (is("etag")) reply_.etag = std::string(value);
    if (is("content-range")) reply_.content_range = std::string(value);
    if (is(kS3DigestHeader)) reply_.digest = std::string(value);
    uint64_t length = 0;
    if (is("content-length") && absl::SimpleAtoi(value, &length)) reply_.content_length = length;
    return true;
  }
  bool TakeBody(std::string_view bytes) {
    const int status = Status();
    const bool is_content = request_.content.data() != nullptr && status >= 200 && status < 300;
    const size_t had = is_content ? reply_.received : reply_.text.size();
    const size_t space = is_content ? request_.content.size() : request_.max_text;
    if (bytes.size() > space - had) {
      too_long_ = true;
      return false;
    }
    if (is_content) {
      std::memcpy(request_.content.data() + had, bytes.data(), bytes.size());
      reply_.received += bytes.size();
    } else {
      reply_.text.append(bytes);
    }
    return true;
  }

  CURL* const easy_;
  const S3Request& request_;
  S3Reply reply_;
  size_t header_bytes_ = 0;
  bool too_long_ = false;
  bool out_of_memory_ = false;
};

// Sends the body of a request.
class BodyWriter {
 public:
  explicit BodyWriter(S3Bytes bytes) : bytes_(bytes) {}

  // Callbacks of libcurl.
  static size_t OnRead(char* to, size_t /*size*/, size_t space, void* self) {
    return static_cast<BodyWriter*>(self)->Take({to, space});
  }
  // libcurl repeats a body from its begin if the store asks for it.
  static int OnSeek(void* self, curl_off_t offset, int origin) {
    if (offset != 0 || origin != SEEK_SET) return CURL_SEEKFUNC_CANTSEEK;
    BodyWriter& writer = *static_cast<BodyWriter*>(self);
    writer.piece_ = 0;
    writer.done_ = 0;
    return CURL_SEEKFUNC_OK;
  }

 private:
  size_t Take(std::span<char> to) {
    size_t taken = 0;
    while (taken < to.size() && piece_ < bytes_.size()) {
      const std::span<const std::byte> rest = bytes_[piece_].subspan(done_);
      const size_t count = std::min(rest.size(), to.size() - taken);
      if (count > 0) std::memcpy(to.data() + taken, rest.data(), count);
      taken += count;
      done_ += count;
      if (count < rest.size()) break;
      ++piece_;
      done_ = 0;
    }
    return taken;
  }

  const S3Bytes bytes_;
  size_t piece_ = 0;
  size_t done_ = 0;  // bytes of the piece that were sent
};

// libcurl requires this before any other call. It is thread-safe since libcurl 7.84.
bool CurlIsReady() {
  static const bool is_ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  return is_ready;
}

}  // namespace

size_t SizeOf(S3Bytes bytes) {
  size_t size = 0;
  for (const auto piece : bytes) size += piece.size();
  return size;
}

absl::StatusOr<Sha256> Sha256Of(S3Bytes bytes) {
  const std::unique_ptr<EVP_MD_CTX, FreeDigest> context(EVP_MD_CTX_new());
  bool is_done = context != nullptr && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1;
  for (const auto piece : bytes)
    is_done = is_done && EVP_DigestUpdate(context.get(), piece.data(), piece.size()) == 1;
  Sha256 digest;
  is_done =
      is_done && EVP_DigestFinal_ex(context.get(), reinterpret_cast<unsigned char*>(digest.data()),
                                    nullptr) == 1;
  if (!is_done) return absl::InternalError("OpenSSL could not compute a SHA-256 digest");
  return digest;
}

absl::StatusOr<Sha256> Sha256Of(std::span<const std::byte> bytes) {
  return Sha256Of(S3Bytes(&bytes, 1));
}

std::string HexOf(const Sha256& digest) {
  return absl::BytesToHexString({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

// A handle of libcurl with its connections. Used by one thread at a time.
class S3Transport::Session {
 public:
  Session() : multi_(curl_multi_init()), easy_(curl_easy_init()) {}
  ~Session() {
    curl_easy_cleanup(easy_);
    curl_multi_cleanup(multi_);
  }
  Session(const Session&) = delete;  // It owns its handles.
  Session& operator=(const Session&) = delete;

  bool valid() const { return multi_ != nullptr && easy_ != nullptr; }
  CURLM* multi() const { return multi_; }

  // Makes one attempt.
  absl::StatusOr<S3Reply> Exchange(const S3Transport& transport, const S3Request& request,
                                   const S3CallLimits& limits, SteadyTime deadline) {
    curl_easy_reset(easy_);  // keeps the connections
    ReplyReader reader(easy_, request);
    BodyWriter writer(request.body);
    HeaderList headers;
    CROUT_RETURN_IF_ERROR(Prepare(transport, request, headers, writer, reader));
    if (curl_multi_add_handle(multi_, easy_) != CURLM_OK)
      return absl::InternalError("libcurl could not start a request to the object store");
    const absl::Status ended = Perform(limits, deadline);
    CURLcode code = CURLE_OK;
    int left = 0;
    while (const CURLMsg* const message = curl_multi_info_read(multi_, &left)) {
      if (message->msg == CURLMSG_DONE) code = message->data.result;
    }
    curl_multi_remove_handle(multi_, easy_);
    CROUT_RETURN_IF_ERROR(ended);
    if (reader.too_long()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the object store sent more than the ", request.content.size(),
                       " expected bytes or a header of more than 64 KiB. Check that the object was "
                       "not replaced"));
    }
    if (reader.out_of_memory()) return StatusOfCurl(CURLE_OUT_OF_MEMORY);
    if (code != CURLE_OK) return StatusOfCurl(code);
    return reader.Take();
  }

  // Waits until the time, or until the stop is requested.
  void PauseUntil(SteadyTime time, const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const auto left = std::chrono::ceil<milliseconds>(time - std::chrono::steady_clock::now());
      if (left <= milliseconds(0)) return;
      if (curl_multi_poll(multi_, nullptr, 0, static_cast<int>(left.count()), nullptr) != CURLM_OK)
        return;
    }
  }

  // A random part of `longest`, so that clients do not repeat requests at the same time.
  milliseconds Jitter(milliseconds longest) {
    return milliseconds(std::uniform_int_distribution<int64_t>(1, longest.count())(random_));
  }

 private:
  // Sets the options of the next request.
  absl::Status Prepare(const S3Transport& transport, const S3Request& request, HeaderList& headers,
                       BodyWriter& writer, ReplyReader& reader) {
    const S3Credentials& keys = transport.settings_.credentials;
    bool is_set =
        Append(headers, absl::StrCat("x-amz-content-sha256: ", HexOf(request.body_digest)));
    // Replaces the type of a form.
    is_set &= Append(headers, "Content-Type: application/octet-stream");
    if (!keys.session_token.empty())
      is_set &= Append(headers, absl::StrCat("x-amz-security-token: ", keys.session_token));
    for (const std::string& header : request.headers) is_set &= Append(headers, header);

    const auto set = [&](CURLoption option, auto value) {
      is_set &= curl_easy_setopt(easy_, option, value) == CURLE_OK;
    };
    const std::string url = absl::StrCat(transport.base_url_, "/", request.key,
                                         request.query.empty() ? "" : "?", request.query);
    set(CURLOPT_URL, url.c_str());
    set(CURLOPT_PATH_AS_IS, 1L);
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_PROXY, "");  // overrides the environment
    set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    if (!transport.settings_.ca_file.empty())
      set(CURLOPT_CAINFO, transport.settings_.ca_file.c_str());
    set(CURLOPT_AWS_SIGV4, transport.sigv4_.c_str());
    set(CURLOPT_USERNAME, keys.access_key.c_str());
    set(CURLOPT_PASSWORD, keys.secret_key.c_str());
    set(CURLOPT_USERAGENT, "croutd");
    set(CURLOPT_HTTPHEADER, headers.get());
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_QUICK_EXIT, 1L);  // does not wait for a name lookup that was given up
    // libcurl repeats a request on its own if a reused connection turns out to be closed.
    set(CURLOPT_FRESH_CONNECT, request.repeatable ? 0L : 1L);
    set(CURLOPT_CONNECTTIMEOUT_MS, kConnectMs);
    set(CURLOPT_EXPECT_100_TIMEOUT_MS, kExpectMs);
    if (request.repeatable) {
      set(CURLOPT_LOW_SPEED_LIMIT, kStallBytesPerSecond);
      set(CURLOPT_LOW_SPEED_TIME, kStallSeconds);
    }
    set(CURLOPT_BUFFERSIZE, kReceiveBuffer);
    set(CURLOPT_UPLOAD_BUFFERSIZE, kSendBuffer);
    set(CURLOPT_HEADERFUNCTION, &ReplyReader::OnHeader);
    set(CURLOPT_HEADERDATA, &reader);
    set(CURLOPT_WRITEFUNCTION, &ReplyReader::OnBody);
    set(CURLOPT_WRITEDATA, &reader);
    const std::string_view method = request.method;
    if (method == "HEAD") {
      set(CURLOPT_NOBODY, 1L);
    } else if (method == "PUT" || method == "POST") {
      set(CURLOPT_POST, 1L);
      set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(SizeOf(request.body)));
      set(CURLOPT_READFUNCTION, &BodyWriter::OnRead);
      set(CURLOPT_READDATA, &writer);
      set(CURLOPT_SEEKFUNCTION, &BodyWriter::OnSeek);
      set(CURLOPT_SEEKDATA, &writer);
      set(CURLOPT_CUSTOMREQUEST, request.method);
    } else {
      set(CURLOPT_CUSTOMREQUEST, request.method);
    }
    if (!is_set) return absl::InternalError("libcurl does not support a needed option");
    return absl::OkStatus();
  }

  absl::Status Perform(const S3CallLimits& limits, SteadyTime deadline) {
    while (true) {
      int running = 0;
      if (curl_multi_perform(multi_, &running) != CURLM_OK)
        return absl::InternalError("libcurl could not perform a request to the object store");
      if (running == 0) return absl::OkStatus();
      if (limits.stop.stop_requested()) return StoppedStatus();
      const auto left =
          std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
      if (left <= milliseconds(0)) return LateStatus(limits.duration);
      const int poll_ms = static_cast<int>(std::min(left, kMaxPoll).count());
      if (curl_multi_poll(multi_, nullptr, 0, poll_ms, nullptr) != CURLM_OK)
        return absl::InternalError("libcurl could not wait for the object store");
    }
  }

  CURLM* const multi_;
  CURL* const easy_;
  std::minstd_rand random_{std::random_device()()};
};

// Takes an idle session, or creates one, and returns it.
class S3Transport::SessionLease {
 public:
  explicit SessionLease(S3Transport& transport) : transport_(transport) {
    {
      const MutexLock lock(&transport.mutex_);
      if (!transport.idle_.empty()) {
        session_ = std::move(transport.idle_.back());
        transport.idle_.pop_back();
      }
    }
    if (session_ == nullptr) session_ = std::make_unique<Session>();
  }
  ~SessionLease() {
    const MutexLock lock(&transport_.mutex_);
    if (transport_.idle_.size() < kMaxIdleSessions && session_->valid())
      transport_.idle_.push_back(std::move(session_));
  }
  SessionLease(const SessionLease&) = delete;  // It owns the session.
  SessionLease& operator=(const SessionLease&) = delete;

  Session& operator*() const { return *session_; }

 private:
  S3Transport& transport_;
  std::unique_ptr<Session> session_;
};

S3Transport::S3Transport(S3Settings settings)
    : settings_(std::move(settings)),
      base_url_(BaseUrl(settings_)),
      sigv4_(absl::StrCat("aws:amz:", settings_.region, ":s3")) {
  idle_.reserve(kMaxIdleSessions);  // nothing is allocated under the mutex
}

S3Transport::~S3Transport() = default;

absl::StatusOr<S3Reply> S3Transport::Send(const S3Request& request, const S3CallLimits& limits) {
  if (!CurlIsReady()) return absl::InternalError("libcurl could not be initialized");
  const SessionLease lease(*this);
  Session& session = *lease;
  if (!session.valid())
    return absl::ResourceExhaustedError("no memory for a connection to the object store");
  const std::stop_callback wake(limits.stop, [&] { curl_multi_wakeup(session.multi()); });
  const SteadyTime deadline = std::chrono::steady_clock::now() + limits.duration;
  for (int attempt = 1;; ++attempt) {
    if (limits.stop.stop_requested()) return StoppedStatus();
    const absl::Status injected = Failpoint("s3.send");
    absl::StatusOr<S3Reply> reply =
        injected.ok() ? session.Exchange(*this, request, limits, deadline) : injected;
    const bool is_transient =
        reply.ok() ? IsTransient(reply->status) : absl::IsUnavailable(reply.status());
    if (!is_transient || !request.repeatable || attempt == kAttempts) return reply;
    const SteadyTime next =
        std::chrono::steady_clock::now() + session.Jitter(kFirstPause * (1 << attempt));
    if (next >= deadline) return reply;
    session.PauseUntil(next, limits.stop);
  }
}

}  // namespace crout
