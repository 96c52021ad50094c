// SPDX-License-Identifier: Apache-2.0

// Tests the iteration report of an iterative method: truncated in replies, complete in pages.
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/server/rpc/fixture.h"

namespace crout::testing::iterations_test {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kOrder = 150;
constexpr int64_t kSweeps = kOrder * kOrder;
constexpr int kCountsInReply = 16384;
static_assert(kSweeps > kCountsInReply);

class IterationsTest : public RpcTest {
 protected:
  // Factors with sections of one element.
  grpc::Status FactorizeByElements(v1::Factor* factor, const std::string& handle = "") {
    v1::FactorizeOptions options;
    options.set_algorithm(v1::ALGORITHM_ICMPP);
    options.mutable_parameters()->set_section_size(1);
    grpc::ClientContext context;
    if (handle.empty()) {
      v1::FactorizeRequest request;
      *request.mutable_header()->mutable_options() = options;
      return Run(stub().Factorize(&context), request, factor);
    }
    v1::RefactorizeRequest request;
    request.mutable_header()->set_handle(handle);
    *request.mutable_header()->mutable_options() = options;
    return Run(stub().Refactorize(&context), request, factor);
  }

  grpc::Status Page(const std::string& handle, const std::string& token, int size,
                    v1::IterationPage* page) {
    v1::DescribeFactorRequest request;
    request.set_handle(handle);
    request.mutable_iterations()->set_page_token(token);
    request.mutable_iterations()->set_page_size(size);
    grpc::ClientContext context;
    v1::DescribeFactorResponse response;
    const grpc::Status status = stub().DescribeFactor(&context, request, &response);
    *page = response.iterations();
    return status;
  }

 private:
  template <class Request, class Response>
  grpc::Status Run(std::unique_ptr<grpc::ClientReaderWriter<Request, Response>> stream,
                   Request request, v1::Factor* factor) {
    *request.mutable_header()->mutable_matrix() = Dense(kOrder, kOrder);
    request.set_data(Bytes(Matrix(kOrder)));
    stream->Write(request);
    stream->WritesDone();
    Response response;
    while (stream->Read(&response)) {
      if (response.has_factor()) *factor = response.factor();
    }
    return stream->Finish();
  }
};

TEST_F(IterationsTest, AReplyHasTheFirstCountsAndIsMarkedAsCut) {
  StartServer();
  v1::Factor factor;
  ASSERT_TRUE(FactorizeByElements(&factor).ok());
  const v1::Iterations& iterations = factor.iterations();
  EXPECT_EQ(iterations.sections(), kOrder);
  EXPECT_EQ(iterations.sweeps_size(), kCountsInReply);
  EXPECT_EQ(iterations.pivots_size(), kOrder);
  EXPECT_TRUE(iterations.cut());
  EXPECT_GE(iterations.total_sweeps(), kSweeps);
}

TEST_F(IterationsTest, ThePagesHaveEveryCount) {
  StartServer();
  v1::Factor factor;
  ASSERT_TRUE(FactorizeByElements(&factor).ok());
  v1::IterationPage all;
  v1::IterationPage page;
  int pages = 0;
  do {
    ASSERT_TRUE(Page(factor.handle(), page.next_page_token(), 10000, &page).ok());
    EXPECT_LE(page.sweeps_size() + page.pivots_size() + page.bad_elements_size(), 10000);
    all.MergeFrom(page);
    ++pages;
  } while (!page.next_page_token().empty());
  EXPECT_EQ(pages, 3);
  EXPECT_EQ(all.sections(), kOrder);
  ASSERT_EQ(all.sweeps_size(), kSweeps);
  ASSERT_EQ(all.pivots_size(), kOrder);
  ASSERT_EQ(all.bad_elements_size(), kOrder);
  const auto& iterations = factor.iterations();
  EXPECT_EQ(std::accumulate(all.sweeps().begin(), all.sweeps().end(), int64_t{0}),
            iterations.total_sweeps());
  EXPECT_EQ(std::accumulate(all.pivots().begin(), all.pivots().end(), int64_t{0}),
            iterations.total_pivots());
  EXPECT_TRUE(
      std::equal(iterations.sweeps().begin(), iterations.sweeps().end(), all.sweeps().begin()));
}

TEST_F(IterationsTest, TheVariantThatRanIsInTheReply) {
  StartServer();
  v1::Factor factor;
  ASSERT_TRUE(FactorizeByElements(&factor).ok());
  EXPECT_EQ(factor.iterations().variant(), v1::METHOD_VARIANT_FAST);
  EXPECT_EQ(factor.iterations().total_bad_elements(), kOrder);  // with partial pivoting

  v1::FactorizeHeader header;
  *header.mutable_matrix() = Dense(kOrder, kOrder);
  header.mutable_options()->set_algorithm(v1::ALGORITHM_ICMPP);
  v1::MethodParameters& parameters = *header.mutable_options()->mutable_parameters();
  parameters.set_variant(v1::METHOD_VARIANT_PUBLISHED);
  ASSERT_TRUE(Factorize(header, Bytes(Matrix(kOrder)), &factor).ok());
  const v1::Iterations& iterations = factor.iterations();
  EXPECT_EQ(iterations.variant(), v1::METHOD_VARIANT_PUBLISHED);
  EXPECT_EQ(iterations.section_size(), kOrder);
  EXPECT_EQ(iterations.bad_elements_size(), 1);
  EXPECT_GE(iterations.total_bad_elements(), iterations.total_pivots());
  const int64_t exact = iterations.total_sweeps();

  parameters.set_absolute_tolerance(1);
  ASSERT_TRUE(Factorize(header, Bytes(Matrix(kOrder)), &factor).ok());
  EXPECT_LT(factor.iterations().total_sweeps(), exact);

  parameters.set_absolute_tolerance(-1);
  EXPECT_EQ(Factorize(header, Bytes(Matrix(kOrder)), &factor).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  parameters.set_absolute_tolerance(0);
  parameters.set_variant(static_cast<v1::MethodVariant>(77));
  const grpc::Status unknown = Factorize(header, Bytes(Matrix(kOrder)), &factor);
  EXPECT_EQ(unknown.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(unknown.error_message(), HasSubstr("header.options.parameters.variant"));
}

TEST_F(IterationsTest, PagesOfAReplacedVersionAreRefused) {
  StartServer();
  v1::Factor factor;
  ASSERT_TRUE(FactorizeByElements(&factor).ok());
  v1::IterationPage page;
  ASSERT_TRUE(Page(factor.handle(), "", 10, &page).ok());
  const std::string token = page.next_page_token();
  ASSERT_TRUE(FactorizeByElements(&factor, factor.handle()).ok());
  const grpc::Status status = Page(factor.handle(), token, 10, &page);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("replaced"));
  for (const char* bad : {"x", "1", "1.", "1.-2", "0.5", "1.2.3"}) {
    EXPECT_EQ(Page(factor.handle(), bad, 10, &page).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT)
        << bad;
  }
}

TEST_F(IterationsTest, OtherMethodsHaveNoIterations) {
  StartServer();
  v1::Factor factor;
  ASSERT_TRUE(Factorize(10, &factor).ok());
  v1::IterationPage page;
  EXPECT_EQ(Page(factor.handle(), "", 0, &page).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(IterationsTest, TheCountsAreChargedAndDroppedFirstUnderPressure) {
  StartServer();
  v1::Factor factor;
  ASSERT_TRUE(FactorizeByElements(&factor).ok());
  constexpr size_t kBytes = (kSweeps + kOrder) * sizeof(int64_t);
  const size_t reserved = Idle().host_reserved;
  EXPECT_GE(reserved, kBytes);
  EXPECT_LT(reserved, kBytes + kBytes / 4);
  {
    const auto all = core().engine.cache.ReserveOnHost(core().engine.devices.host_budget().limit());
    ASSERT_TRUE(all.ok()) << all.status();
  }
  v1::IterationPage page;
  const grpc::Status status = Page(factor.handle(), "", 0, &page);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("dropped"));
  Solved solved;
  EXPECT_TRUE(Solve(factor.handle(), std::vector<double>(kOrder, 1.0), &solved).ok());
  WaitUntil([this] { return Held().host_reserved == 0; }, "reply gone");
}

}  // namespace
}  // namespace crout::testing::iterations_test
