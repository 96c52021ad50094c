// SPDX-License-Identifier: Apache-2.0

// Tests SharedStore with the S3 server that s3_server.py starts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>

#include "server/replicas/shared_store.h"
#include "server/s3/client.h"
#include "tests/support/status_matchers.h"

namespace crout {
namespace {

using ::testing::ElementsAre;
using testing::FailsWith;
using ::testing::IsEmpty;
using ::testing::SizeIs;

absl::StatusOr<std::unique_ptr<SharedStore>> OpenStore(const std::string& name) {
  auto client = S3Client::Create({.endpoint = std::getenv("CROUT_S3_ENDPOINT"),
                                  .region = "us-east-1",
                                  .bucket = "factors",
                                  .path_style = true,
                                  .credentials = FindS3Credentials().value()});
  if (!client.ok()) return client.status();
  const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  return SharedStore::Open(
      *std::move(client),
      {.prefix = test + "/", .name = name, .duration = std::chrono::minutes(10)});
}

TEST(S3LeasesTest, AReleasedFolderIsAdopted) {
  ASSERT_OK_AND_ASSIGN(auto a, OpenStore("a"));
  const std::string folder = a->home();
  EXPECT_EQ(a->List(folder)->objects.size(), 0u);
  const std::string text(10'000, 'x');
  const std::span<const std::byte> bytes[] = {std::as_bytes(std::span(text)),
                                              std::as_bytes(std::span("end", 3))};
  ASSERT_OK_AND_ASSIGN(const StoredObject object, a->Put(folder, "h-1", bytes, absl::Now()));
  ASSERT_OK(a->SetLeaseEnd(object, absl::FromUnixSeconds(2'000'000'000)));
  ASSERT_OK_AND_ASSIGN(auto b, OpenStore("b"));
  // The tags of a list are those of single objects, so that an unchanged lease is not read again.
  EXPECT_THAT(*b->leases().Scan(), IsEmpty());
  EXPECT_EQ(b->leases().LeaseOf(folder)->owner, "a");
  a->leases().Renew();
  EXPECT_TRUE(a->Holds(folder));
  a.reset();
  EXPECT_THAT(*b->leases().Scan(), ElementsAre(folder));
  ASSERT_OK(b->leases().Adopt(folder));
  EXPECT_EQ(b->leases().Epoch(folder).value(), 2);
  ASSERT_OK_AND_ASSIGN(const ObjectList list, b->List(folder));
  ASSERT_THAT(list.objects, SizeIs(1));
  EXPECT_EQ(list.objects[0].bytes, text.size() + 3);
  EXPECT_EQ(absl::ToUnixSeconds(list.objects[0].lease_end), 2'000'000'000);
  ASSERT_OK_AND_ASSIGN(const auto reader, b->Open(list.objects[0]));
  std::string end(5, ' ');
  ASSERT_OK(reader->ReadAt(text.size() - 2, std::as_writable_bytes(std::span(end))));
  EXPECT_EQ(end, "xxend");
  EXPECT_THAT(b->List(folder)->objects, SizeIs(1)) << "the list of the adoption counts";
  ASSERT_OK(b->Quarantine(list.objects[0]));
  EXPECT_EQ(b->List(folder)->quarantined, 1);
  ASSERT_OK(b->Remove(list.objects[0]));
}

TEST(S3LeasesTest, ALeaseIsLostToAnotherWriter) {
  ASSERT_OK_AND_ASSIGN(auto a, OpenStore("a"));
  ASSERT_OK_AND_ASSIGN(auto b, OpenStore("b"));
  const std::string folder = a->home();
  a->leases().Release(folder);
  ASSERT_OK(b->leases().Scan());
  ASSERT_OK(b->leases().Adopt(folder));
  EXPECT_THAT(a->Put(folder, "h-1", {}, absl::Now()),
              FailsWith(absl::StatusCode::kAborted, "another server"));
  a->leases().Renew();
  EXPECT_TRUE(a->Holds(a->home()));
}

}  // namespace
}  // namespace crout
