# SPDX-License-Identifier: Apache-2.0
"""Conversion of arguments to bytes, and its copies."""

import numpy as np
import pytest
import scipy.sparse

import crout
from crout import _payload, _wire
from crout._call import Call
from crout._memory import Loan
from crout.v1 import matrix_pb2


def bytes_of(payload):
    return b"".join(payload.open())


@pytest.mark.parametrize("order", ["C", "F"])
def test_contiguous_arrays_are_not_copied(order):
    A = np.asarray(np.arange(600_000.0).reshape(600, 1000), order=order)
    payload = _payload.matrix(A)
    pieces = list(payload.open())
    assert max(map(len, pieces)) <= _payload.CHUNK
    assert all(np.shares_memory(np.frombuffer(piece, np.uint8), A) for piece in pieces)
    np.testing.assert_array_equal(np.frombuffer(bytes_of(payload)), A.ravel(order))
    assert payload.spec.dense.layout == (2 if order == "C" else 1)


def test_a_payload_is_returned_unchanged():
    made = _payload.matrix(scipy.sparse.eye(3, format="csr"))
    assert _payload.square(made) is made
    assert _payload.square_values(made) is made
    with pytest.raises(crout.InvalidRequest, match="3 x 4"):
        _payload.square(_payload.matrix(scipy.sparse.eye(3, 4, format="csr")))


class Exporter:
    """Supports DLPack and claims to be on a device of the given type."""

    def __init__(self, array, device=1):
        self._array, self._device = array, device

    def __dlpack_device__(self):
        return (self._device, 0)

    def __dlpack__(self, **options):
        assert self._device == 1
        return self._array.__dlpack__()


class FakeCupy(Exporter):
    def get(self):
        return self._array


class FakeTorch(Exporter):
    detached = False

    def cpu(self):
        return FakeTorch(self._array)

    def detach(self):
        tensor = FakeTorch(self._array, self._device)
        tensor.detached = True
        return tensor

    def __dlpack__(self, **options):
        assert self.detached
        return super().__dlpack__()


@pytest.mark.parametrize("make", [Exporter, FakeCupy, FakeTorch])
def test_dlpack_on_the_host_is_not_copied(make):
    A = np.arange(4.0).reshape(2, 2)
    assert np.shares_memory(_payload.as_array(make(A)), A)


@pytest.mark.parametrize("make", [FakeCupy, FakeTorch])
def test_dlpack_on_a_device_is_copied_to_the_host(make):
    A = np.arange(4.0).reshape(2, 2)
    np.testing.assert_array_equal(_payload.as_array(make(A, device=2)), A)
    with pytest.raises(crout.InvalidRequest, match="Exporter is not in host memory"):
        _payload.as_array(Exporter(A, device=2))


def test_the_array_protocol():
    class Wrapper:
        def __array__(self, dtype=None, copy=None):
            return np.eye(2)

    assert bytes_of(_payload.matrix(Wrapper())) == np.eye(2).tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_compressed_rows_are_sent_without_conversion(rng, dtype):
    A = scipy.sparse.random(50, 50, 0.1, format="csr", random_state=1).astype(dtype)
    payload = _payload.matrix(A)
    assert payload.spec.sparse.format == matrix_pb2.SPARSE_FORMAT_COMPRESSED_ROWS
    assert payload.spec.sparse.entries == A.nnz
    assert bytes_of(payload) == A.indptr.tobytes() + A.indices.tobytes() + A.data.tobytes()


@pytest.mark.parametrize("form", ["coo", "csc", "dok", "bsr"])
def test_other_sparse_formats_are_sent_as_coordinates(form):
    A = scipy.sparse.random(50, 50, 0.1, format=form, random_state=1)
    payload = _payload.matrix(A)
    spec = payload.spec.sparse
    assert spec.format == matrix_pb2.SPARSE_FORMAT_COORDINATE
    index = np.dtype(f"i{spec.index_bytes}")
    sent = bytes_of(payload)
    row, col = np.frombuffer(sent[: 2 * spec.entries * index.itemsize], index).reshape(2, -1)
    data = np.frombuffer(sent[2 * spec.entries * index.itemsize :])
    back = scipy.sparse.coo_matrix((data, (row, col)), shape=(50, 50))
    np.testing.assert_array_equal(back.toarray(), A.toarray())


def test_pattern_digest_matches_the_contract():
    # Implements the definition in factor.proto. tests/kernels/sparse/analysis_test.cc has the same numbers.
    def digest(entries, n):
        row, col = np.array(entries, int).reshape(-1, 2).T
        matrix = scipy.sparse.coo_matrix((np.zeros(len(row)), (row, col)), (n, n))
        return _payload.sparse_values(matrix).spec.values.pattern_digest

    assert digest([(0, 0)], 1) == digest([(0, 0), (0, 0)], 1) == "732ad62604202a70"
    assert digest([(1, 1), (0, 0), (2, 2), (1, 0), (0, 2)], 3) == "5a64c6085eda5b5d"
    assert digest([], 1) == "910a2dec89025cc1"


def test_entry_digest_matches_the_contract():
    # Implements the definition of SeriesResult.entry_digest. tests/kernels/io/value_map_test.cc has the same
    # numbers.
    def digest(row, col):
        return _payload.entry_digest(False, [np.array(row), np.array(col)], 3)

    assert digest([1, 0, 0, 2], [0, 0, 0, 2]) == "32b0c433a9be6bf4"
    assert digest([0, 1, 0, 2], [0, 0, 0, 2]) == "d7b3feee057e4dc9"
    assert digest([], []) == "1d0b14e4db018fed"
    A = scipy.sparse.random(7, 7, 0.5, random_state=1, format="csr")
    coo = A.tocoo()
    by_rows = _payload.entry_digest(True, [A.indptr, A.indices], 7)
    assert by_rows == _payload.entry_digest(False, [coo.row, coo.col], 7)


@pytest.mark.parametrize("form", ["csr", "csc", "bsr"])
def test_spare_capacity_is_not_sent(form):
    A = scipy.sparse.random(6, 6, 0.4, format=form, random_state=1)
    full = A.toarray()
    spare = np.full((3, *A.data.shape[1:]), np.nan)
    A.data, A.indices = np.concatenate([A.data, spare]), np.concatenate([A.indices, [7, 8, 9]])
    payload = _payload.matrix(A)
    assert payload.spec.sparse.entries == (full.size if form == "bsr" and A.blocksize != (1, 1) else A.nnz)
    assert b"".join(payload.open()) == b"".join(_payload.matrix(type(A)(full)).open())
    values = np.frombuffer(b"".join(_payload.sparse_values(A).open()))
    np.testing.assert_array_equal(values, full.T[full.T != 0])
    assert len(A.data) > A.indptr[-1]  # the caller's matrix is unchanged


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "dia", "bsr"])
@pytest.mark.parametrize("compressed", [True, False])
def test_archives_of_scipy_are_sparse_matrices(tmp_path, form, compressed):
    A = scipy.sparse.random(6, 6, 0.4, random_state=1).asformat(form)
    path = tmp_path / "a.npz"
    scipy.sparse.save_npz(path, A, compressed=compressed)
    assert bytes_of(_payload.matrix(path)) == bytes_of(_payload.matrix(A))
    assert bytes_of(_payload.sparse_values(str(path))) == bytes_of(_payload.sparse_values(A))


def test_invalid_archives_are_rejected(tmp_path):
    path = tmp_path / "a.npz"
    good = {
        "format": b"csc",
        "shape": [3, 3],
        "data": np.ones(3),
        "indices": [0, 1, 2],
        "indptr": [0, 1, 2, 3],
    }
    for spoilt in (
        {"format": b"lil"},
        {"indptr": [0, 1_000_000_000, 2, 3]},
        {"indptr": [0, 2, 1, 3]},
        {"indices": [0, 1, 3]},
        {"indices": [0, -1, 2]},
        {"indices": [0, 1]},
        {"shape": [3]},
        {"data": np.array([{}, {}, {}])},
    ):
        np.savez(path, **{**good, **spoilt})
        with pytest.raises(crout.InvalidRequest, match="not an archive of scipy"):
            _payload.matrix(path)
    np.savez(path, A=np.eye(3))
    with pytest.raises(crout.InvalidRequest, match="not an archive of scipy"):
        _payload.matrix(path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(crout.InvalidRequest, match="not an archive of scipy"):
        _payload.matrix(path)


def test_a_sparse_vector_is_rejected():
    vector = scipy.sparse.coo_array(np.arange(3.0))
    if vector.ndim == 2:
        pytest.skip("this SciPy has no sparse arrays of one dimension")
    with pytest.raises(crout.InvalidRequest, match="two dimensions, this sparse array has 1"):
        _payload.matrix(vector)


def test_small_requests_are_one_message(rng):
    def messages(n, **options):
        payload = _payload.matrix(rng.random((n, n)))
        return list(
            Call("M", b"head", lambda: None, payloads=((2, payload.open),), **options).messages(Loan())
        )

    assert len(messages(0)) == len(messages(300)) == 1
    assert len(messages(60, waits=True)) == 1
    assert [sent for _, sent in messages(100, waits=True)] == [0, 80_000]
    assert [sent for _, sent in messages(600)] == [1 << 20, 2 << 20, 600 * 600 * 8]
    message, _ = messages(300)[0]
    assert message.startswith(b"head")


def test_two_payloads_in_order():
    A, b = _payload.matrix(np.full((2, 2), 1.0)), _payload.matrix(np.full((2, 1), 2.0))
    [(message, sent)] = Call("M", b"", lambda: None, payloads=((2, A.open), (3, b.open))).messages(Loan())
    assert sent == 48
    rest, [first] = _wire.split(message, 2)
    rest, [second] = _wire.split(rest, 3)
    assert (rest, bytes(first), bytes(second)) == (b"", bytes_of(A), bytes_of(b))


def test_wire_splits_messages_of_protobuf():
    from crout.v1 import factorization_service_pb2 as service

    message = service.SolveResponse(data=b"x" * 300)
    message.progress.columns = 2**40
    message.progress.predicted_seconds = 0.5
    encoded = message.SerializeToString() + b"\x0d1234" + b"\x1a\x01y"  # a fixed32, then data again
    rest, pieces = _wire.split(encoded, 3)
    assert b"".join(pieces) == b"x" * 300 + b"y"
    parsed = service.SolveResponse.FromString(rest)
    assert parsed.progress == message.progress
    assert parsed.data == b""


def test_masked_arrays_are_rejected(client):
    masked = np.ma.masked_array([[2.0, 1], [99, 2]], mask=[[0, 0], [1, 0]])
    with pytest.raises(crout.InvalidRequest, match="filled"):
        client.lu_factor(masked)
