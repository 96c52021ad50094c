# SPDX-License-Identifier: Apache-2.0
"""Arrays in GPU memory, on a fake driver: forms, memory of the server, payloads and solutions."""

import ctypes
import gc
import os

import numpy as np
import pytest
from daemon import eventually
from fake_cuda import UUID, FakeCuda, Interface, MemorySocket

import crout
from crout import _cuda, _dlpack, _payload, _requests
from crout._device import DeviceArray, on_host, view_of
from crout._memory import Memory
from crout.v1 import factorization_service_pb2 as service
from crout.v1 import matrix_pb2

N = 256  # 512 KiB of float64


@pytest.fixture
def cuda(monkeypatch):
    fake = FakeCuda()
    monkeypatch.setattr(_cuda.ctypes, "CDLL", lambda name: fake)
    _cuda.driver.cache_clear()
    yield fake
    _cuda.driver.cache_clear()


@pytest.fixture
def gpu(cuda):
    """Make an array of another library. Its memory counts as memory of the GPU."""

    def make(host):
        start = host.ctypes.data
        low = min(start, start + sum((n - 1) * s for n, s in zip(host.shape, host.strides, strict=True)))
        cuda.live[low] = memoryview(bytes(host.nbytes * 4))
        return Interface(host)

    return make


@pytest.fixture
def socket_of(tmp_path):
    sockets = []

    def make(**options):
        sockets.append(MemorySocket(str(tmp_path / "server.memory"), **options))
        return sockets[-1]

    yield make
    for one in sockets:
        one.close()


@pytest.fixture
def memory(cuda, tmp_path):
    memory = Memory(f"unix:{tmp_path / 'server'}")
    yield memory
    memory.close()


def factorize(A):
    return _requests.factorize(A)


def messages(call, memory):
    with memory.borrow(call) as loan:
        return [message for message, _ in call.messages(loan)]


# Arrays


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_an_array_keeps_its_elements_type_and_order(cuda, rng, order, dtype):
    host = rng.standard_normal((3, 5)).astype(dtype)
    array = on_host(np.asarray(host, order=order), 0)
    assert (array.shape, array.dtype, array.ndim, array.nbytes) == ((3, 5), host.dtype, 2, host.nbytes)
    assert array.device == "cuda:0"
    assert np.array_equal(array.get(), host)
    assert array.get().flags[f"{order}_CONTIGUOUS"]
    assert np.array_equal(np.asarray(array), host)
    array.set(2 * host)
    assert np.array_equal(array.get(), 2 * host)
    view = view_of(array)
    assert (view.shape, view.dtype, view.order, view.ordinal) == ((3, 5), host.dtype, order, 0)


def test_memory_of_this_process_is_freed(cuda):
    array = on_host(np.ones((4, 4)), 0)
    interface = array.__cuda_array_interface__
    assert list(cuda.live) == [interface["data"][0]]
    column = on_host(np.ones((3, 1)), 0)
    vector = column.reshape((3,))
    assert vector.shape == (3,)
    assert vector.reshape((3, 1)).shape == (3, 1)
    with pytest.raises(crout.InvalidRequest, match="cannot become"):
        array.reshape((16,))
    del array, column
    gc.collect()
    assert len(cuda.live) == 1  # the vector's
    del vector
    gc.collect()
    assert not cuda.live


def test_an_array_checks_what_it_copies(cuda, gpu):
    array = on_host(np.zeros((2, 3)), 0)
    with pytest.raises(crout.InvalidRequest, match="shape"):
        array.set(np.zeros((3, 2)))
    with pytest.raises(crout.InvalidRequest, match="another order"):
        array.set(gpu(np.zeros((2, 3), order="F")))
    array.set(gpu(np.full((2, 3), 7.0)))
    assert np.array_equal(array.get(), np.full((2, 3), 7.0))
    assert cuda.on_device == array.nbytes


def test_dlpack_keeps_the_memory_until_the_capsule_ends(cuda):
    array = on_host(np.asfortranarray(np.arange(6.0).reshape(2, 3)), 0)
    assert array.__dlpack_device__() == (_dlpack.CUDA, 0)
    capsule = array.__dlpack__(stream=1)
    tensor = _dlpack.read(capsule)
    assert tensor == (array.__cuda_array_interface__["data"][0], (2, 3), (1, 2), np.dtype(float))
    del array
    gc.collect()
    assert len(cuda.live) == 1
    del capsule
    gc.collect()
    assert not cuda.live


def test_a_consumer_of_dlpack_frees_the_memory(cuda):
    capsule = on_host(np.ones(3), 0).__dlpack__()
    rename = ctypes.pythonapi.PyCapsule_SetName
    rename.argtypes = (ctypes.py_object, ctypes.c_char_p)
    managed = ctypes.cast(_dlpack._pointer(id(capsule), b"dltensor"), ctypes.POINTER(_dlpack._ManagedTensor))
    used = b"used_dltensor"
    rename(capsule, used)
    del capsule
    gc.collect()
    assert len(cuda.live) == 1
    managed.contents.deleter(managed)
    gc.collect()
    assert not cuda.live


def test_dlpack_of_another_device_or_a_copy_is_refused(cuda):
    array = on_host(np.ones(3), 0)
    for options in ({"copy": True}, {"dl_device": (1, 0)}):
        with pytest.raises(BufferError):
            array.__dlpack__(**options)


def test_arrays_of_other_libraries(cuda, gpu):
    class WithDlpack:
        def __init__(self, array):
            self._array = array

        def __dlpack_device__(self):
            return self._array.__dlpack_device__()

        def __dlpack__(self, *, stream):
            assert stream == 1
            return self._array.__dlpack__(stream=stream)

    array = on_host(np.ones((2, 3), np.complex64, order="F"), 0)
    view = view_of(WithDlpack(array))
    assert (view.shape, view.dtype, view.order) == ((2, 3), np.dtype("c8"), "F")
    assert view.address == array.__cuda_array_interface__["data"][0]
    assert cuda.synchronized == 2  # by set() and by the view
    for host, order in [
        (np.ones((2, 3)), "C"),
        (np.ones((2, 3), order="F"), "F"),
        (np.ones((2, 6))[:, ::2], ""),
        (np.ones((4, 1), order="F"), "C"),
        (np.ones(3), "C"),
    ]:
        assert view_of(gpu(host)).order == order


def test_arrays_on_the_host_have_no_view(cuda):
    assert view_of(np.ones(3)) is None
    assert view_of([1.0]) is None
    assert view_of(Interface(np.ones(3))) is None  # the address is not one of a GPU


def test_without_a_driver(monkeypatch):
    def missing(name):
        raise OSError(name)

    monkeypatch.setattr(_cuda.ctypes, "CDLL", missing)
    _cuda.driver.cache_clear()
    assert view_of(Interface(np.ones(3))) is None
    with crout.connect("unix:/nowhere") as client, pytest.raises(crout.CroutError, match="libcuda"):
        client.empty((2, 2), device="cuda")


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "cuda:-1", ""])
def test_devices_are_checked(cuda, memory, device):
    with pytest.raises(crout.InvalidRequest, match="the number of a GPU"):
        memory.empty((2, 2), float, "C", device)


@pytest.mark.parametrize(("dtype", "order"), [(int, "C"), (">f8", "C"), (float, "K")])
def test_types_and_orders_are_checked(cuda, memory, dtype, order):
    with pytest.raises(crout.InvalidRequest, match="complex128"):
        memory.empty((2, 2), dtype, order, "cuda")


def test_a_forked_child_leaves_the_memory_to_its_parent(cuda, memory, socket_of):
    server = socket_of()
    shared, own = memory.empty((N, N), "f8", "C", "cuda"), on_host(np.ones(3), 0)
    child = os.fork()
    if child == 0:
        del shared, own
        gc.collect()
        os._exit(len(cuda.live) + len(memory.device._idle))
    assert os.waitpid(child, 0)[1] == 2 << 8
    assert server.open == 1
    shared.set(np.ones((N, N)))
    assert own.get()[0] == 1


# Payloads


def test_elements_are_sent_as_they_are_only_if_the_server_knows_their_type(cuda, gpu):
    payload = _payload.matrix(gpu(np.ones((4, 3), np.float32, order="F")))
    assert payload.open.view is not None
    assert payload.spec.dense.layout == matrix_pb2.LAYOUT_COLUMN_MAJOR
    assert (payload.shape, payload.dtype) == ((4, 3), np.dtype("f4"))
    for host in (np.ones((4, 3), int), np.ones((4, 6))[:, ::2], np.ones((4, 3), ">f8")):
        payload = _payload.matrix(gpu(host))
        assert payload.open.view is None
        assert payload.dtype == np.dtype("f8")


def test_a_copy_on_the_gpu_is_sent_as_a_range(cuda, gpu, memory, socket_of, regular):
    server = socket_of()
    A = regular(N)
    (message,) = messages(factorize(gpu(A)), memory)
    request = service.FactorizeRequest.FromString(message)
    assert request.shared_data == matrix_pb2.SharedRange(region=b"i" * 16, offset=0, size=A.nbytes)
    assert np.array_equal(server.read(0, 0, A.nbytes), A.ravel())
    assert cuda.on_device == A.nbytes
    assert cuda.to_host == 0
    assert server.requests == [(2 << 20, UUID)]
    messages(factorize(gpu(A)), memory)
    assert len(server.requests) == 1  # the region is reused


def test_an_array_of_the_package_is_sent_without_a_copy(cuda, memory, socket_of):
    socket_of()
    A = memory.empty((2, N, N), "f8", "C", "cuda:0")
    assert isinstance(A, DeviceArray)
    first = A.__cuda_array_interface__["data"][0]
    half = Interface(np.frombuffer((ctypes.c_char * A.nbytes).from_address(first)).reshape(2, N, N)[1])
    (message,) = messages(factorize(half), memory)
    assert service.FactorizeRequest.FromString(message).shared_data.offset == A.nbytes // 2
    assert cuda.on_device == 0


def test_regions_live_as_long_as_their_arrays(cuda, memory, socket_of):
    server = socket_of()
    A = memory.empty((N, N), "f8", "C", "cuda")
    capsule = A.__dlpack__()
    del A
    gc.collect()
    assert memory.device._idle == []
    del capsule
    gc.collect()
    assert len(memory.device._idle) == 1
    memory.close()
    assert eventually(lambda: server.open == 0)
    assert not cuda.live


def test_the_memory_of_a_failed_call_is_not_reused(cuda, gpu, memory, socket_of, regular):
    server = socket_of()
    with pytest.raises(RuntimeError), memory.borrow(factorize(gpu(regular(N)))):
        raise RuntimeError
    gc.collect()
    assert memory.device._idle == []
    assert eventually(lambda: server.open == 0)


@pytest.mark.parametrize("room", [0, None])
def test_without_memory_of_the_server_the_payload_passes_through_the_host(
    cuda, gpu, memory, socket_of, regular, room
):
    if room is not None:
        socket_of(room=room)
    A = regular(N)
    sent = messages(factorize(gpu(A)), memory)
    data = b"".join(service.FactorizeRequest.FromString(message).data for message in sent)
    assert data == A.tobytes()
    assert cuda.to_host == A.nbytes
    array = memory.empty((N, N), "f8", "C", "cuda")
    assert array.get().shape == (N, N)


def test_a_server_that_restarts(cuda, gpu, memory, socket_of, regular):
    server = socket_of()
    A = memory.empty((N, N), "f8", "C", "cuda")
    messages(factorize(gpu(regular(N))), memory)
    server.disconnect()
    assert eventually(lambda: server.open == 0)
    sent = messages(factorize(A), memory)
    assert service.FactorizeRequest.FromString(sent[0]).HasField("shared_data")  # copied to a new region
    assert len(server.requests) == 3


# Solutions


def record(client, A):
    return client.lu_factor(A).record


def test_a_solution_is_an_array_of_the_gpu(cuda, gpu, client, regular):
    A = regular(8)
    f = client.lu_factor(gpu(A))
    for b in (np.ones(8), np.ones((8, 3)), np.asfortranarray(np.ones((8, 2)))):
        x = f.solve(gpu(b))
        assert isinstance(x, DeviceArray)
        assert x.shape == b.shape
        assert np.allclose(A @ x.get(), b)
        assert np.allclose(A @ client.solve(gpu(A), gpu(b)).get(), b)
        assert np.allclose(A @ client.solve(A, x).get(), x.get())
        assert "backward_error" in repr(f.solve(gpu(b), full_output=True))
    x = f.solve(gpu(np.ones(8, np.float32)))  # becomes float64
    assert x.dtype == float
    assert np.allclose(A @ x.get(), 1)
    x = f.solve(gpu(np.ones(8, complex)))
    assert x.dtype == complex
    for step in client.series([gpu(A)], gpu(np.ones(8))):
        assert np.allclose(A @ step.x.get(), 1)
    assert isinstance(f.solve(np.ones(8)), np.ndarray)


def test_a_solution_in_memory_of_the_server_is_not_copied(cuda, gpu, memory, socket_of, client, regular):
    server = socket_of()
    B = np.ones((N, N))
    call = _requests.solve(record(client, regular(N)), gpu(B))
    reply = call.reply()
    with memory.borrow(call) as loan:
        (message,) = (message for message, _ in call.messages(loan))
        request = service.SolveRequest.FromString(message)
        assert request.shared_reply.size == B.nbytes
        reply.shared_memory, reply.shared_array = loan.reply, loan.reply_array
        server.write(1, 0, 3 * B)
        response = service.SolveResponse(shared_bytes=B.nbytes)
        response.header.solution.CopyFrom(request.header.rhs.dense)
        response.result.factor_version = 1
        reply.feed(response.SerializeToString())
    cuda.to_host = cuda.from_host = 0
    x = reply.finish().x
    assert cuda.to_host == cuda.from_host == 0
    assert np.array_equal(x.get(), 3 * B)
    del loan, reply
    gc.collect()
    assert len(memory.device._idle) == 1  # the payload's region; X has the other one
    del x
    gc.collect()
    assert len(memory.device._idle) == 2


def test_the_shape_of_b_is_checked(cuda, gpu, client, regular):
    f = client.lu_factor(regular(8))
    with pytest.raises(crout.InvalidRequest, match="3 dimensions"):
        f.solve(gpu(np.ones((8, 1, 1))))
    with pytest.raises(crout.InvalidRequest, match="7 rows"):
        f.solve(gpu(np.ones(7)))
    with pytest.raises(crout.InvalidRequest, match=r"b\.T"):
        f.solve(gpu(np.ones((2, 8))))
