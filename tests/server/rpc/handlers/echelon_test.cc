// SPDX-License-Identifier: Apache-2.0

// Tests ReduceToEchelonForm over RPC: the form, its rank, memory, and errors.
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "tests/server/rpc/fixture.h"
#include "tests/support/matrices/gallery.h"

namespace crout::testing::echelon_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RpcEchelonTest : public RpcTest {
 protected:
  using Header = v1::ReduceToEchelonFormHeader;
  struct Answer {
    grpc::Status status;
    v1::DenseSpec form;
    v1::EchelonFormResult result;
    std::string data;
    int chunks = 0;
  };

  static Header MakeHeader(int64_t rows, int64_t cols) {
    Header header;
    *header.mutable_matrix() = Dense(rows, cols);
    return header;
  }

  Answer Reduce(const Header& header, const std::string& data) {
    grpc::ClientContext context;
    auto stream = stub().ReduceToEchelonForm(&context);
    v1::ReduceToEchelonFormRequest request;
    *request.mutable_header() = header;
    request.set_data(data);
    stream->Write(request);
    stream->WritesDone();
    Answer answer;
    v1::ReduceToEchelonFormResponse response;
    while (stream->Read(&response)) {
      if (response.has_header()) answer.form = response.header().form();
      if (response.has_result()) answer.result = response.result();
      answer.chunks += !response.data().empty();
      answer.data += response.data();
    }
    answer.status = stream->Finish();
    return answer;
  }
};

TEST_F(RpcEchelonTest, ReturnsTheFormAndCachesNothing) {
  StartServer();
  const Answer answer = Reduce(MakeHeader(2, 3), Bytes({1, 2, 2, 4, 3, 5}));
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.data, Bytes({1, 0, 2, 0, 0, 1}));
  EXPECT_EQ(answer.form.rows(), 2);
  EXPECT_EQ(answer.form.cols(), 3);
  EXPECT_EQ(answer.form.dtype(), v1::DTYPE_FLOAT64);
  EXPECT_EQ(answer.result.rank(), 2);
  EXPECT_THAT(answer.result.pivot_columns(), ElementsAre(0, 2));
  EXPECT_EQ(answer.result.tolerance(), 3 * 0x1p-52 * 11);
  EXPECT_EQ(answer.result.least_pivot(), 0.5);
  EXPECT_TRUE(answer.result.has_largest_rejected());
  EXPECT_EQ(answer.result.largest_rejected(), 0);
  EXPECT_EQ(answer.result.pivot_growth(), 1);
  EXPECT_THAT(answer.result.warnings(), IsEmpty());
  EXPECT_EQ(answer.result.device(), "cuda:0");
  EXPECT_GT(answer.result.timings().total_seconds(), 0);
  ExpectHeldSoon(Holdings());
}

TEST_F(RpcEchelonTest, WarnsOfGrowth) {
  StartServer();
  const Answer answer = Reduce(MakeHeader(60, 60), Bytes(GalleryNamed("gfpp").make(60)));
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_NEAR(answer.result.pivot_growth(), 0x1p59, 1e-13 * 0x1p59);
  EXPECT_THAT(answer.result.warnings(), ElementsAre(v1::WARNING_POOR_ECHELON_FORM));
}

TEST_F(RpcEchelonTest, AcceptsRowsTextAugmentedColumnsAndATolerance) {
  StartServer();
  Header header = MakeHeader(2, 3);
  header.mutable_matrix()->mutable_dense()->set_layout(v1::LAYOUT_ROW_MAJOR);
  header.set_augmented_columns(1);
  Answer answer = Reduce(header, Bytes({1, 2, 3, 2, 4, 5}));
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.data, Bytes({1, 2, 2.5, 0, 0, 0.5}));
  EXPECT_EQ(answer.form.layout(), v1::LAYOUT_ROW_MAJOR);
  EXPECT_THAT(answer.result.pivot_columns(), ElementsAre(0));

  Header text;
  text.mutable_matrix()->mutable_matrix_market()->set_dtype(v1::DTYPE_FLOAT64);
  text.set_tolerance(1);
  answer = Reduce(text, "%%MatrixMarket matrix coordinate real general\n1 3 2\n1 1 1\n1 3 2\n");
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.data, Bytes({0, 0, 1}));
  EXPECT_THAT(answer.result.pivot_columns(), ElementsAre(2));
  EXPECT_EQ(answer.result.tolerance(), 1);
}

TEST_F(RpcEchelonTest, ManyChunksAndEmptyMatrices) {
  constexpr int64_t kRows = 500;
  constexpr int64_t kCols = 700;
  StartServer();
  std::vector<double> a(kRows * kCols, 0.0);
  for (int64_t i = 0; i < kRows; ++i) a[i + i * kRows] = 2;
  a[(kCols - 1) * kRows] = 4;
  Answer answer = Reduce(MakeHeader(kRows, kCols), Bytes(a));
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.result.rank(), kRows);
  EXPECT_GE(answer.chunks, 2);
  for (double& x : a) x /= 2;
  EXPECT_EQ(answer.data, Bytes(a));
  for (const auto& [rows, cols] : {std::pair{0, 0}, {0, 3}, {3, 0}}) {
    answer = Reduce(MakeHeader(rows, cols), "");
    ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
    EXPECT_EQ(answer.result.rank(), 0);
    EXPECT_THAT(answer.result.pivot_columns(), IsEmpty());
  }
  ExpectHeldSoon(Holdings());
}

TEST_F(RpcEchelonTest, RefusesHostileRequests) {
  StartServer();
  constexpr auto kInvalid = grpc::StatusCode::INVALID_ARGUMENT;
  const std::pair<std::string, std::function<void(Header*)>> wrong[] = {
      {"augmented_columns", [](Header* h) { h->set_augmented_columns(-1); }},
      {"augmented_columns", [](Header* h) { h->set_augmented_columns(3); }},
      {"augmented_columns", [](Header* h) { h->set_augmented_columns(int64_t{1} << 62); }},
      {"tolerance", [](Header* h) { h->set_tolerance(-1); }},
      {"tolerance", [](Header* h) { h->set_tolerance(NAN); }},
      {"tolerance", [](Header* h) { h->set_tolerance(INFINITY); }},
      {"rows", [](Header* h) { *h->mutable_matrix() = Dense(-1, 2); }},
      {"matrix", [](Header* h) { *h->mutable_matrix() = Dense(int64_t{1} << 40, 1); }},
      {"matrix", [](Header* h) { h->clear_matrix(); }},
      {"device", [](Header* h) { h->set_device("tpu"); }},
  };
  for (const auto& [field, ask] : wrong) {
    Header header = MakeHeader(2, 2);
    ask(&header);
    const Answer answer = Reduce(header, Bytes({1, 0, 0, 1}));
    EXPECT_EQ(answer.status.error_code(), kInvalid) << field << answer.status.error_message();
    EXPECT_THAT(answer.status.error_message(), HasSubstr(field));
  }
  EXPECT_EQ(Reduce(MakeHeader(2, 2), Bytes({1, 0, 0})).status.error_code(), kInvalid);
  EXPECT_EQ(Reduce(MakeHeader(2, 2), Bytes({1, 0, 0, 1, 1})).status.error_code(), kInvalid);
  const Answer nan = Reduce(MakeHeader(2, 2), Bytes({1, 0, NAN, 1}));
  EXPECT_EQ(nan.status.error_code(), kInvalid);
  EXPECT_THAT(nan.status.error_message(), HasSubstr("row 0, column 1"));
  Header exact = MakeHeader(1, 2);
  exact.set_tolerance(0);
  EXPECT_THAT(Reduce(exact, Bytes({1e-300, 1e300})).status.error_message(),
              HasSubstr("exceeds the range"))
      << "the pivot is as it came, however large its neighbour";
  ExpectHeldSoon(Holdings());
}

TEST_F(RpcEchelonTest, ADeviceWithoutSuchAMethodRefusesTheCall) {
  StartServer({.register_more = [](Catalogue& catalogue) { catalogue.echelon_reducer.reset(); }});
  EXPECT_EQ(Reduce(MakeHeader(1, 1), Bytes({1})).status.error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

}  // namespace
}  // namespace crout::testing::echelon_test
