# SPDX-License-Identifier: Apache-2.0
"""Factor and solve, compared with SciPy."""

import gzip
import math
import re
import typing

import numpy as np
import pytest
import scipy.io
import scipy.linalg
import scipy.sparse
from accuracy import assert_close, assert_solves

import crout
from crout import _options
from crout.v1 import factor_pb2
from crout.v1 import factorization_service_pb2 as service


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(40,), (40, 1), (40, 3)])
def test_solves_as_scipy(client, regular, rng, dtype, order, shape):
    A = np.asarray(regular(40, dtype), order=order)
    b = np.asarray(rng.standard_normal(shape).astype(dtype), order=order)
    f = client.lu_factor(A)
    x = f.solve(b)
    assert (x.shape, x.dtype) == (shape, dtype)
    assert_solves(A, x, b, dtype)
    assert_close(x, scipy.linalg.solve(A, b), dtype)
    assert_solves(A.T, f.solve(b, trans=1), b, dtype)
    assert_solves(A.T, client.lu_solve(f, b, trans=1), b, dtype)
    assert_solves(A, client.lu_solve(f.handle, b), b, dtype)
    assert_solves(A, client.solve(A, b), b, dtype)


def test_many_messages(client, regular, rng):
    A, b = regular(600), rng.standard_normal((600, 300))  # 2.75 MiB and 1.4 MiB: several messages each
    assert_solves(A, client.lu_factor(A).solve(b), b)
    assert_solves(A, client.solve(A, b), b)


@pytest.mark.parametrize("n", [0, 1])
def test_smallest_matrices(client, n):
    A, b = 2 * np.eye(n), np.ones(n)
    f = client.lu_factor(A)
    assert_close(f.solve(b), b / 2)
    assert f.solve(np.ones((n, 0))).shape == (n, 0)
    assert_close(f.to_lu()[2], A)
    assert f.rcond == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda A: A.tolist(),
        lambda A: A.astype(int),
        lambda A: A.astype(np.uint8),
        lambda A: A.astype(np.float16),
        lambda A: A.astype(">f8"),
        lambda A: np.repeat(A, 2, axis=1)[:, ::2],
        lambda A: A[::-1],
        scipy.sparse.csr_matrix,
        scipy.sparse.coo_array,
    ],
    ids=["list", "int", "uint8", "float16", "big-endian", "strided", "reversed", "csr", "coo"],
)
def test_accepts_every_type_of_matrix(client, rng, make):
    A = rng.integers(0, 9, (12, 12)) + 50.0 * np.eye(12)
    made = make(A)
    dense = made.toarray() if scipy.sparse.issparse(made) else np.asarray(made, float)
    b = np.arange(12)
    f = client.lu_factor(made)
    assert_solves(dense, f.solve(b), b, f.dtype)


def test_complex_files_are_complex_matrices(client, rng, tmp_path):
    A = rng.standard_normal((12, 12)) + 1j * rng.standard_normal((12, 12))
    A += A.conj().T + 12 * np.eye(12)
    path = tmp_path / "H.mtx"
    scipy.io.mmwrite(path, scipy.sparse.coo_array(A), precision=17, symmetry="hermitian")
    packed = tmp_path / "H.mtx.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    b = np.ones(12)
    for file in (path, packed):
        np.testing.assert_allclose(A @ client.solve(file, b), b, atol=1e-12)
        with client.lu_factor(file) as f:
            np.testing.assert_allclose(A @ f.solve(b), b, atol=1e-12)


def test_sparse_and_files(client, rng, tmp_path):
    A = scipy.sparse.random(60, 60, 0.1, random_state=1) * np.pi + scipy.sparse.diags(rng.random(60) + 5)
    lu = scipy.linalg.lu_factor(A.toarray())[0]
    scipy.io.mmwrite(tmp_path / "A.mtx", A, precision=17)
    packed = tmp_path / "A.mtx.gz"
    packed.write_bytes(gzip.compress((tmp_path / "A.mtx").read_bytes()))
    for source in (A, tmp_path / "A.mtx", str(packed)):
        f = client.lu_factor(source)
        assert f.record.nnz == A.nnz
        assert_close(f.to_lu_piv()[0], lu)


def test_files_of_many_messages(client, rng):
    A = scipy.sparse.random(400, 400, 0.5, random_state=2) + 400 * scipy.sparse.eye(400)
    f = client.lu_factor(A)
    assert f.record.nnz == A.nnz
    b = rng.standard_normal(400)
    assert_solves(A.toarray(), f.solve(b), b)


def test_accepts_every_type_of_right_hand_side(client, regular, tmp_path):
    A = regular(8)
    b = np.arange(16.0).reshape(8, 2)
    f = client.lu_factor(A)
    scipy.io.mmwrite(tmp_path / "b.mtx", b, precision=17)
    for source in (b.tolist(), scipy.sparse.csc_matrix(b), tmp_path / "b.mtx", b.astype(np.int32)):
        assert_close(f.solve(source), np.linalg.solve(A, b))


def test_types_are_promoted_as_in_scipy(client, regular):
    A = regular(10)
    assert client.lu_factor(A).solve(np.ones(10, np.float32)).dtype == np.float64
    single = client.lu_factor(A.astype(np.float32))
    assert single.dtype == np.float32
    assert single.solve(np.ones(10)).dtype == np.float64
    assert client.solve(A, np.ones(10, np.float32)).dtype == np.float64


def test_overwrite_b(client, regular):
    A, b = regular(10), np.ones((10, 2))
    f = client.lu_factor(A)
    assert np.shares_memory(f.solve(b, overwrite_b=True), b)
    assert_close(b, np.linalg.solve(A, np.ones((10, 2))))
    kept = np.ones(10)
    assert not np.shares_memory(f.solve(kept), kept)
    frozen = np.ones(10)
    frozen.flags.writeable = False
    assert_close(f.solve(frozen, overwrite_b=True), np.linalg.solve(A, frozen))
    np.testing.assert_array_equal(frozen, 1)


def test_diagnostics(client, regular):
    A, b = regular(30), np.ones(30)
    f = client.lu_factor(A, dtype=np.float32, rcond=True, determinant=True, name="mixed", lease="4m60s")
    assert (f.name, f.version, f.n, f.shape, f.dtype, f.info) == ("mixed", 1, 30, (30, 30), np.float32, 0)
    assert f.quality < 30
    assert f.record.matrix_dtype == np.float64
    life = (f.record.lease_expire_time - f.record.create_time).total_seconds()
    assert life == pytest.approx(300, abs=60)
    solution = f.solve(b, full_output=True, refine=5, error_bound=True, componentwise_error=True)
    assert_solves(A, solution.x, b)
    assert solution.backward_error <= 1e-15
    assert solution.refinement_steps >= 1
    assert 0 < solution.forward_error_bound < 1e-6
    assert solution.componentwise_error is not None
    assert solution.factor_version == 1
    assert f.solve(b, full_output=True, verify=False).backward_error is None
    both = client.solve(A, b, full_output=True)
    assert both.factor.n == 30
    assert not both.factor.handle


def test_solves_with_a_low_precision_factor_are_corrected(client, regular):
    A, b = regular(60), np.ones(60)
    f = client.lu_factor(A, precision="single")
    assert f.dtype == np.float32
    assert (f.record.precision, f.record.precision_fallback) == ("single", None)
    solution = f.solve(b, full_output=True)
    assert_solves(A, solution.x, b)
    assert solution.backward_error <= np.sqrt(60) * 2.0**-53
    assert solution.corrections >= 1
    assert solution.warnings == ()
    plain = client.lu_factor(A, precision="auto")
    assert (plain.dtype, plain.record.precision) == (np.float64, None)
    assert plain.solve(b, full_output=True).corrections is None
    with pytest.raises(crout.InvalidRequest):
        client.lu_factor(A, precision="half")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.lu_factor(np.ones((2, 3))), "2 x 3: give a square matrix"),
        (lambda c: c.lu_factor(np.ones(3)), "two dimensions"),
        (lambda c: c.lu_factor(np.eye(2, dtype=object)), "arrays of object cannot be sent"),
        (lambda c: c.lu_factor(np.array([["a"]])), "cannot be sent"),
        (lambda c: c.lu_factor(np.eye(2), lease="1 week"), "the lease is '1 week'"),
        (lambda c: c.lu_factor(np.eye(2), lease=-1), "give a positive length"),
        (lambda c: c.lu_factor(np.eye(2), algorithm="qr"), "unknown algorithm 'qr': use one of auto"),
        (lambda c: c.lu_factor(np.eye(2), lease=math.nan), "the lease is nan"),
        (lambda c: c.lu_factor(np.eye(2), lease=math.inf), "the lease is inf"),
        (lambda c: c.lu_factor(np.eye(2), lease=f"1{'0' * 400}h"), "give a positive length"),
        (lambda c: c.lu_factor(np.eye(2)).renew(math.nan), "the lease is nan"),
        (lambda c: c.lu_factor(np.eye(2), timeout=0), "timeout"),
        (lambda c: c.lu_factor(np.eye(2), timeout=math.nan), "the timeout is nan s"),
        (lambda c: c.lu_factor(np.eye(2)).solve(np.ones(2), timeout=math.nan), "the timeout is nan s"),
        (lambda c: c.lu_factor(np.eye(2), name="\udcff"), "name .* cannot be encoded"),
        (lambda c: c.lu_factor(np.eye(2), request_id="\udcff"), "request_id .* cannot be encoded"),
        (lambda c: c.lu_factor(np.eye(2), device="\udcff"), "device .* cannot be encoded"),
        (lambda c: list(c.list("\udcff")), "name .* cannot be encoded"),
        (lambda c: c.describe("\udcff"), "handle .* cannot be encoded"),
        (lambda c: c.lu_factor(np.eye(2), equilibrate="yes"), "equilibrate is 'yes': use True, False or"),
        (lambda c: c.lu_factor(np.eye(2), dtype=int), "float32, float64, complex64 or complex128"),
        (lambda c: c.lu_factor(np.eye(2)).solve(np.ones(2), refine=2**40), "refine is 1099511627776"),
        (lambda c: c.estimate(2**70), "the n is 1180591620717411303424"),
        (lambda c: c.lu_factor(np.eye(2)).solve(np.ones((1, 2))), r"order 2: .*b\.T"),
        (lambda c: c.lu_factor(np.array([[1.0, np.nan], [0, 1]])), r"\(1, 2\)|nan|NaN|finite"),
        (lambda c: c.lu_factor(np.eye(2), device="cuda:7"), "unknown device 'cuda:7'; available: host"),
        (lambda c: c.lu_factor(np.eye(2)).solve(np.ones(3)), "b has 3 rows, and the matrix has order 2"),
        (lambda c: c.lu_factor(np.eye(2)).solve(np.ones(2), trans=3), "trans is 3"),
        (lambda c: c.lu_factor(np.eye(2)).solve(np.ones((2, 1, 1))), "3 dimensions"),
        (lambda c: c.lu_factor(np.eye(2)).solve(np.ones(2), refine=101), "refine"),
        (lambda c: c.lu_factor(np.eye(2)).refactor(np.eye(3)), "order 3, the factor 2"),
        (lambda c: c.lu_factor(np.eye(2), keep_matrix=False).solve(np.ones(2), refine=1), "need the matrix"),
        (lambda c: c.schur_complement(np.eye(2), 3), "leading_order is 3: give 0 to 2"),
        (
            lambda c: c.lu_factor(np.eye(2), precision="tf32"),
            "TF32 .* device host .* precision single or auto",
        ),
        (
            lambda c: c.lu_factor(np.eye(2), algorithm="klu"),
            "klu factors sparse matrices, and this one is dense",
        ),
        (lambda c: c.lu_factor(np.eye(2), precision="single", keep_matrix=False), "leave keep_matrix= out"),
        (lambda c: c.lu_factor(np.eye(2), precision="single", dtype="f4"), "leave dtype= out"),
        (
            lambda c: c.lu_factor(np.eye(2), algorithm="gem", parameters={"tolerance": 0.1}),
            "'gem' takes no tolerance. Omit it, or choose",
        ),
        (
            lambda c: c.lu_factor(np.eye(2), algorithm="icmpp", parameters={"threshold": 0.1}),
            "only the pivot rule threshold uses a threshold",
        ),
        (lambda c: c.solve(np.eye(2), np.ones(2), solver="getrs", tolerance=0.1), "use solver 'is'"),
    ],
)
def test_errors_name_the_problem(client, call, message):
    with pytest.raises(crout.InvalidRequest, match=message) as caught:
        call(client)
    assert isinstance(caught.value, ValueError)
    assert caught.value.code in ("INVALID_ARGUMENT", "FAILED_PRECONDITION")
    # Messages must not use names of protocol fields that are no keywords of the package.
    assert not re.search(r"header|factor_dtype|max_refinement|SINGLE|PIVOT_RULE", str(caught.value))


@pytest.mark.parametrize("precision", ["single", "auto"])
def test_a_method_without_tf32_accepts_other_precisions(client, precision):
    assert client.lu_factor(np.eye(2), algorithm="gem", precision=precision).record.algorithm == "gem"


def test_unavailable_methods_are_not_supported(client):
    with pytest.raises(crout.NotSupported, match="crout_lu") as caught:
        client.lu_factor(np.eye(2), algorithm="crout_lu")
    assert isinstance(caught.value, NotImplementedError)


def test_unknown_keywords_are_type_errors(client):
    with pytest.raises(TypeError, match="algorythm"):
        client.lu_factor(np.eye(2), algorythm="getrf")
    with pytest.raises(TypeError, match=r"unknown parameter 'tolerence': the parameters are .*tolerance"):
        client.lu_factor(np.eye(2), parameters={"tolerence": 1e-3})


@pytest.mark.parametrize(
    "options",
    [
        {"name": 5},
        {"name": None},
        {"request_id": 3},
        {"device": 0},
        {"algorithm": None},
        {"lease": [1]},
        {"timeout": "5s"},
        {"progress": 3},
        {"parameters": [1]},
        {"parameters": {"tolerance": "a"}},
        {"parameters": {"interval": 3}},
        {"parameters": {"section_size": 1.5}},
    ],
    ids=str,
)
def test_options_of_another_type_are_named(client, options):
    with pytest.raises(TypeError, match=f"^the {_innermost(options)} is "):
        client.lu_factor(np.eye(2), **options)


def _innermost(options):
    ((name, value),) = options.items()
    return _innermost(value) if isinstance(value, dict) else name


def test_arguments_of_another_type_are_named(client):
    f = client.lu_factor(np.eye(2))
    for option, value in (("refine", 1.5), ("tolerance", "a"), ("trans", [1]), ("solver", None)):
        with pytest.raises(TypeError, match=f"^the {option} is "):
            f.solve(np.ones(2), **{option: value})
    with pytest.raises(TypeError, match=r"^the leading_order is 1\.5: give an int"):
        client.schur_complement(np.eye(2), 1.5)
    with pytest.raises(TypeError, match=r"^the n is 1000\.0: give an int"):
        client.estimate(1e3)
    assert client.estimate(np.int64(10)).fits
    assert f.solve(np.ones(2), refine=np.int32(1)).tolist() == [1, 1]


def test_factors_of_scipy_are_rejected(client):
    pair = scipy.linalg.lu_factor(np.eye(2))
    with pytest.raises(TypeError, match=r"scipy\.linalg\.lu_solve"):
        client.lu_solve(pair, np.ones(2))
    with pytest.raises(TypeError, match="Factor"):
        client.lu_solve(np.eye(2), np.ones(2))
    with pytest.raises(TypeError, match="ndarray"):
        client.describe(np.eye(2))


def test_a_missing_file_is_reported(client):
    with pytest.raises(FileNotFoundError):
        client.lu_factor("no/such.mtx")


@pytest.mark.parametrize(
    ("names", "enum", "prefix"),
    [
        (crout.Algorithm, factor_pb2.Algorithm, "ALGORITHM_"),
        (crout.Precision, factor_pb2.FactorPrecision, "FACTOR_PRECISION_"),
        (crout.Solver, factor_pb2.Solver, "SOLVER_"),
        (crout.Strategy, service.SeriesStrategy, "SERIES_STRATEGY_"),
    ],
)
def test_literal_types_have_all_names_of_the_contract(names, enum, prefix):
    assert list(typing.get_args(names)) == list(_options._words(enum, prefix))
