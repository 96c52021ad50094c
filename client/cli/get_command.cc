// get
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/array_writer.h"
#include "client/cli/commands.h"
#include "client/cli/factor_options.h"

namespace crout::cli {
namespace {

struct GetArguments {
  std::string factor;
  std::string prefix;
  FileFormat format = FileFormat::kMatrixMarket;

  std::string Path(const char* part) const {
    return absl::StrCat(prefix, "_", part, ".", NameOf(format));
  }
};

template <class T>
absl::Span<const std::byte> BytesOf(const T* values, size_t count) {
  return {reinterpret_cast<const std::byte*>(values), count * sizeof(T)};
}

// Writes L and U column by column as the packed LU arrives: neither is ever in memory, unless the
// format asks for it.
class FactorFiles : public client::MatrixSink {
 public:
  // `header` is what GetFactors sets before the first call of Begin.
  FactorFiles(const GetArguments& arguments, const v1::GetFactorsHeader* header)
      : header_(*header),
        l_(NewArrayWriter(arguments.Path("L"), arguments.format)),
        u_(NewArrayWriter(arguments.Path("U"), arguments.format)) {}

  absl::Status Begin(const v1::DenseSpec& spec) override {
    n_ = spec.rows();
    index_ = 0;
    unit_in_l_ = header_.factor().unit_diagonal() == v1::UNIT_DIAGONAL_L;
    const Element element = ElementOf(spec.dtype());
    decoder_ = ElementDecoder(element);
    if (absl::Status status = l_->Begin(element, n_, n_); !status.ok()) return status;
    return u_->Begin(element, n_, n_);
  }

  absl::Status Append(absl::Span<const std::byte> bytes) override {
    absl::Status status;
    decoder_.Append(bytes, [&](auto value) {
      const int64_t i = index_ % n_;
      const int64_t j = index_ / n_;
      ++index_;
      const decltype(value) zero = 0, one = 1;
      const auto l = i > j ? value : i < j ? zero : unit_in_l_ ? one : value;
      const auto u = i < j ? value : i > j ? zero : unit_in_l_ ? value : one;
      status.Update(l_->Append(BytesOf(&l, 1)));
      status.Update(u_->Append(BytesOf(&u, 1)));
    });
    return status;
  }

  absl::Status Close() {
    absl::Status status = l_->Close();
    status.Update(u_->Close());
    return status;
  }

 private:
  const v1::GetFactorsHeader& header_;
  int64_t n_ = 0;
  int64_t index_ = 0;  // of the element that comes next
  bool unit_in_l_ = true;
  ElementDecoder decoder_{Element::kFloat64};
  const std::unique_ptr<ArrayWriter> l_, u_;
};

template <class T>
absl::Status WriteColumn(const std::string& path, FileFormat format, Element element,
                         const std::vector<T>& values) {
  const auto writer = NewArrayWriter(path, format);
  absl::Status status = writer->Begin(element, static_cast<int64_t>(values.size()), 1);
  if (status.ok()) status = writer->Append(BytesOf(values.data(), values.size()));
  if (status.ok()) status = writer->Close();
  return status;
}

// The vectors of a factor: its permutation and, where the matrix was scaled, the scales. Appends
// the names of the files to `files`.
absl::Status WriteVectors(const GetArguments& arguments, const v1::GetFactorsHeader& header,
                          Json* files) {
  // Row i of L U is row p(i) of the scaled A: 1-based, as everything in Matrix Market, and 0-based
  // where NumPy reads it.
  const int64_t base = arguments.format == FileFormat::kMatrixMarket ? 1 : 0;
  std::vector<int64_t> rows;
  for (const int64_t row : header.permutation()) rows.push_back(row + base);
  files->push_back(arguments.Path("p"));
  absl::Status status = WriteColumn(arguments.Path("p"), arguments.format, Element::kInt64, rows);
  for (const auto& [part, scales] :
       {std::pair("row_scales", &header.row_scales()), {"col_scales", &header.col_scales()}}) {
    if (scales->empty() || !status.ok()) continue;
    files->push_back(arguments.Path(part));
    status = WriteColumn(arguments.Path(part), arguments.format, Element::kFloat64,
                         std::vector<double>(scales->begin(), scales->end()));
  }
  return status;
}

absl::Status RunGet(Session* session, const GetArguments& arguments) {
  const auto handle = session->Handle(arguments.factor);
  if (!handle.ok()) return handle.status();
  v1::GetFactorsRequest request;
  request.set_handle(*handle);
  v1::GetFactorsHeader header;
  FactorFiles files(arguments, &header);
  absl::Status status = session->client().GetFactors(request, &header, &files, session->call());
  if (status.ok()) status = files.Close();
  Json written = {arguments.Path("L"), arguments.Path("U")};
  if (status.ok()) status = WriteVectors(arguments, header, &written);
  if (!status.ok()) return status;
  session->Print(Json{{"files", written},
                      {"row_scales", header.row_scales()},
                      {"col_scales", header.col_scales()},
                      {"factor", ToJson(header.factor())}});
  return absl::OkStatus();
}

}  // namespace

void AddGetCommand(CLI::App* app, Session* session) {
  const auto arguments = std::make_shared<GetArguments>();
  CLI::App* get = session->AddCommand(
      app, "get", "Download L, U, the row permutation and, where A was scaled, its scales",
      [=] { return RunGet(session, *arguments); });
  AddFactorArgument(get, &arguments->factor);
  get->add_option("-o,--output", arguments->prefix,
                  "Prefix of the files: _L, _U, _p, _row_scales and _col_scales")
      ->required();
  AddFormatOption(
      get, {FileFormat::kMatrixMarket, FileFormat::kNpy, FileFormat::kText},
      [=](FileFormat format) { arguments->format = format; },
      "mtx (Matrix Market; p from 1), npy or txt (p from 0); mtx unless given");
}

}  // namespace crout::cli
