// SPDX-License-Identifier: Apache-2.0

// Tests that native structs have the fields, and native enumerations the numbers, of the contract.
#include "client/cpp/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "client/cpp/fields.h"
#include "crout/v1/factorization_service.pb.h"

namespace crout::client_test::convert_test {
namespace {

using internal::Fields;
using internal::Fill;
using internal::Read;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAreArray;

// Collects the names of fields.
struct FieldNames {
  template <class T>
  void operator()(const char* name, const T&) {
    names.insert(name);
  }
  template <class T>
  void Or(const char* name, const T&, const T&) {
    names.insert(name);
  }
  template <class T>
  void Implicit(const char* name, const T&) {
    names.insert(name);
  }

  std::set<std::string> names;
};

// `elsewhere`: fields of the message that the struct does not have.
template <class T, class Message>
void ExpectFields(std::set<std::string> elsewhere = {}) {
  FieldNames visitor;
  const T native;
  Fields<T>::Visit(native, visitor);
  visitor.names.merge(elsewhere);
  std::set<std::string> expected;
  for (int i = 0; i < Message::descriptor()->field_count(); ++i) {
    expected.insert(Message::descriptor()->field(i)->name());
  }
  EXPECT_THAT(visitor.names, UnorderedElementsAreArray(expected)) << Message::descriptor()->name();
}

TEST(ConvertTest, StructsHaveTheFieldsOfTheContract) {
  ExpectFields<CacheOptions, v1::CacheOptions>();
  ExpectFields<EstimateRequest, v1::EstimateFactorizeRequest>();
  ExpectFields<FactorAndSolveOptions, v1::FactorizeAndSolveHeader>({"matrix", "rhs"});
  ExpectFields<FactorOptions, v1::FactorizeOptions>();
  ExpectFields<MethodParameters, v1::MethodParameters>();
  ExpectFields<RefactorOptions, v1::RefactorizeHeader>({"handle", "matrix"});
  ExpectFields<RrefOptions, v1::ReduceToEchelonFormHeader>({"matrix"});
  ExpectFields<SchurOptions, v1::ComputeSchurComplementHeader>({"matrix"});
  ExpectFields<SeriesOptions, v1::SolveSeriesHeader>({"matrix", "rhs", "change", "x0"});
  ExpectFields<SolveOptions, v1::SolveOptions>();
  ExpectFields<BatchInfo, v1::BatchInfo>();
  ExpectFields<BatchSolveInfo, v1::BatchSolveInfo>();
  ExpectFields<ComplementResult, v1::ComplementResult>();
  ExpectFields<DenseFactors, v1::GetFactorsHeader>({"sparse", "batch"});
  ExpectFields<DenseSpec, v1::DenseSpec>();
  ExpectFields<Determinant, v1::Determinant>();
  ExpectFields<DeviceStatus, v1::DeviceStatus>();
  ExpectFields<EchelonFormResult, v1::EchelonFormResult>();
  ExpectFields<Estimate, v1::EstimateFactorizeResponse>();
  ExpectFields<FactorDescription, v1::Factor>();
  ExpectFields<IterationPage, v1::IterationPage>({"next_page_token"});
  ExpectFields<Iterations, v1::Iterations>();
  ExpectFields<JobProgress, v1::Progress>();
  ExpectFields<SeriesResult, v1::SeriesResult>();
  ExpectFields<ServerInfo, v1::GetServerInfoResponse>();
  ExpectFields<ServerLimits, v1::Limits>();
  ExpectFields<SolveResult, v1::SolveResult>();
  ExpectFields<SparseInfo, v1::SparseInfo>();
  ExpectFields<TenantQuota, v1::TenantQuota>();
  ExpectFields<TenantUsage, v1::TenantLoad>();
  ExpectFields<Timings, v1::Timings>();
}

TEST(ConvertTest, DefaultsAreNotSent) {
  v1::FactorizeOptions factor;
  Fill(FactorOptions(), &factor);
  EXPECT_EQ(factor.ByteSizeLong(), 0u) << factor.ShortDebugString();
  v1::SolveOptions solve;
  Fill(SolveOptions(), &solve);
  EXPECT_EQ(solve.ByteSizeLong(), 0u) << solve.ShortDebugString();
  v1::FactorizeAndSolveHeader both;
  Fill(FactorAndSolveOptions(), &both);
  EXPECT_EQ(both.ByteSizeLong(), 0u) << both.ShortDebugString();
  Fill(FactorAndSolveOptions{.cache = CacheOptions()}, &both);
  EXPECT_TRUE(both.has_cache()) << "has a meaning without fields";
}

TEST(ConvertTest, OptionsAreSent) {
  SchurOptions options;
  options.keep = {3, 1};
  options.factor.algorithm = Algorithm::kMultifrontal;
  options.factor.keep_matrix = false;
  options.factor.factor_dtype = Dtype::kComplex64;
  options.factor.parameters.block_size = 16;
  options.cache.lease = absl::Milliseconds(1500);
  v1::ComputeSchurComplementHeader header;
  Fill(options, &header);
  EXPECT_THAT(header.keep(), ElementsAre(3, 1));
  EXPECT_EQ(header.options().algorithm(), v1::ALGORITHM_MULTIFRONTAL);
  EXPECT_TRUE(header.options().has_keep_matrix());
  EXPECT_FALSE(header.options().keep_matrix());
  EXPECT_EQ(header.options().factor_dtype(), v1::DTYPE_COMPLEX64);
  EXPECT_EQ(header.options().parameters().block_size(), 16);
  EXPECT_EQ(header.cache().lease().seconds(), 1);
  EXPECT_EQ(header.cache().lease().nanos(), 500'000'000);
}

TEST(ConvertTest, ResultsAreRead) {
  v1::Factor message;
  message.set_handle("h");
  message.set_algorithm(v1::ALGORITHM_CMPP);
  message.set_rcond(0.5);
  message.add_warnings(v1::WARNING_NEARLY_SINGULAR);
  message.mutable_create_time()->set_seconds(1000);
  message.mutable_timings()->set_total_seconds(2);
  message.mutable_iterations()->add_sweeps(7);
  const auto factor = Read<FactorDescription>(message);
  EXPECT_EQ(factor.handle, "h");
  EXPECT_EQ(factor.algorithm, Algorithm::kCmpp);
  EXPECT_EQ(factor.tier, std::nullopt);
  EXPECT_EQ(factor.rcond, 0.5);
  EXPECT_EQ(factor.quality, std::nullopt);
  EXPECT_THAT(factor.warnings, ElementsAre(Warning::kNearlySingular));
  EXPECT_EQ(factor.create_time, absl::FromUnixSeconds(1000));
  EXPECT_EQ(factor.lease_expire_time, std::nullopt);
  EXPECT_EQ(factor.timings.total_seconds, 2);
  ASSERT_TRUE(factor.iterations.has_value());
  EXPECT_THAT(factor.iterations->sweeps, ElementsAre(7));
  EXPECT_FALSE(factor.sparse.has_value());
}

TEST(NamesTest, AreThoseOfTheContract) {
  EXPECT_THAT(Names<Dtype>(), ElementsAre("f32", "f64", "c64", "c128"));
  EXPECT_THAT(Names<Algorithm>(),
              ::testing::IsSupersetOf({"auto", "getrf", "crout_lu", "irr_lu", "multifrontal"}));
  EXPECT_EQ(FromName<Solver>("crout_solve"), Solver::kCroutSolve);
  EXPECT_EQ(FromName<Solver>("unspecified"), std::nullopt);
  EXPECT_EQ(FromName<Solver>("magic"), std::nullopt);
  EXPECT_EQ(Name(static_cast<Algorithm>(999)), "999");
  EXPECT_EQ(Name(Algorithm::kCudss), "cudss");
  EXPECT_EQ(Name(Algorithm::kMumps), "mumps");
  EXPECT_EQ(Name(Solver::kMumps), "mumps");
  EXPECT_EQ(Name(Algorithm::kCusolvermp), "cusolvermp");
  EXPECT_EQ(Name(Solver::kCusolvermp), "cusolvermp");
  EXPECT_EQ(Name(Equilibrate::kOff), "off");
  EXPECT_EQ(Name(Variant::kPublished), "published");
  EXPECT_EQ(Name(Operation::kConjugateTranspose), "conjugate_transpose");
  EXPECT_EQ(Name(Phase::kAnalyze), "analyze");
  EXPECT_EQ(Name(Pivoting::kThreshold), "threshold");
  EXPECT_EQ(Name(Precision::kTf32), "tf32");
  EXPECT_EQ(Name(PrecisionFallback::kStagnation), "stagnation");
  EXPECT_EQ(Name(SeriesStrategy::kUpdate), "update");
  EXPECT_EQ(Name(SingularReason::kStructure), "structure");
  EXPECT_EQ(Name(SolverFallback::kBackwardError), "backward_error");
  EXPECT_EQ(Name(StorageOrder::kRowMajor), "row_major");
  EXPECT_EQ(Name(Tier::kHost), "host");
  EXPECT_EQ(Name(UnitTriangle::kU), "u");
  EXPECT_EQ(Name(Warning::kPoorEchelonForm), "poor_echelon_form");
}

}  // namespace
}  // namespace crout::client_test::convert_test
