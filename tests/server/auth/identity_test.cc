// SPDX-License-Identifier: Apache-2.0

// Tests tokens and the identity file.
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/auth/identities.h"
#include "server/auth/identity_reloader.h"
#include "server/auth/token.h"

namespace crout::identity_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

std::string LineOf(const std::string& token) {
  return absl::StrCat("token = ", FormatTokenHash(HashToken(token)));
}

// Returns the name of the identity with these `credentials`, or "" if there is none.
std::string NameOf(const Identities& identities, const Credentials& credentials,
                   absl::Time now = absl::UnixEpoch()) {
  const IdentityMatch found = identities.Match(credentials, now);
  return found.identity == nullptr ? "" : found.identity->name;
}

std::string Refusal(const std::string& text) {
  const auto parsed = ParseIdentities(text);
  return parsed.ok() ? "taken" : std::string(parsed.status().message());
}

TEST(TokenTest, TokensAreRandomAndHashesIdentifyThem) {
  std::set<std::string> tokens;
  for (int i = 0; i < 100; ++i) tokens.insert(MakeToken().value());
  EXPECT_EQ(tokens.size(), 100u);
  EXPECT_THAT(*tokens.begin(), MatchesRegex("crout_[A-Za-z0-9_-]+"));
  EXPECT_EQ(tokens.begin()->size(), 49u);
  // The expected hash is from FIPS 180-2, appendix B.1.
  EXPECT_EQ(FormatTokenHash(HashToken("abc")),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(ParseTokenHash(FormatTokenHash(HashToken("abc"))), HashToken("abc"));
  EXPECT_FALSE(SameHash(HashToken("abc"), HashToken("abd")));
  for (const std::string bad : {"", "sha256:", "sha256:ba78", "md5:ba78"}) {
    EXPECT_FALSE(ParseTokenHash(bad)) << bad;
  }
  std::string no_digit = FormatTokenHash(HashToken("abc"));
  no_digit.back() = 'g';
  EXPECT_FALSE(ParseTokenHash(no_digit));
}

TEST(IdentitiesTest, TokensAndCertificatesIdentifyTheCaller) {
  const auto identities = ParseIdentities(
      absl::StrCat("# all\n[alice]\n", LineOf("a"), "  # the old one\n", LineOf("b"),
                   " until 2027-01-31T00:00:00Z\ntenants = one, two\nroles = solve\n\n"
                   "[bob]\r\ncertificate = spiffe://example.org/bob\r\n",
                   "certificate=Bob.Example.org\ntenants=*\nroles=factor,metrics\n"
                   "[dan]\nsocket = unix\nroles = metrics, rank"));
  ASSERT_TRUE(identities.ok()) << identities.status();
  const absl::Time before = absl::FromUnixSeconds(1801353599);  // 2027-01-30T23:59:59Z
  EXPECT_EQ(NameOf(*identities, {HashToken("a"), {}}), "alice");
  EXPECT_EQ(NameOf(*identities, {HashToken("b"), {}}, before), "alice");
  const auto late = identities->Match({HashToken("b"), {}}, before + absl::Seconds(1));
  EXPECT_EQ(late.identity, nullptr);
  EXPECT_EQ(late.error, CredentialError::kExpiredToken);
  EXPECT_EQ(identities->Match({HashToken("c"), {}}, before).error, CredentialError::kUnknownToken);
  EXPECT_EQ(identities->Match({}, before).error, CredentialError::kNoCredentials);
  EXPECT_EQ(NameOf(*identities, {std::nullopt, {"spiffe://example.org/bob"}}), "bob");
  EXPECT_EQ(NameOf(*identities, {std::nullopt, {"other.example.org", "bob.example.ORG"}}), "bob");
  EXPECT_EQ(NameOf(*identities, {std::nullopt, {"spiffe://example.org/Bob"}}), "");
  EXPECT_EQ(NameOf(*identities, {.on_unix_socket = true}), "dan");
  EXPECT_EQ(NameOf(*identities, {.token = HashToken("c"), .on_unix_socket = true}), "");
  EXPECT_EQ(NameOf(*identities, {HashToken("c"), {"bob.example.org"}}), "")
      << "a wrong token is not made good by a certificate";

  const Identity& alice = identities->all()[0];
  EXPECT_THAT(alice.tenants, ElementsAre("one", "two"));
  EXPECT_TRUE(alice.MayUse("two"));
  EXPECT_FALSE(alice.MayUse("three"));
  EXPECT_TRUE(alice.Has(Role::kSolve));
  EXPECT_FALSE(alice.Has(Role::kFactor));
  const Identity& bob = identities->all()[1];
  EXPECT_TRUE(bob.MayUse("three"));
  EXPECT_TRUE(bob.Has(Role::kSolve)) << "factor includes it";
  EXPECT_TRUE(bob.Has(Role::kMetrics));
  EXPECT_FALSE(bob.Has(Role::kRank));
  EXPECT_FALSE(bob.Has(Role::kAdmin));
  EXPECT_TRUE(identities->all().back().Has(Role::kRank)) << "needs no tenants";
}

TEST(IdentitiesTest, CertificatesOfTwoIdentitiesIdentifyNoCaller) {
  const auto identities = ParseIdentities(
      "[a]\ncertificate = a.example\ntenants = a\nroles = solve\n"
      "[b]\ncertificate = b.example\ntenants = b\nroles = admin\n");
  ASSERT_TRUE(identities.ok()) << identities.status();
  const auto both =
      identities->Match({std::nullopt, {"a.example", "b.example"}}, absl::UnixEpoch());
  EXPECT_EQ(both.identity, nullptr);
  EXPECT_EQ(both.error, CredentialError::kAmbiguousCertificate);
}

TEST(IdentitiesTest, MistakesAreReportedWithTheirLine) {
  const std::string token = LineOf("a");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"roles = solve", "line 1: this line comes before the first [NAME]"},
      {"[a]\nroles", "line 2: 'roles' is neither"},
      {"[a b]", "line 1: '[a b]' is not [NAME]"},
      {"[]", "is not [NAME]"},
      {"[a]\ncolour = red",
       "line 2: 'colour' is not token, subject, certificate, socket, tenants or roles"},
      {"[a]\ntenants = a\nroles = root", "line 3: 'root' is not a role"},
      {"[a]\nroles = metrics\nroles = solve", "line 3: duplicate roles"},
      {"[a]\ntenants = a, b c", "line 2: 'b c' is not a tenant"},
      {"[a]\ntenants = a\ntenants = *", "line 3: duplicate tenants"},
      {"[a]\ntenants = a,", "'' is not a tenant"},
      {"[a]\ntenants = a\n[b]", "line 3: [a] has no line roles"},
      {"[a]\nroles = solve", "line 2: [a] has no line tenants"},
      {"[a]\ntenants = a\nroles = solve\n[a]", "line 4: duplicate section [a]"},
      {"[a]\n" + token + "\n" + token, "line 3: duplicate token"},
      {"[a]\n" + token + " until tomorrow", "line 2: 'tomorrow' is not a time"},
      {"[a]\n" + token + " until infinite-future", "is not a time"},
      {"[a]\n" + token + " for 3h", "line 2: token is not sha256:HASH"},
      {"[a]\ncertificate = *.example.org", "line 2: '*.example.org' is neither a SPIFFE ID"},
      {"[a]\nsocket = tcp", "line 2: 'tcp' is not a socket"},
      {"[a]\nsocket = unix\nsocket = unix", "line 3: duplicate socket = unix"},
      {"[a]\ncertificate = a.b\ncertificate = A.B", "line 3: duplicate certificate 'A.B'"}};
  for (const auto& [text, message] : cases) EXPECT_THAT(Refusal(text), HasSubstr(message)) << text;
  EXPECT_THAT(Refusal("[a]\ntoken = crout_secret"), Not(HasSubstr("secret")));
  EXPECT_EQ(Refusal(""), "taken");
  EXPECT_EQ(Refusal("[scraper]\nroles = metrics"), "taken");
}

class IdentityReloaderTest : public ::testing::Test {
 protected:
  ~IdentityReloaderTest() override { unlink(path_.c_str()); }
  void Write(const std::string& text) const {
    std::ofstream(path_) << text;
    ASSERT_EQ(chmod(path_.c_str(), 0600), 0);
  }
  const std::string path_ = ::testing::TempDir() + "/crout_identities." + std::to_string(getpid());
};

TEST_F(IdentityReloaderTest, UsesValidContentsAndKeepsTheLastValidOnes) {
  Write("[a]\nroles = metrics\n" + LineOf("a") + "\n");
  const auto reloader = IdentityReloader::Create(path_, {});
  ASSERT_TRUE(reloader.ok()) << reloader.status();
  const auto first = (*reloader)->current();
  EXPECT_EQ(NameOf(*first, {HashToken("a"), {}}), "a");
  (*reloader)->Refresh();
  EXPECT_EQ((*reloader)->current(), first) << "nothing has changed";
  Write("[a]\nroles = \n");
  (*reloader)->Refresh();
  EXPECT_EQ((*reloader)->current(), first);
  unlink(path_.c_str());
  (*reloader)->Refresh();
  EXPECT_EQ((*reloader)->current(), first);
  Write("[a]\nroles = metrics\n");
  (*reloader)->Refresh();
  EXPECT_EQ(NameOf(*(*reloader)->current(), {HashToken("a"), {}}), "");
}

// A file that ends within a line is refused, because a truncated line can grant more than the whole
// line: access to a tenant with a shorter name, or a token that never expires.
TEST_F(IdentityReloaderTest, AnIncompleteLineIsRefused) {
  const std::string whole =
      "[a]\nroles = solve\ntenants = one-of-many\n" + LineOf("a") + " until 2027-01-31T00:00:00Z\n";
  Write(whole);
  const auto reloader = IdentityReloader::Create(path_, {}).value();
  for (size_t size = 1; size < whole.size(); ++size) {
    Write(whole.substr(0, size));
    reloader->Refresh();
    const Identity& alice = reloader->current()->all()[0];
    EXPECT_THAT(alice.tenants, ElementsAre("one-of-many")) << size;
    const absl::Time late = absl::FromUnixSeconds(1801353600);
    EXPECT_EQ(NameOf(*reloader->current(), {HashToken("a")}, late), "") << size;
  }
  Write(whole.substr(0, whole.size() - 1));
  EXPECT_THAT(std::string(IdentityReloader::Create(path_, {}).status().message()),
              HasSubstr("may be incomplete"));
}

TEST_F(IdentityReloaderTest, FilesOpenToOtherUsersAreRefused) {
  Write("[a]\nroles = metrics\n");
  for (const mode_t bad : {0604, 0644, 0660, 0602}) {
    ASSERT_EQ(chmod(path_.c_str(), bad), 0);
    EXPECT_THAT(std::string(IdentityReloader::Create(path_, {}).status().message()),
                HasSubstr("--identities: " + path_ + " has mode"))
        << bad;
  }
  ASSERT_EQ(chmod(path_.c_str(), 0640), 0);
  EXPECT_TRUE(IdentityReloader::Create(path_, {}).ok());
  Write("[a]\nroles = x\n");
  EXPECT_THAT(std::string(IdentityReloader::Create(path_, {}).status().message()),
              HasSubstr(path_ + " line 2: 'x' is not a role"));
}

}  // namespace
}  // namespace crout::identity_test
