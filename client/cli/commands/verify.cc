// SPDX-License-Identifier: Apache-2.0

// verify
#include <memory>

#include "client/cli/commands/backward_error.h"
#include "client/cli/commands/commands.h"
#include "client/cli/input/matrix_input.h"

namespace crout::cli {
namespace {

struct VerifyArguments {
  std::string a, x, b;
  Operation operation = Operation::kNone;
};

absl::Status RunVerify(Session* session, const VerifyArguments& arguments) {
  const auto a = LocalMatrix::Load(arguments.a);
  if (!a.ok()) return a.status();
  const auto x = LocalMatrix::Load(arguments.x);
  if (!x.ok()) return x.status();
  const auto b = LocalMatrix::Load(arguments.b);
  if (!b.ok()) return b.status();
  const auto errors = ComputeBackwardErrors(*a, arguments.operation, *x, *b);
  if (!errors.ok()) return errors.status();
  session->PrintFields(Json{{"n", a->rows()},
                            {"nrhs", x->cols()},
                            {"backward_error", ToJson(errors->normwise)},
                            {"componentwise_error", ToJson(errors->componentwise)}});
  return absl::OkStatus();
}

}  // namespace

void AddVerifyCommand(CLI::App* app, Session* session) {
  const auto arguments = std::make_shared<VerifyArguments>();
  CLI::App* verify = session->AddLocalCommand(
      app, "verify", "Compute the backward errors of a solution X of A X = B, without a server",
      [=] { return RunVerify(session, *arguments); });
  verify
      ->add_option("A", arguments->a,
                   "File of the matrix: Matrix Market, .npy, .npz (F.npz:NAME) or text")
      ->required()
      ->check(InputFile());
  verify->add_option("X", arguments->x, "File of the solution, in a dense format")
      ->required()
      ->check(InputFile());
  verify->add_option("B", arguments->b, "File of the right-hand side")
      ->required()
      ->check(InputFile());
  BeginSection(verify, "Method");
  CLI::Option* transpose = verify->add_flag_callback(
      "--transpose", [=] { arguments->operation = Operation::kTranspose; },
      "X solves the transposed system");
  verify
      ->add_flag_callback(
          "--conjugate-transpose", [=] { arguments->operation = Operation::kConjugateTranspose; },
          "X solves the conjugate transposed system")
      ->excludes(transpose);
  verify->parse_complete_callback([=] {
    CheckOneStandardInput({arguments->a, arguments->x, arguments->b});
  });
}

}  // namespace crout::cli
