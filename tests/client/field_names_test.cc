// SPDX-License-Identifier: Apache-2.0

#include "client/cpp/field_names.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "crout/status.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace crout::client_test::field_names_test {
namespace {

using internal::WithArgumentNames;

TEST(FieldNamesTest, ArgumentsTakeThePlaceOfPaths) {
  for (const auto& [sent, shown] : std::vector<std::pair<const char*, const char*>>{
           {"header.matrix.dense.rows: 3 x 4 is not square", "matrix: 3 x 4 is not square"},
           {"header.matrix: line 3: no value", "matrix: line 3: no value"},
           {"header.rhs: 3 rows", "rhs: 3 rows"},
           {"header.x0: 3 rows", "x0: 3 rows"},
           {"header.matrix.batch.members: too many", "matrices: too many"},
           {"header.rhs.batch_rhs.systems: too many", "rhs: too many"},
           {"header.change.rank.columns: 0", "change: 0"},
           {"header.options.factor_dtype: unknown", "options.factor_dtype: unknown"},
           {"header.options.parameters.block_size: 9", "options.parameters.block_size: 9"},
           {"header.cache.lease: negative", "cache.lease: negative"},
           {"leave header.options.precision. Or not", "leave options.precision. Or not"},
           {"header.keep: beside header.leading_order.",
            "header.keep: beside header.leading_order."},
           {"header: missing", "header: missing"},
           {"the header. It is long", "the header. It is long"},
           {"my_header.matrix", "my_header.matrix"},
           {"a.header.matrix", "a.header.matrix"},
           {"", ""},
       }) {
    EXPECT_EQ(WithArgumentNames(sent), shown);
  }
}

TEST(FieldNamesTest, CodeAndDetailsStay) {
  google::rpc::Status details;
  google::rpc::ErrorInfo info;
  info.set_reason("WHY");
  details.add_details()->PackFrom(info);
  const absl::Status status = internal::ServerStatus(
      {grpc::StatusCode::INVALID_ARGUMENT, "header.rhs: 3 rows", details.SerializeAsString()});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "rhs: 3 rows");
  EXPECT_EQ(Reason(status), "WHY");
  EXPECT_TRUE(internal::ServerStatus(grpc::Status::OK).ok());
}

}  // namespace
}  // namespace crout::client_test::field_names_test
