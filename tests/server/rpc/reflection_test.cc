// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/standard_services.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.pb.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "crout/v1/factorization_service.pb.h"
#include "grpcpp/support/status.h"

namespace crout::reflection_test {
namespace {

using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;
using ::testing::UnorderedElementsAreArray;

ServerReflectionResponse Query(const ServerReflectionRequest& request) {
  return Reflect(request, {"a.Service"});
}

// Returns the names of the files in a response, in order.
std::vector<std::string> FilesIn(const ServerReflectionResponse& response) {
  std::vector<std::string> names;
  for (const std::string& bytes : response.file_descriptor_response().file_descriptor_proto()) {
    google::protobuf::FileDescriptorProto file;
    EXPECT_TRUE(file.ParseFromString(bytes));
    names.push_back(file.name());
  }
  return names;
}

TEST(ReflectionTest, ListsServicesAndRepeatsTheQuestion) {
  ServerReflectionRequest request;
  request.set_host("here");
  request.set_list_services("");
  const ServerReflectionResponse response = Query(request);
  ASSERT_EQ(response.list_services_response().service_size(), 1);
  EXPECT_EQ(response.list_services_response().service(0).name(), "a.Service");
  EXPECT_EQ(response.valid_host(), "here");
  EXPECT_EQ(response.original_request().host(), "here");
}

TEST(ReflectionTest, FilesAreReturnedOnceWithTheirImports) {
  const std::string service = v1::SolveRequest::descriptor()->file()->name();
  const std::vector<std::string> all = {service, "crout/v1/factor.proto", "crout/v1/matrix.proto",
                                        "google/protobuf/duration.proto",
                                        "google/protobuf/timestamp.proto"};
  ServerReflectionRequest request;
  request.set_file_by_filename(service);
  const std::vector<std::string> files = FilesIn(Query(request));
  EXPECT_THAT(files, UnorderedElementsAreArray(all));
  EXPECT_EQ(files.front(), service) << "what was asked for comes first";
  for (const char* const symbol :
       {"crout.v1.FactorizationService", "crout.v1.FactorizationService.Solve",
        "crout.v1.SolveRequest"}) {
    request.set_file_containing_symbol(symbol);
    EXPECT_EQ(FilesIn(Query(request)), files) << symbol;
  }
}

TEST(ReflectionTest, UnknownNamesAreReported) {
  ServerReflectionRequest request;
  EXPECT_EQ(Query(request).error_response().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  std::vector<ServerReflectionRequest> unknown(4);
  unknown[0].set_file_by_filename("/etc/passwd");
  unknown[1].set_file_containing_symbol("crout.v1.None");
  unknown[2].mutable_file_containing_extension()->set_containing_type("crout.v1.Factor");
  unknown[3].set_all_extension_numbers_of_type("crout.v1.None");
  for (const ServerReflectionRequest& each : unknown) {
    EXPECT_EQ(Query(each).error_response().error_code(), grpc::StatusCode::NOT_FOUND)
        << each.ShortDebugString();
  }
}

TEST(ReflectionTest, ExtensionsOfATypeThatHasNone) {
  ServerReflectionRequest request;
  request.set_all_extension_numbers_of_type("crout.v1.Factor");
  const auto numbers = Query(request).all_extension_numbers_response();
  EXPECT_EQ(numbers.base_type_name(), "crout.v1.Factor");
  EXPECT_THAT(numbers.extension_number(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace crout::reflection_test
