// SPDX-License-Identifier: Apache-2.0

// Tests tokens signed by an authority, and forged or invalid ones.
#include "server/auth/token_keys.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/auth/identities.h"
#include "server/auth/identity_reloader.h"
#include "tests/support/peers/token_authority.h"

namespace crout::token_keys_test {
namespace {

using ::crout::testing::EncodeBase64Url;
using ::crout::testing::SignByHmac;
using ::crout::testing::TokenAuthority;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kClaims[] =
    R"({"iss":"https://sso.example","aud":"crout","sub":"alice","exp":2000,"nbf":1000})";
constexpr char kPerson[] = "[alice]\nsubject = alice\ntenants = a\nroles = solve\n";
const SignedTokenSettings kSettings = {"", "https://sso.example", "crout"};

absl::Time At(int seconds) { return absl::FromUnixSeconds(seconds); }

// All tests share one key of each kind, because generating keys is slow.
const TokenAuthority& Rsa() {
  static const TokenAuthority authority("rsa", "RS256");
  return authority;
}
const TokenAuthority& Ec() {
  static const TokenAuthority authority("ec", "ES256");
  return authority;
}

std::string Set(const std::vector<std::string>& keys) {
  std::string text = "{\"keys\":[";
  for (const std::string& key : keys) absl::StrAppend(&text, text.back() == '[' ? "" : ",", key);
  return text + "]}";
}

std::string Refusal(const std::string& text) {
  const auto parsed = TokenKeys::Parse(text);
  return parsed.ok() ? "taken" : std::string(parsed.status().message());
}

class TokenKeysTest : public ::testing::Test {
 protected:
  bool Takes(const std::string& token) const { return keys_.Verify(token).has_value(); }
  const TokenKeys keys_ = TokenKeys::Parse(Set({Rsa().Jwk(), Ec().Jwk()})).value();
};

TEST_F(TokenKeysTest, AcceptsTokensThatItsKeysSigned) {
  for (const TokenAuthority* authority : {&Rsa(), &Ec()}) {
    const auto token = keys_.Verify(authority->Sign(kClaims));
    ASSERT_TRUE(token) << authority->Header();
    EXPECT_TRUE(keys_.Has(token->key));
    EXPECT_EQ(token->issuer, "https://sso.example");
    EXPECT_THAT(token->audiences, ElementsAre("crout"));
    EXPECT_EQ(token->subject, "alice");
    EXPECT_EQ(token->begin, At(1000));
    EXPECT_EQ(token->end, At(2000));
  }
}

TEST(TokenKeySetTest, ReadsTheExampleOfTheStandard) {
  // The key is from RFC 7515, A.3.
  EXPECT_EQ(Refusal(Set({R"({"kty":"EC","crv":"P-256","kid":"a3",
      "x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
      "y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"})"})),
            "taken");
}

TEST_F(TokenKeysTest, TheKeyDeterminesTheAlgorithm) {
  const std::string none = absl::StrCat(EncodeBase64Url(R"({"alg":"none","kid":"rsa"})"), ".",
                                        EncodeBase64Url(kClaims), ".");
  EXPECT_FALSE(Takes(none));
  EXPECT_FALSE(Takes(SignByHmac(R"({"alg":"HS256","kid":"rsa"})", kClaims, Rsa().Pem())));
  EXPECT_FALSE(Takes(SignByHmac(Rsa().Header(), kClaims, Rsa().Pem())));
  EXPECT_FALSE(Takes(Rsa().Sign(R"({"alg":"RS512","kid":"rsa"})", kClaims)));
  EXPECT_FALSE(Takes(Rsa().Sign(R"({"alg":"RS256","kid":"ec"})", kClaims)));
  EXPECT_FALSE(Takes(Rsa().Sign(R"({"alg":"RS256"})", kClaims))) << "which key?";
  EXPECT_FALSE(Takes(Rsa().Sign(R"({"alg":"RS256","kid":"other"})", kClaims)));
  EXPECT_FALSE(Takes(Rsa().Sign(R"({"alg":"RS256","kid":"rsa","crit":["exp"]})", kClaims)));
  EXPECT_FALSE(Takes(Rsa().Sign(R"({"alg":"none","alg":"RS256","kid":"rsa"})", kClaims)));
  EXPECT_TRUE(Takes(Rsa().Sign(R"({"alg":"RS256","kid":"rsa","typ":"JWT"})", kClaims)));
}

TEST_F(TokenKeysTest, OtherKeysAndTextsAreRejected) {
  EXPECT_FALSE(Takes(TokenAuthority("ec").Sign(kClaims))) << "another's key of the same name";
  for (const TokenAuthority* authority : {&Rsa(), &Ec()}) {
    const std::string token = authority->Sign(kClaims);
    const std::string other = absl::StrReplaceAll(kClaims, {{"alice", "admin"}});
    EXPECT_FALSE(
        Takes(absl::StrReplaceAll(token, {{EncodeBase64Url(kClaims), EncodeBase64Url(other)}})));
    EXPECT_FALSE(Takes(token.substr(0, token.size() - 1)));
    EXPECT_FALSE(Takes(token.substr(0, token.rfind('.') + 1)));
    EXPECT_FALSE(Takes(token + "A"));
    EXPECT_FALSE(Takes(token + "="));
    EXPECT_FALSE(Takes(token + "."));
    EXPECT_FALSE(Takes(" " + token));
  }
  const std::string zeros(64, 0);  // r = s = 0, as in CVE-2022-21449
  EXPECT_FALSE(Takes(absl::StrCat(EncodeBase64Url(Ec().Header()), ".", EncodeBase64Url(kClaims),
                                  ".", EncodeBase64Url(zeros))));
}

TEST_F(TokenKeysTest, ClaimsMustHaveTheirTypesAndOccurOnce) {
  const auto with = [](const std::string& from, const std::string& to) {
    return Ec().Sign(absl::StrReplaceAll(kClaims, {{from, to}}));
  };
  EXPECT_TRUE(Takes(with(R"("crout")", R"(["other","crout"])")));
  EXPECT_TRUE(Takes(with(R"(,"nbf":1000)", "")));
  EXPECT_TRUE(Takes(with("2000", "2000.5")));
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {R"("sub":"alice",)", ""},
           {R"("sub":"alice",)", R"("sub":"alice","sub":"admin",)"},
           {R"("alice")", "7"},
           {R"("crout")", "[]"},
           {R"("crout")", R"(["crout",1])"},
           {R"("crout")",
            "[" + absl::StrJoin(std::vector<std::string>(33, R"("crout")"), ",") + "]"},
           {R"("exp":2000,)", ""},
           {"2000", R"("2000")"},
           {"2000", "1e300"},
           {"2000", "-1"},
           {"1000", "null"},
           {R"("iss")", R"("ISS")"},
           {"{", "[{"}}) {
    EXPECT_FALSE(Takes(with(from, to))) << to;
  }
}

TEST_F(TokenKeysTest, HugeTokensAreNotRead) {
  const auto padded = [](size_t bytes) {
    const std::string claims(kClaims);
    return Ec().Sign(absl::StrCat(claims.substr(0, claims.size() - 1), R"(,"pad":")",
                                  std::string(bytes, 'x'), "\"}"));
  };
  EXPECT_TRUE(Takes(padded(4000)));
  EXPECT_FALSE(Takes(padded(TokenKeys::kMaxTokenBytes)));
  EXPECT_FALSE(Takes(Ec().Sign(std::string(3000, '['))));
}

TEST(TokenKeySetTest, MistakesAreReported) {
  const std::string rsa = Rsa().Jwk();
  const std::string ec = Ec().Jwk();
  const std::string small = TokenAuthority("small", "RS256", 1024).Jwk();
  const std::string secret = absl::StrReplaceAll(ec, {{R"("kid":"ec")", R"("kid":"ec","d":"AA")"}});
  const std::string nameless = absl::StrReplaceAll(ec, {{R"("kid":"ec",)", ""}});
  const std::string off_curve = R"({"kid":"z","kty":"EC","crv":"P-256","x":")" +
                                EncodeBase64Url(std::string(32, 1)) + R"(","y":")" +
                                EncodeBase64Url(std::string(32, 1)) + "\"}";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "is not a JSON object"},
      {"{}", "an array \"keys\""},
      {Set({rsa, ec}).substr(0, 300), "is not a JSON object"},
      {R"({"keys":[],"keys":[]})", "duplicate member names"},
      {Set({}), "no key for RS256 or ES256"},
      {Set({"7"}), "key 1 of \"keys\" is not an object"},
      {Set({rsa, rsa}), "key 2 of \"keys\" has the same \"kid\" as another"},
      {Set({rsa, secret}), "key 2 of \"keys\" is a private key"},
      {Set({R"({"kty":"oct","kid":"o","k":"AAAA"})"}), "is a private key"},
      {Set({nameless}), "key 1 of \"keys\" has no \"kid\""},
      {Set({small}), "is not an RSA key of 2048 to 4096 bits"},
      {Set({off_curve}), "or a P-256 EC key"},
      {Set({R"({"kty":"OKP","crv":"Ed25519","kid":"e"})"}), "no key for RS256 or ES256"},
      {Set({absl::StrReplaceAll(rsa, {{"\"sig\"", "\"enc\""}})}), "no key for RS256 or ES256"}};
  for (const auto& [text, message] : cases) EXPECT_THAT(Refusal(text), HasSubstr(message)) << text;
  EXPECT_EQ(Refusal(Set({R"({"kty":"OKP","crv":"Ed25519","kid":"e"})", rsa})), "taken");
}

TEST(SignedTokensTest, IdentitiesValidateTheClaimsOfAToken) {
  Identities identities = ParseIdentities(kPerson).value();
  const std::string token = Ec().Sign(kClaims);
  EXPECT_EQ(identities.Match(identities.Read(token), At(1500)).error,
            CredentialError::kUnknownToken)
      << "no keys were given";
  identities.SetSigned(std::make_shared<TokenKeys>(TokenKeys::Parse(Ec().Jwks()).value()),
                       kSettings);
  const auto judged = [&](const std::string& from, const std::string& to, int seconds) {
    const std::string claims = absl::StrReplaceAll(kClaims, {{from, to}});
    return identities.Match(identities.Read(Ec().Sign(claims)), At(seconds));
  };
  const IdentityMatch good = judged("", "", 1500);
  ASSERT_NE(good.identity, nullptr);
  EXPECT_EQ(good.identity->name, "alice");
  EXPECT_EQ(good.end, At(2030));
  // A token may be up to 30 s early, because clocks differ.
  EXPECT_NE(judged("", "", 970).identity, nullptr);
  EXPECT_EQ(judged("", "", 969).error, CredentialError::kEarlyToken);
  EXPECT_NE(judged("", "", 2029).identity, nullptr);
  EXPECT_EQ(judged("", "", 2030).error, CredentialError::kExpiredToken);
  EXPECT_EQ(judged("\"crout\"", "\"other\"", 1500).error, CredentialError::kForeignToken);
  EXPECT_EQ(judged("sso.", "evil.", 1500).error, CredentialError::kForeignToken);
  EXPECT_EQ(judged("alice", "mallory", 1500).error, CredentialError::kUnknownSubject);
  EXPECT_EQ(identities.Match(identities.Read(Rsa().Sign(kClaims)), At(1500)).error,
            CredentialError::kUnknownToken);
  // A verified token becomes invalid when its key is removed.
  const Credentials read = identities.Read(token);
  identities.SetSigned(std::make_shared<TokenKeys>(TokenKeys::Parse(Rsa().Jwks()).value()),
                       kSettings);
  EXPECT_EQ(identities.Match(read, At(1500)).error, CredentialError::kUnknownToken);
}

TEST(SignedTokensTest, ASubjectBelongsToOneIdentity) {
  const auto twice = ParseIdentities(std::string(kPerson) + "[bob]\nsubject = alice\n");
  EXPECT_THAT(std::string(twice.status().message()),
              HasSubstr("line 6: duplicate subject 'alice'"));
  const auto spaces = ParseIdentities("[bob]\nsubject = a b\n");
  EXPECT_THAT(std::string(spaces.status().message()), HasSubstr("line 2: 'a b' is not a subject"));
}

class KeysFileTest : public ::testing::Test {
 protected:
  ~KeysFileTest() override {
    unlink(identities_.c_str());
    unlink(keys_.c_str());
  }
  static void Write(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
    ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  }
  const std::string identities_ =
      ::testing::TempDir() + "/crout_token_keys." + std::to_string(getpid());
  const std::string keys_ = identities_ + ".jwks";
};

TEST_F(KeysFileTest, IsReloadedWhenItIsValid) {
  Write(identities_, kPerson);
  Write(keys_, "{");
  const SignedTokenSettings settings = {keys_, kSettings.issuer, kSettings.audience};
  EXPECT_THAT(std::string(IdentityReloader::Create(identities_, settings).status().message()),
              HasSubstr("--token-keys: " + keys_ + " is not a JSON object"));
  Write(keys_, Ec().Jwks());
  const auto reloader = IdentityReloader::Create(identities_, settings).value();
  const auto takes = [&](const TokenAuthority& authority) {
    const auto current = reloader->current();
    return current->Match(current->Read(authority.Sign(kClaims)), At(1500)).identity != nullptr;
  };
  EXPECT_TRUE(takes(Ec()));
  EXPECT_FALSE(takes(Rsa()));
  Write(keys_, Rsa().Jwks().substr(0, 200));
  reloader->Refresh();
  EXPECT_TRUE(takes(Ec())) << "half of a file is none";
  EXPECT_TRUE(reloader->keys_state()->refused);
  EXPECT_FALSE(reloader->state().refused);
  Write(keys_, Rsa().Jwks());
  reloader->Refresh();
  EXPECT_FALSE(takes(Ec()));
  EXPECT_TRUE(takes(Rsa()));
  EXPECT_FALSE(reloader->keys_state()->refused);
  Write(identities_, "[alice]\nroles = metrics\n");
  reloader->Refresh();
  EXPECT_FALSE(takes(Rsa())) << "the subject's line is gone";
}

// The file is refused if others can write to it, because its keys decide which tokens are valid.
TEST_F(KeysFileTest, IsRefusedIfOthersMayWriteIt) {
  Write(identities_, kPerson);
  Write(keys_, Ec().Jwks());
  const SignedTokenSettings settings = {keys_, kSettings.issuer, kSettings.audience};
  for (const mode_t bad : {0666, 0664, 0646, 0602, 0620}) {
    ASSERT_EQ(chmod(keys_.c_str(), bad), 0);
    EXPECT_THAT(std::string(IdentityReloader::Create(identities_, settings).status().message()),
                HasSubstr("chmod go-w"))
        << bad;
  }
  ASSERT_EQ(chmod(keys_.c_str(), 0644), 0);
  const auto reloader = IdentityReloader::Create(identities_, settings);
  ASSERT_TRUE(reloader.ok()) << reloader.status();
  ASSERT_EQ(chmod(keys_.c_str(), 0666), 0);
  (*reloader)->Refresh();
  EXPECT_TRUE((*reloader)->keys_state()->refused);
}

}  // namespace
}  // namespace crout::token_keys_test
