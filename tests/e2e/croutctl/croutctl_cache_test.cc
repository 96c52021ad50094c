// SPDX-License-Identifier: Apache-2.0

// Tests croutctl list, info, renew and release, and names in place of handles.
#include "tests/e2e/croutctl/croutctl.h"

namespace crout::e2e::croutctl_cache_test {
namespace {

TEST_F(CroutctlTest, ListInfoRenewReleaseRefactor) {
  const std::string handle = Factor();
  EXPECT_EQ(RunJson({"list"})["factors"].size(), 1u);
  EXPECT_EQ(RunJson({"list", "--name=nobody"})["factors"].size(), 0u);
  EXPECT_EQ(RunJson({"list", "--tenant=other"})["factors"].size(), 0u);
  EXPECT_EQ(RunJson({"describe", handle})["handle"], handle);
  EXPECT_THAT(RunJson({"renew", handle, "--lease=2h"})["lease_expire_time"].get<std::string>(),
              ::testing::MatchesRegex("20..-..-..T..:..:...*Z"));
  EXPECT_EQ(RunJson({"refactor", handle, matrix_})["version"], 2);
  EXPECT_EQ(RunJson({"factor", matrix_, "--from=" + handle})["version"], 3);
  EXPECT_EQ(RunJson({"solve", handle, "--ones"})["factor_version"], 3);
  EXPECT_EQ(RunJson({"release", handle})["released"], true);
  EXPECT_EQ(RunJson({"list"})["factors"].size(), 0u);
}

TEST_F(CroutctlTest, AFactorIsPinnedAndUnpinned) {
  EXPECT_EQ(RunJson({"factor", matrix_, "--name=a", "--pin"})["pinned"], true);
  RunJson({"renew", "a", "--unpin"});
  EXPECT_EQ(RunJson({"describe", "a"})["pinned"], false);
  RunJson({"renew", "a", "--pin"});
  EXPECT_EQ(RunJson({"describe", "a"})["pinned"], true);
  EXPECT_GT(RunJson({"status"})["tenants"][0]["pinned_bytes"], 0);
  EXPECT_EQ(daemon_.Ctl({"renew", "a", "--pin", "--unpin"}).exit_code, 2);
}

TEST_F(CroutctlTest, ANameStandsForTheNewestFactorOfIt) {
  const std::string older = RunJson({"factor", matrix_, "--name=demo"})["handle"];
  EXPECT_EQ(RunJson({"describe", "demo"})["handle"], older);
  EXPECT_LT(RunJson({"solve", "demo", "--ones"})["backward_error"], 1e-15);
  EXPECT_EQ(RunJson({"refactor", "demo", matrix_})["version"], 2);
  EXPECT_EQ(RunJson({"factor", matrix_, "--from=demo"})["handle"], older);
  EXPECT_EQ(RunJson({"renew", "demo"})["handle"], older);
  const std::string newer = RunJson({"factor", matrix_, "--name=demo"})["handle"];
  const Finished info = daemon_.Ctl({"describe", "demo", "--json"});
  EXPECT_EQ(Json::parse(info.output)["handle"], newer);
  EXPECT_EQ(Json::parse(info.errors)["warning"],
            "2 factors are named 'demo'; using the newest, " + newer);
  EXPECT_EQ(Json::parse(daemon_.Ctl({"release", "demo", "--json"}).output)["handle"], newer);
  EXPECT_EQ(RunJson({"release", "demo"})["handle"], older);
  const Finished gone = daemon_.Ctl({"describe", "demo"});
  EXPECT_EQ(gone.exit_code, 11);
  EXPECT_THAT(gone.errors, ::testing::HasSubstr("no factor is named 'demo': it was never created"));
  EXPECT_EQ(daemon_.Ctl({"describe", ""}).exit_code, 12);
}

TEST_F(CroutctlTest, AHandleTakesPrecedenceOverAName) {
  const std::string handle = Factor();
  const std::string other = RunJson({"factor", matrix_, "--name=" + handle})["handle"];
  EXPECT_EQ(RunJson({"describe", handle})["handle"], handle);
  EXPECT_EQ(RunJson({"describe", handle})["name"], "");
  EXPECT_NE(other, handle);
}

TEST_F(CroutctlTest, SeveralFactorsAreRenewedAndReleasedAtOnce) {
  const std::string first = Factor(), second = RunJson({"factor", matrix_, "--name=b"})["handle"];
  const Json renewed = RunJson({"renew", first, "b", "--lease=2h"})["factors"];
  ASSERT_EQ(renewed.size(), 2u);
  EXPECT_EQ(renewed[0]["handle"], first);
  EXPECT_EQ(renewed[1]["handle"], second);
  // The other factors are released even if some are missing.
  const Finished released = daemon_.Ctl({"release", first, "nobody", "nothing", "b", "--json"});
  EXPECT_EQ(released.exit_code, 11);
  EXPECT_EQ(Json::parse(released.output)["factors"].size(), 2u);
  EXPECT_THAT(released.errors, ::testing::HasSubstr("'nobody'"));
  EXPECT_THAT(released.errors, ::testing::HasSubstr("'nothing'"));
  EXPECT_EQ(RunJson({"list"})["factors"].size(), 0u);
}

}  // namespace
}  // namespace crout::e2e::croutctl_cache_test
