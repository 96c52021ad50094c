# SPDX-License-Identifier: Apache-2.0
"""The functions of the CUDA driver that arrays in GPU memory need, through ctypes."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from collections.abc import Iterator
from ctypes import byref, c_char, c_char_p, c_int, c_size_t, c_uint, c_ulonglong, c_void_p
from typing import Any

from crout.errors import CroutError

LEGACY_STREAM = 1
"""The default stream, which waits for all other streams of the context that do not opt out."""

_POSIX_FILE = 1  # CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
_DEVICE = 1  # CU_MEM_LOCATION_TYPE_DEVICE
_READ_WRITE = 3  # CU_MEM_ACCESS_FLAGS_PROT_READWRITE
_MEMORY_TYPE = 2  # CU_POINTER_ATTRIBUTE_MEMORY_TYPE
_ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
_DEVICE_MEMORY = 2  # CU_MEMORYTYPE_DEVICE
_OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
_UUID_BYTES = 16

_Address = c_ulonglong


class CudaError(CroutError):
    """A function of the CUDA driver failed."""


class _Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = (("type", c_int), ("id", c_int), ("flags", c_int))


class Mapping:
    """Memory of another process that this process has mapped.

    Attributes
    ----------
    address : int
    """

    def __init__(self, driver: Driver, ordinal: int, handle: int, address: int, size: int) -> None:
        self.address = address
        self._driver = driver
        self._ordinal = ordinal
        self._handle = handle
        self._size = size
        self._process = os.getpid()

    def close(self) -> None:
        """Unmap the memory. A forked child leaves it to its parent."""
        if self._handle == 0 or self._process != os.getpid():
            return
        handle, self._handle = self._handle, 0
        self._driver.unmap(self._ordinal, self.address, self._size, handle)


class Driver:
    """The driver, or a library with its functions. Thread-safe. Its methods raise CudaError."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._call("cuInit", c_uint(0))

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, name)(*arguments)
        if code == 0:
            return
        text = c_char_p()
        known = self._library.cuGetErrorName(c_int(code), byref(text)) == 0 and text.value
        kind = "RESOURCE_EXHAUSTED" if code == _OUT_OF_MEMORY else "INTERNAL"
        raise CudaError(f"{name}: {text.value.decode() if known and text.value else code}", code=kind)

    def device_of(self, address: int) -> int | None:
        """Return the number of the GPU that has the memory; None if it is not memory of a GPU."""
        kind, ordinal = c_uint(), c_int()
        try:
            self._call("cuPointerGetAttribute", byref(kind), c_int(_MEMORY_TYPE), _Address(address))
            self._call("cuPointerGetAttribute", byref(ordinal), c_int(_ORDINAL), _Address(address))
        except CudaError:  # the address is not one of a GPU
            return None
        return ordinal.value if kind.value == _DEVICE_MEMORY else None

    def uuid_of(self, ordinal: int) -> bytes:
        """Return the UUID of a GPU."""
        uuid = (c_char * _UUID_BYTES)()
        self._call("cuDeviceGetUuid_v2", byref(uuid), self._device(ordinal))
        return bytes(uuid)

    def _device(self, ordinal: int) -> c_int:
        device = c_int()
        self._call("cuDeviceGet", byref(device), c_int(ordinal))
        return device

    @functools.cache  # noqa: B019  a process has one driver
    def _primary(self, ordinal: int) -> int:
        context = c_void_p()
        self._call("cuDevicePrimaryCtxRetain", byref(context), self._device(ordinal))
        return context.value or 0

    @contextlib.contextmanager
    def _on(self, ordinal: int) -> Iterator[None]:
        """Make the context of the GPU that CuPy, PyTorch and JAX use current on this thread."""
        self._call("cuCtxPushCurrent_v2", c_void_p(self._primary(ordinal)))
        try:
            yield
        finally:
            self._call("cuCtxPopCurrent_v2", byref(c_void_p()))

    def allocate(self, ordinal: int, size: int) -> int:
        """Allocate memory for this process, and return its address."""
        address = _Address()
        with self._on(ordinal):
            self._call("cuMemAlloc_v2", byref(address), c_size_t(size))
        return address.value

    def free(self, ordinal: int, address: int) -> None:
        """Free memory from `allocate`. The next call on the GPU reports an error again."""
        with contextlib.suppress(CudaError), self._on(ordinal):
            self._call("cuMemFree_v2", _Address(address))

    def map(self, ordinal: int, file: int, size: int) -> Mapping:
        """Map the memory of a file descriptor of the server."""
        handle, address = c_ulonglong(), _Address()
        with self._on(ordinal):
            self._call("cuMemImportFromShareableHandle", byref(handle), c_void_p(file), c_int(_POSIX_FILE))
            try:
                self._call(
                    "cuMemAddressReserve",
                    byref(address),
                    c_size_t(size),
                    c_size_t(0),
                    _Address(0),
                    c_ulonglong(0),
                )
                self._call("cuMemMap", address, c_size_t(size), c_size_t(0), handle, c_ulonglong(0))
                access = _Access(_DEVICE, ordinal, _READ_WRITE)
                self._call("cuMemSetAccess", address, c_size_t(size), byref(access), c_size_t(1))
            except CudaError:
                self.unmap(ordinal, address.value, size, handle.value)
                raise
        return Mapping(self, ordinal, handle.value, address.value, size)

    def unmap(self, ordinal: int, address: int, size: int, handle: int) -> None:
        """End a mapping, or a part of one. The next call on the GPU reports an error again."""
        with contextlib.suppress(CudaError), self._on(ordinal), contextlib.ExitStack() as ends:
            ends.callback(self._library.cuMemRelease, c_ulonglong(handle))
            if address:
                ends.callback(self._library.cuMemAddressFree, _Address(address), c_size_t(size))
                ends.callback(self._library.cuMemUnmap, _Address(address), c_size_t(size))

    def synchronize(self, ordinal: int, stream: int = LEGACY_STREAM) -> None:
        """Wait for the work of a stream."""
        with self._on(ordinal):
            self._call("cuStreamSynchronize", c_void_p(stream))

    def finish(self, ordinal: int) -> None:
        """Wait for all work of this process on the GPU."""
        with self._on(ordinal):
            self._call("cuCtxSynchronize")

    def copy(self, ordinal: int, to: int, source: int, size: int) -> None:
        """Copy memory of the GPU, after all work of the default stream. Waits for the copy."""
        stream = c_void_p(LEGACY_STREAM)
        with self._on(ordinal):
            self._call("cuMemcpyDtoDAsync_v2", _Address(to), _Address(source), c_size_t(size), stream)
            self._call("cuStreamSynchronize", stream)

    def read(self, ordinal: int, to: int, source: int, size: int) -> None:
        """Copy memory of the GPU to the host address `to`."""
        with self._on(ordinal):
            self._call("cuMemcpyDtoH_v2", c_void_p(to), _Address(source), c_size_t(size))

    def write(self, ordinal: int, to: int, source: int, size: int) -> None:
        """Copy from the host address `source` to memory of the GPU."""
        with self._on(ordinal):
            self._call("cuMemcpyHtoD_v2", _Address(to), c_void_p(source), c_size_t(size))
            self._call("cuStreamSynchronize", c_void_p(LEGACY_STREAM))


@functools.cache
def driver() -> Driver:
    """Return the driver of this process. Raises CudaError if there is none."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise CudaError(
            "the CUDA driver (libcuda.so.1) is not installed: use arrays in host memory", code="UNAVAILABLE"
        ) from None
    return Driver(library)
