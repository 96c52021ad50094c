// SPDX-License-Identifier: Apache-2.0

// download
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/options/factor_options.h"
#include "client/cli/options/option_values.h"
#include "client/cli/output/array_files.h"
#include "client/cli/output/factor_files.h"
#include "client/cli/report/summary.h"
#include "client/cli/report/text.h"

namespace crout::cli {
namespace {

struct DownloadArguments {
  std::string factor;
  std::optional<int64_t> member;  // member of a batch
  std::string prefix;
  FileFormat format = FileFormat::kMatrixMarket;
};

// Prints `json`, which lists the files, and the factor.
void PrintFiles(const Session& session, Json json, const FactorDescription& factor) {
  json["factor"] = ToJson(factor);
  const std::string summary =
      FormatLines({{"factor", Identity(factor)}, {"files", FormatValue("files", json["files"])}});
  session.Print({json, FormatObject(json), summary, {factor.handle}});
}

absl::Status DownloadMember(Session* session, int64_t number, ArrayFiles* files,
                            const std::string& handle) {
  const auto member = session->client().DownloadMembers(handle, number, 1, session->call());
  if (!member.ok()) return member.status();
  absl::Status status = WriteMember(files, *member);
  if (status.ok()) status = files->Close();
  if (!status.ok()) return status;
  PrintFiles(*session, {{"files", files->names()}, {"member", number}}, member->factor);
  return absl::OkStatus();
}

absl::Status DownloadSparse(Session* session, ArrayFiles* files, const std::string& handle) {
  const auto factors = session->client().DownloadSparse(handle, session->call());
  if (!factors.ok()) return factors.status();
  absl::Status status = WriteSparseFactors(files, *factors);
  if (status.ok()) status = files->Close();
  if (!status.ok()) return status;
  PrintFiles(*session, {{"files", files->names()}}, factors->factor);
  return absl::OkStatus();
}

absl::Status RunDownload(Session* session, const DownloadArguments& arguments) {
  ArrayFiles files(arguments.prefix, arguments.format);
  if (files.in_archive()) session->ReportOnStandardError();
  const auto handle = session->Handle(arguments.factor);
  if (!handle.ok()) return handle.status();
  const auto factor = session->client().Describe(*handle, session->call());
  if (!factor.ok()) return factor.status();
  if (arguments.member && !factor->batch) {
    return absl::FailedPreconditionError(
        "--member: the factor is of a single matrix. Download it without --member");
  }
  if (arguments.member) return DownloadMember(session, *arguments.member, &files, *handle);
  if (factor->batch) {
    return absl::FailedPreconditionError(
        absl::StrCat("the factor is a batch of ", factor->batch->members,
                     " members. Select one with --member, counted from 0"));
  }
  if (factor->sparse) return DownloadSparse(session, &files, *handle);
  DenseFactors downloaded;
  auto l = files.NewWriter("L");
  if (!l.ok()) return l.status();
  auto u = files.NewWriter("U");
  if (!u.ok()) return u.status();
  DenseFactorFiles factors(*std::move(l), *std::move(u), &downloaded);
  absl::Status status =
      session->client().Download(*handle, &downloaded, &factors, false, session->call());
  if (status.ok()) status = factors.Close();
  if (status.ok()) status = WriteVectors(&files, downloaded);
  if (status.ok()) status = files.Close();
  if (!status.ok()) return status;
  PrintFiles(*session,
             {{"files", files.names()},
              {"row_scales", downloaded.row_scales},
              {"col_scales", downloaded.col_scales}},
             downloaded.factor);
  return absl::OkStatus();
}

}  // namespace

void AddDownloadCommand(CLI::App* app, Session* session) {
  const auto arguments = std::make_shared<DownloadArguments>();
  CLI::App* download = session->AddCommand(
      app, "download", "Download L, U, the permutations and the scales of a factor",
      [=] { return RunDownload(session, *arguments); });
  AddFactorArgument(download, &arguments->factor);
  BeginSection(download, "Input");
  download->add_option("--member", arguments->member, "Member of a batch, counted from 0")
      ->check(InRange(int64_t{0}, int64_t{1} << 31));
  BeginSection(download, "Output");
  download
      ->add_option(
          "-o,--output", arguments->prefix,
          "Prefix of the files PREFIX_L, PREFIX_U, PREFIX_p (row permutation), PREFIX_row_scales "
          "and "
          "PREFIX_col_scales (if the matrix was scaled), and PREFIX_q (column permutation of a "
          "sparse factor). -: write one .npz archive to standard output, with the report on "
          "standard error: L, U, p, ...; for a sparse factor L_data, L_indices, L_indptr, U_data, "
          "..., the arguments of scipy.sparse.csr_array")
      ->type_name("PREFIX|-")
      ->required();
  AddFormatOption(
      download, {FileFormat::kMatrixMarket, FileFormat::kNpy, FileFormat::kText},
      [=](FileFormat format) { arguments->format = format; },
      "Format of the files: mtx (Matrix Market, permutations from 1), npy or txt (permutations "
      "from 0, sparse factors as compressed rows) [default: mtx]");
}

}  // namespace crout::cli
