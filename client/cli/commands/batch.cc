// SPDX-License-Identifier: Apache-2.0

// factor-batch, solve-batch
#include <algorithm>
#include <complex>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/reported_call.h"
#include "client/cli/exit_codes.h"
#include "client/cli/input/batch_files.h"
#include "client/cli/input/matrix_input.h"
#include "client/cli/options/factor_options.h"
#include "client/cli/options/option_values.h"
#include "client/cli/output/array_files.h"
#include "client/cli/output/array_writer.h"
#include "client/cli/report/text.h"

namespace crout::cli {
namespace {

struct FactorBatchArguments {
  std::vector<std::string> paths;
  std::optional<Dtype> dtype;
  FactorOptions options;
  CacheOptions cache;
  std::string from;
  bool fail_singular = false;
};

struct SolveBatchArguments {
  std::string factor;
  std::vector<std::string> paths;
  bool ones = false;
  int64_t nrhs = 1;  // columns of ones
  std::optional<Dtype> dtype;
  std::vector<int64_t> members;  // empty: the first members; with `ones`, all
  SolveOptions options;
  std::string prefix;
  FileFormat format = FileFormat::kMatrixMarket;
};

// Parses members such as "0,3,5-9". False for invalid text.
bool ParseMembers(const std::string& text, std::vector<int64_t>* members) {
  constexpr int64_t kLimit = int64_t{1} << 31;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> ends = absl::StrSplit(part, '-');
    int64_t first = 0, last = 0;
    if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &first) ||
        !absl::SimpleAtoi(ends.back(), &last) || first < 0 || last < first || last >= kLimit ||
        static_cast<int64_t>(members->size()) + last - first >= kLimit / 16) {
      return false;
    }
    for (int64_t member = first; member <= last; ++member) members->push_back(member);
  }
  return true;
}

BatchSource SourceOf(const std::vector<BatchFile>& files) {
  BatchSource source;
  for (size_t k = 0; k < files.size(); ++k) {
    AddTo(&source, files[k].matrix, static_cast<int64_t>(k));
  }
  return source;
}

Json MembersOf(const std::vector<BatchFile>& files, const MemberFigures& figures) {
  Json members = Json::array();
  for (size_t k = 0; k < files.size(); ++k) {
    members.push_back({{"member", k},
                       {"file", files[k].name},
                       {"rows", files[k].matrix.rows},
                       {"cols", files[k].matrix.cols},
                       {"info", figures.info[k]},
                       {"pivot_growth", ToJson(figures.pivot_growth[k])},
                       {"quality", ToJson(figures.quality[k])}});
  }
  return members;
}

absl::Status RunFactorBatch(Session* session, const FactorBatchArguments& arguments) {
  const auto files = ReadBatch(arguments.paths, arguments.dtype, session->deadline());
  if (!files.ok()) return files.status();
  std::string replaced;
  if (!arguments.from.empty()) {
    auto handle = session->Handle(arguments.from);
    if (!handle.ok()) return handle.status();
    replaced = *std::move(handle);
  }
  const auto made = WithProgressBar(*session, [&](const CallOptions& call) {
    Client& client = session->client();
    const BatchSource source = SourceOf(*files);
    const MatrixSource matrices = MatrixSource::Batch(source);
    return replaced.empty()
               ? client.Factor(matrices, arguments.options, arguments.cache, call)
               : client.Refactor(replaced, matrices, {.factor = arguments.options}, call);
  });
  if (!made.ok()) return made.status();
  Json json = ToJson(*made);
  const std::string text = FormatObject(json);
  json["members"] = MembersOf(*files, made->members);
  const int64_t singular = made->batch.value_or(BatchInfo()).singular;
  if (singular > 0 && arguments.fail_singular) session->ExitWith(kSingular);
  session->Print({json, text, SummaryOf(*made), {made->handle}});
  if (singular > 0) {
    const auto& info = made->members.info;
    const auto first = std::find_if(info.begin(), info.end(), [](int32_t i) { return i > 0; });
    const auto k = static_cast<size_t>(first - info.begin());
    session->Warn(absl::StrCat(singular, " of ", files->size(), " members ",
                               singular == 1 ? "is" : "are", " singular; the first is ",
                               Printable(absl::StrCat(k, " (", (*files)[k].name, ")")),
                               ". Solutions with singular members are NaN"));
  }
  WarnOf(session, *made);
  return absl::OkStatus();
}

absl::Status WriteMember(ArrayFiles* files, const BatchMatrices& x, int64_t k, int64_t member) {
  // In an archive the part's name has no prefix.
  const auto writer =
      files->NewWriter(files->in_archive() ? absl::StrCat("x_", member) : absl::StrCat(member));
  if (!writer.ok()) return writer.status();
  const Element element = ElementOf(x.dtype());
  absl::Status begun = (*writer)->Begin(element, x.rows(k), x.cols(k));
  if (!begun.ok()) return begun;
  const auto count = static_cast<size_t>(x.rows(k) * x.cols(k));
  const absl::Span<const std::byte> bytes = {
      reinterpret_cast<const std::byte*>(x.values<char>(k).data()), count * SizeOf(element)};
  if (absl::Status written = (*writer)->Append(bytes); !written.ok()) return written;
  return (*writer)->Close();
}

// Right-hand sides; `source` refers to them.
struct Sides {
  std::vector<BatchFile> files;
  Array ones;  // has the rows of the largest member; smaller members use a part
  std::vector<int64_t> members;
  BatchSource source;
};

absl::StatusOr<Sides> ReadSides(const Session& session, const SolveBatchArguments& arguments,
                                Dtype dtype) {
  Sides sides;
  auto files = ReadBatch(arguments.paths, dtype, session.deadline());
  if (!files.ok()) return files.status();
  sides.files = *std::move(files);
  sides.members = arguments.members;
  if (sides.members.empty()) {
    sides.members.resize(sides.files.size());
    std::iota(sides.members.begin(), sides.members.end(), int64_t{0});
  }
  if (sides.members.size() != sides.files.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(sides.files.size(), " right-hand sides for ", sides.members.size(),
                     " members. Give one right-hand side for each member of --members"));
  }
  for (size_t k = 0; k < sides.files.size(); ++k) {
    AddTo(&sides.source, sides.files[k].matrix, sides.members[k]);
  }
  return sides;
}

absl::StatusOr<Sides> MakeOnes(Session* session, const std::string& handle,
                               const SolveBatchArguments& arguments, Dtype dtype) {
  const auto shapes = session->client().MemberShapes(handle, session->call());
  if (!shapes.ok()) return shapes.status();
  const auto count = static_cast<int64_t>(shapes->size());
  Sides sides;
  sides.members = arguments.members;
  if (sides.members.empty()) {
    sides.members.resize(shapes->size());
    std::iota(sides.members.begin(), sides.members.end(), int64_t{0});
  }
  int64_t max_rows = 0;
  for (const int64_t member : sides.members) {
    if (member >= count) {
      return absl::InvalidArgumentError(
          absl::StrCat("member ", member, " is not in [0, ", count, ") of this batch"));
    }
    max_rows = std::max(max_rows, (*shapes)[static_cast<size_t>(member)].rows);
  }
  const int64_t elements = max_rows * arguments.nrhs;
  if (elements > kMaxBatchBytes / static_cast<int64_t>(sizeof(std::complex<double>))) {
    return absl::ResourceExhaustedError(
        absl::StrCat("--nrhs: right-hand sides of ones for the largest member exceed ",
                     kMaxBatchBytes, " bytes. Use fewer columns"));
  }
  const std::vector<double> values(static_cast<size_t>(elements), 1.0);
  const auto bytes = std::as_bytes(std::span(values));
  auto ones = Array{.dtype = Dtype::kFloat64,
                    .rows = max_rows,
                    .cols = arguments.nrhs,
                    .bytes = {bytes.begin(), bytes.end()}}
                  .As(dtype);
  if (!ones.ok()) return ones.status();
  sides.ones = *std::move(ones);
  for (const int64_t member : sides.members) {
    sides.ones.rows = (*shapes)[static_cast<size_t>(member)].rows;
    AddTo(&sides.source, sides.ones, member);
  }
  return sides;
}

// Converts the result of a batch without the fields that only a single solve has.
Json ToBatchJson(const SolveResult& result) {
  Json json = ToJson(result);
  const Json counts = json.value("batch", Json::object());
  for (const char* key : {"batch", "refinement_steps", "solver", "fallback", "nrhs"}) {
    json.erase(key);
  }
  json.update(counts);
  return json;
}

absl::Status RunSolveBatch(Session* session, const SolveBatchArguments& arguments) {
  ArrayFiles files(arguments.prefix, arguments.format);
  const bool writes = !arguments.prefix.empty() || session->show() != Show::kJson;
  if (writes && files.on_standard_output()) session->ReportOnStandardError();
  const auto handle = session->Handle(arguments.factor);
  if (!handle.ok()) return handle.status();
  std::optional<Dtype> dtype = arguments.dtype;
  if (!dtype) {
    const auto factor = session->client().Describe(*handle, session->call());
    if (!factor.ok()) return factor.status();
    dtype = factor->matrix_dtype.value_or(Dtype::kFloat64);
  }
  const auto sides = arguments.ones ? MakeOnes(session, *handle, arguments, *dtype)
                                    : ReadSides(*session, arguments, *dtype);
  if (!sides.ok()) return sides.status();
  BatchMatrices x;
  const auto solution = WithProgressBar(*session, [&](const CallOptions& call) {
    return session->client().Solve(*handle, MatrixSource::BatchRhs(sides->source),
                                   arguments.options, &x, call);
  });
  if (!solution.ok()) return solution.status();
  Json systems = Json::array();
  for (size_t k = 0; k < sides->members.size(); ++k) {
    const int64_t member = sides->members[k];
    Json system = {{"member", member}};
    if (solution->backward_error) {
      system["backward_error"] = ToJson(solution->systems.backward_error[k]);
    }
    system["info"] = solution->systems.info[k];
    if (writes) {
      absl::Status written = WriteMember(&files, x, static_cast<int64_t>(k), member);
      if (written.ok()) written = files.Flush();
      if (!written.ok()) return written;
      if (!arguments.prefix.empty()) system["file"] = files.names().back();
    }
    systems.push_back(std::move(system));
  }
  if (absl::Status closed = writes ? files.Close() : absl::OkStatus(); !closed.ok()) return closed;
  Json json = ToBatchJson(*solution);
  const std::string text = absl::StrCat(
      FormatObject(json), FormatObjects({"member", "backward_error", "info", "file"}, systems));
  json["systems"] = std::move(systems);
  const bool are_named = writes && (!arguments.prefix.empty() || files.in_archive());
  const std::vector<std::string> unnamed(writes ? 1 : 0, "on standard output");
  session->Print({json, text, BatchSummaryOf(*solution, are_named ? files.names() : unnamed)});
  if (const int64_t singular = solution->batch.value_or(BatchSolveInfo()).singular; singular > 0) {
    session->Warn(absl::StrCat(singular, " of ", sides->members.size(), " systems ",
                               singular == 1 ? "has" : "have",
                               " a singular member. Solutions with singular members are NaN"));
  }
  WarnOf(session, *solution);
  return absl::OkStatus();
}

CLI::Option* AddPaths(CLI::App* command, std::vector<std::string>* paths, const std::string& what) {
  return command
      ->add_option("files", *paths,
                   absl::StrCat(what,
                                ": Matrix Market, .npy, .npz or text files; directories, whose "
                                ".mtx, .npy, .npz, .txt and .csv files (plain or .gz) are ordered "
                                "by name; tar archives (plain or gzip), in their order; -: a file "
                                "or tar on standard input"))
      ->check(InputPath());
}

void AddFactorBatch(CLI::App* app, Session* session) {
  const auto factoring = std::make_shared<FactorBatchArguments>();
  CLI::App* factor = session->AddCommand(
      app, "factor-batch", "Factor many matrices in one batch and keep the factors in the cache",
      [=] { return RunFactorBatch(session, *factoring); });
  AddPaths(factor, &factoring->paths, "Matrices, the members of the batch, counted from 0")
      ->required();
  factor->parse_complete_callback([=] { CheckOneStandardInput(factoring->paths); });
  BeginSection(factor, "Input");
  AddEnumOption(factor, "--dtype", &factoring->dtype,
                "Type of all members [default: the smallest type that holds all files]");
  BeginSection(factor, "Method");
  factor
      ->add_option_function<std::string>(
          "--device", [=](const std::string& name) { factoring->options.device = name; },
          kDeviceHelp)
      ->type_name("DEVICE");
  BeginSection(factor, "Cache");
  factor->add_flag_function(
      "--no-keep-matrix", [=](int64_t) { factoring->options.keep_matrix = false; },
      "Discard the matrices after factoring; solves are then not verified");
  AddCacheOptions(factor, &factoring->cache);
  AddRequestIdOption(factor, &factoring->cache);
  CLI::Option* from =
      factor->add_option("--from", factoring->from,
                         "Handle or name of a batch to replace; its members must have the same "
                         "sizes");
  for (const char* kept : {"--lease", "--name", "--request-id"}) {
    from->excludes(factor->get_option(kept));  // these stay unchanged
  }
  BeginSection(factor, "Output");
  factor->add_flag("--fail-singular", factoring->fail_singular,
                   absl::StrCat("Exit with ", kSingular, " if a member is singular"));
}

void AddSolveBatch(CLI::App* app, Session* session) {
  const auto solving = std::make_shared<SolveBatchArguments>();
  CLI::App* solve =
      session->AddCommand(app, "solve-batch", "Solve systems with members of a cached batch",
                          [=] { return RunSolveBatch(session, *solving); });
  AddFactorArgument(solve, &solving->factor);
  CLI::Option* files = AddPaths(solve, &solving->paths, "Right-hand sides");
  BeginSection(solve, "Input");
  CLI::Option* ones = solve
                          ->add_flag("--ones", solving->ones,
                                     "Use right-hand sides of ones for all members or --members")
                          ->excludes(files);
  solve->add_option("--nrhs", solving->nrhs, "Columns of each right-hand side of ones")
      ->capture_default_str()
      ->needs(ones)
      ->check(InRange(int64_t{0}, int64_t{1} << 24));
  solve->parse_complete_callback([=] {
    CheckOneStandardInput(solving->paths);
    if (files->count() + ones->count() == 0) throw CLI::RequiredError("files or --ones");
  });
  AddEnumOption(solve, "--dtype", &solving->dtype,
                "Type of right-hand sides and solutions [default: the batch's]");
  solve
      ->add_option_function<std::string>(
          "--members",
          [=](const std::string& text) {
            solving->members.clear();
            if (!ParseMembers(text, &solving->members)) {
              throw CLI::ValidationError(
                  "--members", "the list must be members counted from 0, such as 0,3,5-9");
            }
          },
          "Members of the right-hand sides, such as 0,3,5-9 [default: the first ones in order; "
          "with --ones all]")
      ->type_name("LIST");
  BeginSection(solve, "Method");
  AddOperationFlags(solve, [=](Operation op) { solving->options.operation = op; });
  solve->add_flag_function(
      "--no-verify", [=](int64_t) { solving->options.verify = false; }, "Skip the backward errors");
  BeginSection(solve, "Output");
  solve
      ->add_option("-o,--output", solving->prefix,
                   "Write the solutions to PREFIX_0.mtx, PREFIX_1.mtx, ..., by member; -: one .npz "
                   "archive of x_0, x_1, ... to standard output, with the report on standard "
                   "error [default: one after the other on standard output; with --json, nothing "
                   "is written]")
      ->type_name("PREFIX|-");
  AddFormatOption(
      solve, {FileFormat::kMatrixMarket, FileFormat::kNpy, FileFormat::kNpz, FileFormat::kText},
      [=](FileFormat format) { solving->format = format; },
      "Format of the files: mtx (Matrix Market), npy, npz (one array x) or txt [default: mtx]");
}

}  // namespace

void AddBatchCommands(CLI::App* app, Session* session) {
  AddFactorBatch(app, session);
  AddSolveBatch(app, session);
}

}  // namespace crout::cli
