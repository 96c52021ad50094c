// SPDX-License-Identifier: Apache-2.0

#include "tests/server/rpc/faults/fault_fixture.h"

#include <sys/stat.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "absl/strings/str_cat.h"
#include "server/auth/token.h"

namespace crout::testing {
namespace {

// A directory for all tests of the process, which its end removes. It is in memory where the system
// has such a file system, because each test waits for several writes.
class Directory {
 public:
  Directory() : path_("/dev/shm/crout_fault_test.XXXXXX") {
    if (mkdtemp(path_.data()) != nullptr) return;
    path_ = ::testing::TempDir() + "/crout_fault_test.XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~Directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  // Returns a path that does not exist.
  std::string NewPath() { return absl::StrCat(path_, "/", ++paths_); }

 private:
  std::string path_;
  int paths_ = 0;
};

Directory& TestDirectory() {
  static Directory directory;
  return directory;
}

bool DeadlinePassed(const OpenCall& call) {
  return std::chrono::system_clock::now() >= call.context().deadline();
}

std::string SectionOf(const std::string& name, const ClientName& client) {
  return absl::StrCat("[", name, "]\ntoken = ", FormatTokenHash(HashToken(client.token)),
                      "\ntenants = ", client.tenant, "\nroles = factor\n");
}

}  // namespace

void FaultFixture::Start() {
  Config config = SmallConfig();
  config.store_location = TestDirectory().NewPath();
  config.call_log.calls = LogCalls::kNone;
  config.identities_file = identities_file_ = TestDirectory().NewPath();
  AcceptCaller(true);
  FakeDeviceOptions first;
  first.staging_block_bytes = size_t{16} << 10;
  first.has_sparse_ops = true;
  first.register_more = [this](Catalogue& catalogue) {
    catalogue.batch_lu = host::MakeIrrLu(executor_);
    catalogue.sparse_lus.push_back(host::MakeMultifrontal(executor_));
  };
  FakeDeviceOptions second = first;
  second.name = "cuda:1";
  StartServers({first, second}, config);
  for (const char* device : {"cuda:0", "cuda:1"}) {
    others_.push_back(
        MustFactor(*MakeFactorize(kOther, kSmall, device, true), Bytes(Matrix(kSmall))));
    const auto call = MakeSolve(kOther, others_.back());
    MustFactor(*call, Bytes(std::vector<double>(kSmall, 1)));
    solutions_.push_back(call->data());
  }
}

void FaultFixture::TearDown() {
  Release();
  RpcBatchTest::TearDown();
}

void FaultFixture::AcceptCaller(bool accepted) {
  const std::string next = identities_file_ + ".next";
  std::ofstream(next) << SectionOf("other", kOther)
                      << (accepted ? SectionOf("caller", kCaller) : "");
  ASSERT_EQ(chmod(next.c_str(), 0600), 0);
  ASSERT_EQ(std::rename(next.c_str(), identities_file_.c_str()), 0);
}

std::string FaultFixture::MustFactor(OpenCall& call, const std::string& payload) {
  call.SendHeader();
  call.SendData(payload);
  call.HalfClose();
  const grpc::Status status = call.Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  return call.handle();
}

void FaultFixture::FactorFirst() {
  if (handle_.empty() || traits().releases) {
    const bool durable = traits().replaces && traits().stores;
    handle_ = MustFactor(*MakeFactorize(kCaller, kOrder, "cuda:0", durable), Bytes(Matrix(kOrder)));
  }
  if (call_kind() == CallKind::kSolveBatch && batch_.empty()) {
    const auto call = MakeFactorizeBatch(stub());
    SetClient(kCaller, *call);
    batch_ = MustFactor(*call, BatchPayload());
  }
  Idle();
}

std::unique_ptr<OpenCall> FaultFixture::BeginOther() {
  auto call = MakeSolve(kOther, others_[1]);
  call->SendHeader();
  call->SendData(Bytes(std::vector<double>(kSmall / 2, 1)));
  return call;
}

void FaultFixture::EndOther(OpenCall& call) {
  call.SendData(Bytes(std::vector<double>(kSmall / 2, 1)));
  call.HalfClose();
  const grpc::Status status = call.Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(call.data(), solutions_[1]);
}

grpc::Status FaultFixture::TryOther() {
  const auto call = MakeSolve(kOther, others_[1]);
  call->SendHeader();
  call->SendData(Bytes(std::vector<double>(kSmall, 1)));
  call->HalfClose();
  return call->Finish();
}

void FaultFixture::ExpectOtherSolves(size_t device) {
  const auto call = MakeSolve(kOther, others_[device]);
  MustFactor(*call, Bytes(std::vector<double>(kSmall, 1)));
  EXPECT_EQ(call->data(), solutions_[device]) << "factor on device " << device;
}

int FaultFixture::ReleaseNewFactors() {
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer " + kCaller.token);
  v1::ListFactorsResponse listed;
  EXPECT_TRUE(stub().ListFactors(&context, {}, &listed).ok());
  int released = 0;
  for (const v1::Factor& factor : listed.factors()) {
    if (factor.handle() == handle_ || factor.handle() == batch_) continue;
    grpc::ClientContext release;
    release.AddMetadata("authorization", "Bearer " + kCaller.token);
    v1::ReleaseFactorRequest request;
    request.set_handle(factor.handle());
    v1::ReleaseFactorResponse response;
    EXPECT_TRUE(stub().ReleaseFactor(&release, request, &response).ok());
    ++released;
  }
  return released;
}

void FaultFixture::Hold(PhaseKind phase) {
  hold_.Close();
  const auto pass = [this] { hold_.Pass(); };
  switch (phase) {
    case PhaseKind::kAdmission: {
      MemoryBudget& budget = *core().engine.devices.slots()[0]->budget;
      filler_ = budget.TryReserve(budget.limit() - budget.reserved());
      ASSERT_TRUE(filler_.has_value());
      return failpoints().Do("scheduler.task", pass);
    }
    case PhaseKind::kStagingFull:
      return device().HoldUploads();
    case PhaseKind::kAnalysis:
      return failpoints().Do(traits().analysis, pass);
    case PhaseKind::kQueued:
      // The job of another call occupies the only stream.
      device().factor_gate().Close();
      occupant_ = MakeOccupant();
      occupant_->SendHeader();
      occupant_->SendData(Bytes(Matrix(kSmall)));
      occupant_->HalfClose();
      return device().factor_gate().WaitUntilHeld();
    case PhaseKind::kRunning:
      return failpoints().Do(traits().job, pass);
    case PhaseKind::kStoring:
      return failpoints().Do("store.create", pass);
    case PhaseKind::kAfterHeader:
    case PhaseKind::kMidUpload:
    case PhaseKind::kReply:
      return;
  }
}

void FaultFixture::Release() {
  filler_.reset();
  hold_.Open();
  if (occupant_ != nullptr) {
    device().factor_gate().Open();
    occupant_->Finish();
    occupant_.reset();
  }
  device().ReleaseUploads();
}

void FaultFixture::ForgetOpenCalls() {
  open_before_.clear();
  for (const crout::OpenCall& call : core().calls.Oldest(100)) open_before_.insert(call.id);
}

std::optional<crout::OpenCall> FaultFixture::Newest() {
  for (crout::OpenCall& call : core().calls.Oldest(100)) {
    if (!open_before_.contains(call.id)) return call;
  }
  return std::nullopt;
}

bool FaultFixture::Reach(OpenCall& call, PhaseKind phase) {
  const auto there = [&](const std::function<bool()>& condition) {
    EXPECT_TRUE(Eventually([&] { return condition() || DeadlinePassed(call); }));
    return condition();
  };
  const auto is_held = [&] { return hold_.held() > 0; };
  const size_t queued = Held().queue_depth;
  payload_sent_ = false;
  call.SendHeader();
  if (traits().has_payload) {
    const auto received = [&] {
      const auto open = Newest();
      return open && open->phase == "payload" ? open->received_bytes : 0;
    };
    // Memory for text and for entries of sparse matrices is reserved when they arrive.
    const bool waits = phase == PhaseKind::kAdmission;
    if (!there([&] { return received() > 0 || (waits && is_held()); })) return false;
    if (waits && is_held()) return true;
    const uint64_t header = received();
    if (phase == PhaseKind::kAfterHeader) return true;
    const std::string payload = Payload();
    if (phase == PhaseKind::kMidUpload) {
      call.SendData(payload.substr(0, payload.size() / 2));
      return there([&] { return received() > header; });
    }
    payload_sent_ = true;
    call.SendData(payload);
    call.HalfClose();
  }
  if (phase == PhaseKind::kStagingFull)
    return there([&] { return device().waiting_uploads() > 0; });
  if (phase == PhaseKind::kQueued) return there([&] { return Held().queue_depth == queued + 1; });
  if (phase != PhaseKind::kReply) return there(is_held);
  return there([&] {
    const auto open = Newest();
    return open && (open->phase == "reply" || open->phase == "end");
  });
}

void FaultFixture::SendRest(OpenCall& call, PhaseKind phase) {
  if (!traits().has_payload || payload_sent_) return;
  const std::string payload = Payload();
  call.SendData(phase == PhaseKind::kMidUpload ? payload.substr(payload.size() / 2) : payload);
  call.HalfClose();
}

}  // namespace crout::testing
