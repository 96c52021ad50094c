// get
#include <memory>

#include "client/cli/array_writer.h"
#include "client/cli/commands.h"

namespace crout::cli {
namespace {

// Writes PREFIX_L.mtx and PREFIX_U.mtx column by column as the packed LU arrives: neither factor
// is ever in memory.
class FactorFiles : public client::MatrixSink {
 public:
  // `header` is what GetFactors sets before the first call of Begin.
  FactorFiles(std::string prefix, const v1::GetFactorsHeader* header)
      : prefix_(std::move(prefix)), header_(*header) {}

  absl::Status Begin(const v1::DenseSpec& spec) override {
    n_ = spec.rows();
    unit_in_l_ = header_.factor().unit_diagonal() == v1::UNIT_DIAGONAL_L;
    decoder_.Begin(spec.dtype());
    const char* const field = FieldOf(spec.dtype());
    if (absl::Status status = l_.Open(prefix_ + "_L.mtx", field, n_, n_); !status.ok()) {
      return status;
    }
    return u_.Open(prefix_ + "_U.mtx", field, n_, n_);
  }

  absl::Status Append(absl::Span<const std::byte> bytes) override {
    decoder_.Append(bytes, [this](int64_t index, auto value) {
      const int64_t i = index % n_;
      const int64_t j = index / n_;
      const decltype(value) zero = 0, one = 1;
      l_.Add(i > j ? value : i < j ? zero : unit_in_l_ ? one : value);
      u_.Add(i < j ? value : i > j ? zero : unit_in_l_ ? value : one);
    });
    return absl::OkStatus();
  }

  absl::Status Close() {
    const absl::Status l = l_.Close();
    const absl::Status u = u_.Close();
    return l.ok() ? u : l;
  }

 private:
  const std::string prefix_;
  const v1::GetFactorsHeader& header_;
  int64_t n_ = 0;
  bool unit_in_l_ = true;
  ElementDecoder decoder_;
  ArrayWriter l_, u_;
};

// 1-based, as everything in Matrix Market: row i of L U is row p(i) of A.
absl::Status WritePermutation(const std::string& path, const v1::GetFactorsHeader& header) {
  ArrayWriter writer;
  absl::Status status = writer.Open(path, "integer", header.permutation_size(), 1);
  if (!status.ok()) return status;
  for (const int64_t row : header.permutation()) writer.Add(row + 1);
  return writer.Close();
}

absl::Status RunGet(Session* session, const std::string& handle, const std::string& prefix) {
  v1::GetFactorsRequest request;
  request.set_handle(handle);
  v1::GetFactorsHeader header;
  FactorFiles files(prefix, &header);
  absl::Status status = session->client().GetFactors(request, &header, &files, session->call());
  if (status.ok()) status = files.Close();
  if (status.ok()) status = WritePermutation(prefix + "_p.mtx", header);
  if (!status.ok()) return status;
  const Json written = {prefix + "_L.mtx", prefix + "_U.mtx", prefix + "_p.mtx"};
  // With equilibration the files alone do not give A back.
  session->Print(Json{{"files", written},
                      {"row_scales", header.row_scales()},
                      {"col_scales", header.col_scales()},
                      {"factor", ToJson(header.factor())}});
  return absl::OkStatus();
}

}  // namespace

void AddGetCommand(CLI::App* app, Session* session) {
  const auto handle = std::make_shared<std::string>();
  const auto prefix = std::make_shared<std::string>();
  CLI::App* get =
      session->AddCommand(app, "get", "Download L, U and the row permutation as Matrix Market",
                          [=] { return RunGet(session, *handle, *prefix); });
  get->add_option("handle", *handle)->required();
  get->add_option("-o,--output", *prefix, "Prefix of _L.mtx, _U.mtx and _p.mtx")->required();
}

}  // namespace crout::cli
