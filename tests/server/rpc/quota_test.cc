// SPDX-License-Identifier: Apache-2.0

// Tests refusals of calls by the quotas of their tenant, and the file of --quotas.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/server/rpc/fixture.h"
#include "tests/server/scrape.h"

namespace crout::testing::quota_test {
namespace {

using ::testing::HasSubstr;

class RpcQuotaTest : public RpcTest {
 protected:
  RpcQuotaTest() {
    char path[] = "/tmp/crout_quotas_XXXXXX";
    close(mkstemp(path));
    path_ = path;
  }
  void TearDown() override {
    RpcTest::TearDown();
    unlink(path_.c_str());
  }

  // Replaces the file as operators should: under another name, then renamed.
  void WriteQuotas(const std::string& text) {
    const std::string next = path_ + ".next";
    std::ofstream(next) << text;
    chmod(next.c_str(), 0644);
    ASSERT_EQ(rename(next.c_str(), path_.c_str()), 0);
  }
  void StartWithQuotas(const std::string& text) {
    WriteQuotas(text);
    Config config = SmallConfig();
    config.quotas_file = path_;
    config.limits.queue_capacity = config.pool.scheduler.queue_capacity = 16;
    StartServer({}, config);
  }

  // Details of a refusal.
  struct Refusal {
    std::string reason;
    std::string subject;
    std::string description;
    std::optional<double> retry_seconds;
  };
  static Refusal RefusalIn(const grpc::Status& status) {
    Refusal refusal;
    google::rpc::Status details;
    EXPECT_TRUE(details.ParseFromString(status.error_details()));
    for (const auto& any : details.details()) {
      google::rpc::ErrorInfo info;
      google::rpc::QuotaFailure failure;
      google::rpc::RetryInfo retry;
      if (any.UnpackTo(&info)) refusal.reason = info.reason();
      if (any.UnpackTo(&failure)) {
        EXPECT_EQ(failure.violations_size(), 1);
        refusal.subject = failure.violations(0).subject();
        refusal.description = failure.violations(0).description();
      }
      if (any.UnpackTo(&retry)) {
        refusal.retry_seconds =
            static_cast<double>(retry.retry_delay().seconds()) + retry.retry_delay().nanos() * 1e-9;
      }
    }
    return refusal;
  }
  void ExpectRefused(const grpc::Status& status, const std::string& description,
                     bool waiting_helps) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
    const Refusal refusal = RefusalIn(status);
    EXPECT_EQ(refusal.reason, "QUOTA_EXCEEDED");
    EXPECT_EQ(refusal.subject, "tenant:default");
    EXPECT_THAT(refusal.description, HasSubstr(description));
    EXPECT_EQ(refusal.retry_seconds.has_value(), waiting_helps);
  }

  // Sends the header alone, and returns the status with which the server ends the call.
  grpc::Status SendHeader(const v1::MatrixSpec& matrix, const std::string& first_data = "") {
    grpc::ClientContext context;
    const auto stream = stub().Factorize(&context);
    v1::FactorizeRequest request;
    *request.mutable_header()->mutable_matrix() = matrix;
    request.set_data(first_data);
    stream->Write(request);
    v1::FactorizeResponse response;
    while (stream->Read(&response)) {
    }
    return stream->Finish();
  }
  v1::TenantLoad Own() {
    grpc::ClientContext context;
    v1::GetServerInfoResponse info;
    EXPECT_TRUE(stub().GetServerInfo(&context, {}, &info).ok());
    return info.own();
  }

  std::string path_;
};

TEST_F(RpcQuotaTest, AnOrderAboveTheQuotaIsRefusedBeforeThePayload) {
  StartWithQuotas("[default]\nmax_n = 50\n");
  ExpectRefused(SendHeader(Dense(51, 51)), "the matrix has order 51; the quota max_n is 50",
                /*waiting_helps=*/false);
  v1::Factor factor;
  EXPECT_TRUE(Factorize(50, &factor).ok());
  // The size line of a text arrives; the stream stays open.
  ExpectRefused(SendHeader(Text(), "%%MatrixMarket matrix coordinate real general\n60 60 3\n1 1"),
                "the matrix has order 60", /*waiting_helps=*/false);
  WaitUntil(
      [this] {
        return SampleOf(core().metrics.Scrape(), "crout_rejected_total{reason=\"quota\"}") == 2;
      },
      "refusals counted");
  EXPECT_EQ(Idle().factors, 1u);
}

TEST_F(RpcQuotaTest, BytesInFlightAreRefusedBeforeThePayload) {
  StartWithQuotas("[default]\nbytes_in_flight = \"1MiB\"\n");
  ExpectRefused(SendHeader(Dense(400, 400)), "the quota bytes_in_flight is 1048576",
                /*waiting_helps=*/false);
  v1::Factor factor;
  EXPECT_TRUE(Factorize(50, &factor).ok());
  WaitUntil([this] { return Own().bytes_in_flight() == 0; }, "the memory of the job to be free");
}

TEST_F(RpcQuotaTest, AFullCacheIsRefusedBeforeThePayload) {
  StartWithQuotas("[default]\nfactors = 1\n");
  v1::Factor factor;
  ASSERT_TRUE(Factorize(20, &factor).ok());
  Idle();
  ExpectRefused(SendHeader(Dense(20, 20)), "it has 1 cached factors; the quota factors is 1",
                /*waiting_helps=*/false);
  v1::FactorizeAndSolveHeader header;
  *header.mutable_matrix() = Dense(20, 20);
  *header.mutable_rhs() = Dense(20, 1);
  EXPECT_TRUE(
      FactorizeAndSolve(header, Bytes(Matrix(20)), Bytes(std::vector<double>(20, 1.0))).status.ok())
      << "caches nothing";
  header.mutable_cache()->set_name("kept");
  ExpectRefused(
      FactorizeAndSolve(header, Bytes(Matrix(20)), Bytes(std::vector<double>(20, 1.0))).status,
      "the quota factors is 1", /*waiting_helps=*/false);
}

TEST_F(RpcQuotaTest, DeviceSecondsAreRefilled) {
  StartWithQuotas("[default]\ndevice_seconds_per_minute = 60\n");
  device().factor_gate().Close();
  std::thread first([this] {
    v1::Factor factor;
    EXPECT_TRUE(Factorize(20, &factor).ok());
  });
  device().factor_gate().WaitUntilHeld();
  failpoints().Advance(absl::Hours(1));
  device().factor_gate().Open();
  first.join();
  Idle();
  const v1::TenantLoad own = Own();
  EXPECT_GE(own.device_seconds(), 3500);
  EXPECT_EQ(own.quota().device_seconds_per_minute(), 60);
  const grpc::Status refused = SendHeader(Dense(20, 20));
  ExpectRefused(refused, "the quota device_seconds_per_minute is 60", /*waiting_helps=*/true);
  failpoints().Advance(absl::Seconds(*RefusalIn(refused).retry_seconds));
  v1::Factor factor;
  EXPECT_TRUE(Factorize(20, &factor).ok()) << "the delay suffices";
}

TEST_F(RpcQuotaTest, QueuedJobsAreLimited) {
  StartWithQuotas("[default]\nqueued_jobs = 1\n");
  device().factor_gate().Close();
  std::vector<std::thread> waiting;
  for (int i = 0; i < 2; ++i) {
    waiting.emplace_back([this] {
      v1::Factor factor;
      EXPECT_TRUE(Factorize(20, &factor).ok());
    });
    if (i == 0) device().factor_gate().WaitUntilHeld();
  }
  WaitUntil([this] { return Held().queue_depth == 1; }, "a job to be queued");
  const v1::TenantLoad own = Own();
  EXPECT_EQ(own.queued_jobs(), 1);
  EXPECT_EQ(own.running_jobs(), 1);
  v1::Factor factor;
  ExpectRefused(Factorize(20, &factor), "the quota queued_jobs is 1", /*waiting_helps=*/true);
  device().factor_gate().Open();
  for (std::thread& thread : waiting) thread.join();
}

TEST_F(RpcQuotaTest, OnlyConfiguredTenantsAreLabels) {
  StartWithQuotas("[default]\nmax_n = 50\n[tenant.named]\nfactors = 5\n");
  v1::Factor factor;
  ExpectRefused(SendHeader(Dense(60, 60)), "the quota max_n is 50", /*waiting_helps=*/false);
  ASSERT_TRUE(Factorize(20, &factor).ok());  // tenant "default"
  Idle();
  const std::string text = core().metrics.Scrape();
  EXPECT_EQ(SampleOf(text, "crout_tenant_factors{tenant=\"named\"}"), 0);
  EXPECT_EQ(SampleOf(text, "crout_tenant_factors{tenant=\"other\"}"), 1);
  EXPECT_GT(SampleOf(text, "crout_tenant_bytes{tenant=\"other\",kind=\"device\"}").value_or(0),
            1000);
  EXPECT_EQ(SampleOf(text, "crout_tenant_jobs{tenant=\"named\",state=\"queued\"}"), 0);
  EXPECT_EQ(SampleOf(text, "crout_tenant_device_seconds_total{tenant=\"named\"}"), 0);
  EXPECT_GT(SampleOf(text, "crout_tenant_device_seconds_total{tenant=\"other\"}").value_or(0), 0);
  EXPECT_EQ(SampleOf(text, "crout_tenant_refusals_total{tenant=\"named\"}"), 0);
  EXPECT_EQ(SampleOf(text, "crout_tenant_refusals_total{tenant=\"other\"}"), 1);
  EXPECT_EQ(text.find("tenant=\"default\""), std::string::npos);
}

TEST_F(RpcQuotaTest, AChangedFileApplies) {
  StartWithQuotas("[default]\nmax_n = 50\n");
  EXPECT_EQ(Own().quota().max_n(), 50);
  EXPECT_FALSE(Own().quota().has_factors());
  WriteQuotas("[default]\nmax_n = 60\n[tenant.other]\nfactors = 3\n");
  PassTime(absl::Seconds(1));
  EXPECT_EQ(Own().quota().max_n(), 60);
  WriteQuotas("[default]\nmax_n = many\n");
  PassTime(absl::Seconds(1));
  EXPECT_EQ(Own().quota().max_n(), 60) << "an invalid file changes nothing";
  EXPECT_EQ(SampleOf(core().metrics.Scrape(), "crout_file_refused{file=\"quotas\"}"), 1);
  WriteQuotas("\n");
  PassTime(absl::Seconds(1));
  EXPECT_FALSE(Own().has_quota());
  EXPECT_EQ(SampleOf(core().metrics.Scrape(), "crout_file_refused{file=\"quotas\"}"), 0);
}

}  // namespace
}  // namespace crout::testing::quota_test
