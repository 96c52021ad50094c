// SPDX-License-Identifier: Apache-2.0

// get
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/array_files.h"
#include "client/cli/commands.h"
#include "client/cli/factor_files.h"
#include "client/cli/factor_options.h"

namespace crout::cli {
namespace {

struct GetArguments {
  std::string factor;
  std::optional<int64_t> member;  // member of a batch
  std::string prefix;
  FileFormat format = FileFormat::kMatrixMarket;
};

absl::Status RunGetMember(Session* session, int64_t number, ArrayFiles* files,
                          const std::string& handle) {
  v1::GetBatchFactorsRequest request;
  request.set_handle(handle);
  request.set_first(number);
  request.set_count(1);
  const auto member = session->client().GetBatchFactors(request, session->call());
  if (!member.ok()) return member.status();
  absl::Status status = WriteMember(files, *member);
  if (status.ok()) status = files->Close();
  if (!status.ok()) return status;
  session->Print(
      Json{{"files", files->names()}, {"member", number}, {"factor", ToJson(member->factor)}});
  return absl::OkStatus();
}

absl::Status RunGetSparse(Session* session, ArrayFiles* files, const std::string& handle) {
  const auto factors = session->client().GetSparseFactors(handle, session->call());
  if (!factors.ok()) return factors.status();
  absl::Status status = WriteSparseFactors(files, *factors);
  if (status.ok()) status = files->Close();
  if (!status.ok()) return status;
  session->Print(Json{{"files", files->names()}, {"factor", ToJson(factors->factor)}});
  return absl::OkStatus();
}

absl::Status RunGet(Session* session, const GetArguments& arguments) {
  ArrayFiles files(arguments.prefix, arguments.format);
  if (files.in_archive()) session->ReportOnStandardError();
  const auto handle = session->Handle(arguments.factor);
  if (!handle.ok()) return handle.status();
  if (arguments.member) return RunGetMember(session, *arguments.member, &files, *handle);
  const auto factor = session->client().Describe(*handle, session->call());
  if (!factor.ok()) return factor.status();
  if (factor->has_batch()) {
    return absl::FailedPreconditionError(
        absl::StrCat("these are ", factor->batch().members(),
                     " factors of a batch: name one with --member, from 0"));
  }
  if (factor->has_sparse()) return RunGetSparse(session, &files, *handle);
  v1::GetFactorsRequest request;
  request.set_handle(*handle);
  v1::GetFactorsHeader header;
  auto l = files.NewWriter("L");
  if (!l.ok()) return l.status();
  auto u = files.NewWriter("U");
  if (!u.ok()) return u.status();
  DenseFactorFiles factors(*std::move(l), *std::move(u), &header);
  absl::Status status = session->client().GetFactors(request, &header, &factors, session->call());
  if (status.ok()) status = factors.Close();
  if (status.ok()) status = WriteVectors(&files, header);
  if (status.ok()) status = files.Close();
  if (!status.ok()) return status;
  session->Print(Json{{"files", files.names()},
                      {"row_scales", header.row_scales()},
                      {"col_scales", header.col_scales()},
                      {"factor", ToJson(header.factor())}});
  return absl::OkStatus();
}

}  // namespace

void AddGetCommand(CLI::App* app, Session* session) {
  const auto arguments = std::make_shared<GetArguments>();
  CLI::App* get = session->AddCommand(
      app, "get", "Download L, U, the permutations and, where A was scaled, its scales",
      [=] { return RunGet(session, *arguments); });
  AddFactorArgument(get, &arguments->factor);
  get->add_option("--member", arguments->member, "Of a batch: this member, counted from 0")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 31));
  get->add_option(
         "-o,--output", arguments->prefix,
         "Prefix of the files: _L, _U, _p, _row_scales and _col_scales; of a sparse factor "
         "also _q, of its columns. -: one .npz archive of L, U, p, ... on standard output, of a "
         "sparse factor of L_data, L_indices, L_indptr, U_data, ..., which "
         "scipy.sparse.csr_array takes; the report goes to standard error then")
      ->required();
  AddFormatOption(
      get, {FileFormat::kMatrixMarket, FileFormat::kNpy, FileFormat::kText},
      [=](FileFormat format) { arguments->format = format; },
      "Of the files: mtx (Matrix Market; p from 1), npy or txt (p from 0; of a sparse factor the "
      "vectors of compressed rows); mtx unless given");
}

}  // namespace crout::cli
