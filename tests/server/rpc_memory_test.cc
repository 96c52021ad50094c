// Memory that the system does not give: it ends the call that asked, and nothing else. Each case
// refuses one allocation of the standard library, known by its size, on another kind of thread.
#include <atomic>
#include <cstdlib>
#include <new>
#include <string>

#include "absl/base/attributes.h"
#include "absl/strings/str_cat.h"
#include "kernels/io/sparse_matrix.h"
#include "server/rpc/core.h"
#include "tests/server/rpc_fixture.h"

namespace {

// The next allocation of exactly so many bytes is refused; 0: none.
std::atomic<size_t> refused_size = 0;

}  // namespace

// With AddressSanitizer, libraries may get its operator new and this file's delete, which is as
// well.
extern "C" const char* __asan_default_options() { return "alloc_dealloc_mismatch=0"; }  // NOLINT

// Not inlined: the compiler would take free() for a mistake.
ABSL_ATTRIBUTE_NOINLINE void* operator new(size_t bytes) {
  size_t refused = bytes;
  if (bytes != 0 && refused_size.compare_exchange_strong(refused, 0)) throw std::bad_alloc();
  void* const block = std::malloc(bytes);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
ABSL_ATTRIBUTE_NOINLINE void operator delete(void* block) noexcept { std::free(block); }
ABSL_ATTRIBUTE_NOINLINE void operator delete(void* block, size_t) noexcept { std::free(block); }

namespace crout::testing {
namespace {

class RpcMemoryTest : public RpcTest {
 protected:
  // A matrix of order n with `lines` lines, a diagonal and duplicates of its first entry.
  static std::string TextOf(int64_t n, int64_t lines) {
    std::string text = absl::StrCat("%%MatrixMarket matrix coordinate real general\n", n, " ", n,
                                    " ", lines, "\n");
    for (int64_t i = 0; i < lines; ++i) {
      const int64_t at = i < n ? i + 1 : 1;
      absl::StrAppend(&text, at, " ", at, " 1\n");
    }
    return text;
  }

  grpc::Status FactorizeText(const std::string& text, v1::Factor* factor) {
    v1::FactorizeHeader header;
    *header.mutable_matrix() = Text();
    return Factorize(header, text, factor);
  }

  // The call is refused when the allocation of `bytes` bytes is, and works when it is not.
  void ExpectRefused(size_t bytes, const std::string& text) {
    const Holdings before = Held();
    v1::Factor factor;
    refused_size = bytes;
    const grpc::Status status = FactorizeText(text, &factor);
    EXPECT_EQ(refused_size.exchange(0), 0u) << "nothing of that size was allocated";
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
    ExpectHeldSoon(before);
    EXPECT_TRUE(FactorizeText(text, &factor).ok());
  }
};

TEST_F(RpcMemoryTest, OnTheThreadThatReceives) {
  StartServer();
  // A segment of text, with its terminator.
  ExpectRefused((size_t{1} << 20) + 1, TextOf(50, 200000));
}

TEST_F(RpcMemoryTest, OnTheThreadThatParses) {
  StartServer();
  ExpectRefused(12347 * sizeof(MatrixEntry), TextOf(50, 12347));
}

TEST_F(RpcMemoryTest, OnTheThreadThatAssembles) {
  StartServer();
  ExpectRefused((777 + 1) * sizeof(int64_t), TextOf(777, 777));
}

TEST_F(RpcMemoryTest, OnTheThreadThatWorks) {
  StartServer();
  constexpr int64_t kN = 301;
  v1::Factor factor;
  ASSERT_TRUE(Factorize(kN, &factor).ok());
  const auto download = [&] {
    grpc::ClientContext context;
    v1::GetFactorsRequest request;
    request.set_handle(factor.handle());
    auto stream = stub().GetFactors(&context, request);
    v1::GetFactorsResponse response;
    while (stream->Read(&response)) {
    }
    return stream->Finish();
  };
  WaitUntil([&] { return Held().calls == 0; }, "no call");
  const Holdings before = Held();
  refused_size = kN * sizeof(int64_t);  // the permutation
  EXPECT_EQ(download().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(refused_size.exchange(0), 0u);
  ExpectHeldSoon(before);
  EXPECT_TRUE(download().ok());
}

TEST_F(RpcMemoryTest, OfThePool) {
  StartServer();
  constexpr int64_t kN = 20;
  v1::Factor factor;
  ASSERT_TRUE(Factorize(kN, &factor).ok());
  WaitUntil([&] { return Held().calls == 0; }, "no call");
  const Holdings before = Held();
  Solved solved;
  failpoints().Fail("memory.allocate", absl::ResourceExhaustedError("refused"), 1);
  const grpc::Status status = Solve(factor.handle(), std::vector<double>(kN, 1.0), &solved);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  ExpectHeldSoon(before);
  EXPECT_TRUE(Solve(factor.handle(), std::vector<double>(kN, 1.0), &solved).ok());
}

TEST_F(RpcMemoryTest, CallsAreChargedAsLongAsTheyLive) {
  constexpr int kFit = 3;
  Config config = SmallConfig();
  config.call_memory_bytes = kFit * ServerCore::kCallBytes;
  StartServer({}, config);
  const auto open = [&](grpc::ClientContext* context) { return stub().Factorize(context); };
  grpc::ClientContext contexts[kFit + 2];
  std::vector<
      std::unique_ptr<grpc::ClientReaderWriter<v1::FactorizeRequest, v1::FactorizeResponse>>>
      calls;
  for (int i = 0; i < kFit; ++i) {
    calls.push_back(open(&contexts[i]));
    WaitUntil([&] { return core().call_memory.reserved() == (i + 1) * ServerCore::kCallBytes; },
              "charged");
  }
  const grpc::Status refused = open(&contexts[kFit])->Finish();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(refused.error_message().find("hold the 96 KiB"), std::string::npos);
  contexts[0].TryCancel();
  calls[0]->Finish();
  WaitUntil([&] { return core().call_memory.reserved() == (kFit - 1) * ServerCore::kCallBytes; },
            "given back");
  const auto last = open(&contexts[kFit + 1]);
  last->WritesDone();
  EXPECT_EQ(last->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT) << "taken";
  for (auto& context : contexts) context.TryCancel();
  for (int i = 1; i < kFit; ++i) calls[i]->Finish();
  WaitUntil([&] { return core().call_memory.reserved() == 0; }, "none left");
}

}  // namespace
}  // namespace crout::testing
