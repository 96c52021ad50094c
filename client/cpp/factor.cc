#include "crout/factor.h"

#include <system_error>
#include <utility>

#include "client/cpp/lease_keeper.h"

namespace crout {
namespace {

using client::CallOptions;
using client::Client;
using client::LeaseKeeper;
using client::MatrixSink;
using client::MatrixSource;

absl::Time TimeOf(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

absl::Duration DurationOf(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

}  // namespace

class Factor::Hold {
 public:
  Hold(std::shared_ptr<Client> client, std::string handle, absl::Duration length)
      : client_(std::move(client)),
        handle_(std::move(handle)),
        lease_(client_->leases_->Keep(handle_, length)) {}
  ~Hold() { Drop(); }

  Client& client() const { return *client_; }
  const std::string& handle() const { return handle_; }

  absl::Status LeaseStatus() const { return client_->leases_->StatusOf(*lease_); }
  absl::Status Confirm(const CallOptions& call) const {
    return client_->leases_->Confirm(lease_, call);
  }
  void Drop() const { client_->leases_->Drop(lease_); }

 private:
  const std::shared_ptr<Client> client_;
  const std::string handle_;
  const std::shared_ptr<LeaseKeeper::Lease> lease_;
};

absl::StatusOr<Factor> Factor::Factorize(std::shared_ptr<Client> client, const MatrixSource& matrix,
                                         const v1::FactorizeOptions& options,
                                         const v1::CacheOptions& cache, const CallOptions& call) {
  const absl::Duration wanted = DurationOf(cache.lease());
  const bool repeated = !cache.request_id().empty();
  if (repeated && wanted == absl::ZeroDuration()) {
    return absl::InvalidArgumentError("a request_id needs a lease");
  }
  absl::StatusOr<v1::Factor> made = client->Factorize(matrix, options, cache, call);
  if (!made.ok()) return made.status();
  // Both ends by the server's clock, which need not agree with ours.
  const absl::Duration granted = TimeOf(made->lease_expire_time()) - TimeOf(made->create_time());
  auto hold = std::make_shared<const Hold>(std::move(client), made->handle(),
                                           wanted == absl::ZeroDuration() ? granted : wanted);
  Factor factor(std::move(hold), *std::move(made));
  if (!repeated) return factor;
  // It may have been there before, with another lease.
  const auto renewed = factor.hold_->client().Renew(factor.handle(), wanted, call);
  if (!renewed.ok()) return renewed.status();
  return factor;
}

Factor::Factor(std::shared_ptr<const Hold> hold, v1::Factor description)
    : hold_(std::move(hold)), description_(std::move(description)) {}

Factor& Factor::operator=(Factor&& other) noexcept {
  Factor taken(std::move(other));
  std::swap(hold_, taken.hold_);
  description_.Swap(&taken.description_);
  return *this;
}

Factor::~Factor() {
  if (hold_ == nullptr) return;
  CallOptions call;
  call.timeout = absl::Seconds(5);
  Release(call).IgnoreError();  // The lease ends it otherwise.
}

absl::Status Factor::lease_status() const {
  return hold_ == nullptr ? absl::OkStatus() : hold_->LeaseStatus();
}

absl::Status Factor::Confirm(const Hold* hold, const CallOptions& call) {
  if (hold == nullptr) {
    return absl::FailedPreconditionError("the factor was released or moved from");
  }
  return hold->Confirm(call);
}

absl::StatusOr<v1::SolveResult> Factor::SolveWith(const Hold* hold, const MatrixSource& rhs,
                                                  const v1::SolveOptions& options, MatrixSink* x,
                                                  const CallOptions& call) {
  if (absl::Status status = Confirm(hold, call); !status.ok()) return status;
  return hold->client().Solve(hold->handle(), rhs, options, x, call);
}

absl::StatusOr<v1::SolveResult> Factor::Solve(const MatrixSource& rhs,
                                              const v1::SolveOptions& options, MatrixSink* x,
                                              const CallOptions& call) const {
  return SolveWith(hold_.get(), rhs, options, x, call);
}

std::future<absl::StatusOr<v1::SolveResult>> Factor::SolveAsync(const MatrixSource& rhs,
                                                                const v1::SolveOptions& options,
                                                                MatrixSink* x,
                                                                const CallOptions& call) const {
  std::promise<absl::StatusOr<v1::SolveResult>> refused;
  try {
    return std::async(std::launch::async, [hold = hold_, rhs, options, x, call] {
      return SolveWith(hold.get(), rhs, options, x, call);
    });
  } catch (const std::system_error& error) {
    refused.set_value(absl::ResourceExhaustedError(error.what()));
  }
  return refused.get_future();
}

absl::Status Factor::Refactorize(const MatrixSource& matrix, const v1::FactorizeOptions& options,
                                 const CallOptions& call) {
  if (absl::Status status = Confirm(hold_.get(), call); !status.ok()) return status;
  auto made = hold_->client().Refactorize(hold_->handle(), matrix, options, call);
  if (!made.ok()) return made.status();
  description_ = *std::move(made);
  return absl::OkStatus();
}

absl::StatusOr<v1::Factor> Factor::Describe(const CallOptions& call) const {
  if (absl::Status status = Confirm(hold_.get(), call); !status.ok()) return status;
  return hold_->client().Describe(hold_->handle(), call);
}

absl::Status Factor::Release(const CallOptions& call) {
  if (hold_ == nullptr) return Confirm(nullptr, call);
  const std::shared_ptr<const Hold> hold = std::exchange(hold_, nullptr);
  description_.Clear();
  hold->Drop();
  return hold->client().Release(hold->handle(), call);
}

}  // namespace crout
