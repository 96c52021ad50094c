# SPDX-License-Identifier: Apache-2.0
"""GPU memory that a client shares with a server on the same machine.

The server allocates it when the client asks on the memory socket, and passes a file descriptor. The client
copies payloads there, on the GPU. If the server does not share the GPU, payloads pass through the host.
"""

from __future__ import annotations

import math
import os
import socket
import struct
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from crout._cuda import CudaError, Mapping, driver
from crout._device import Block, DeviceArray, DeviceView
from crout._wire import Range
from crout.errors import InvalidRequest
from crout.v1 import matrix_pb2

_MAGIC = b"CROUTG1\0"
_ID_BYTES = 16
_ANSWER_SECONDS = 10.0  # limit for the server's answer, which may evict factors
_PAUSE_SECONDS = 10.0  # after a refusal, until the next request
_MAX_IDLE = 4  # regions kept for later calls
_TYPES = frozenset(("<f4", "<f8", "<c8", "<c16"))
_UNIT = 2 << 20  # sizes of regions are multiples of this


class Refused(Exception):
    """The server does not share the memory."""


class DeviceReply(NamedTuple):
    """The matrix of a reply, for an array in GPU memory."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    order: str
    ordinal: int


class DeviceRegion:
    """Memory of a GPU that the server at `path` shares. Raises Refused, CudaError and OSError."""

    def __init__(self, path: str, ordinal: int, size: int) -> None:
        self.ordinal = ordinal
        self.id = b""
        self.size = 0
        self.process = os.getpid()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._mapping: Mapping | None = None
        try:
            self._request(path, size)
        except BaseException:
            self.close()
            raise

    def _request(self, path: str, size: int) -> None:
        self._socket.settimeout(_ANSWER_SECONDS)
        self._socket.connect(path)
        self._socket.send(_MAGIC + struct.pack("<Q", size) + driver().uuid_of(self.ordinal))
        answer, files, _, _ = socket.recv_fds(self._socket, 4096, 1)
        try:
            if len(answer) != 1 + _ID_BYTES + 8 or answer[0] != 0 or len(files) != 1:
                raise Refused(answer[1:].decode(errors="replace"))
            self.id = answer[1 : 1 + _ID_BYTES]
            (self.size,) = struct.unpack("<Q", answer[1 + _ID_BYTES :])
            if self.size < size:
                raise Refused(f"the server gave {self.size} bytes instead of {size}")
            self._mapping = driver().map(self.ordinal, files[0], self.size)
        finally:
            for file in files:
                os.close(file)
        self._socket.setblocking(False)

    @property
    def address(self) -> int:
        """Address of the memory in this process."""
        return 0 if self._mapping is None else self._mapping.address

    @property
    def is_held(self) -> bool:
        """Whether the server still has the region."""
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    def close(self) -> None:
        """End the region. No array may refer to it."""
        self._socket.close()
        if self._mapping is not None:
            self._mapping.close()

    def range(self, offset: int, size: int) -> bytes:
        """Encode the SharedRange of bytes of the region."""
        return matrix_pb2.SharedRange(region=self.id, offset=offset, size=size).SerializeToString()


class SharedBlock(Block):
    """A region, which returns to its memory when no array refers to the block."""

    def __init__(self, memory: DeviceMemory, region: DeviceRegion) -> None:
        self.ordinal = region.ordinal
        self.size = region.size
        self.address = region.address
        self.region = region
        self._end = weakref.finalize(self, _return, weakref.ref(memory), region)
        self._end.atexit = False

    def discard(self) -> None:
        """Close the region when no array refers to the block: the server may still write to it."""
        if self._end.detach() is not None:
            weakref.finalize(self, self.region.close).atexit = False


def _return(owner: Callable[[], DeviceMemory | None], region: DeviceRegion) -> None:
    memory = owner()
    if memory is None or region.process != os.getpid():  # a forked child leaves it to its parent
        region.close()
    else:
        memory.take_back(region)


class DevicePlace:
    """Place of a payload: bytes of a region, to which `view` is copied when it is sent."""

    def __init__(self, region: DeviceRegion, offset: int, size: int, view: DeviceView | None) -> None:
        self._region = region
        self._offset = offset
        self._size = size
        self._view = view

    def send(self, pieces: object) -> Iterator[Range]:
        """Copy the payload, and generate its range. `pieces` is not used."""
        if self._view is not None:
            to = self._region.address + self._offset
            driver().copy(self._region.ordinal, to, self._view.address, self._size)
        yield Range(self._region.range(self._offset, self._size), self._size, last=True)


class DeviceMemory:
    """The regions of a client on all GPUs, from the memory socket at `path`; none if it is None.

    Thread-safe.
    """

    def __init__(self, path: str | None) -> None:
        self._path = path
        self.reset()

    def reset(self) -> None:
        """Forget the regions: a forked child leaves them to its parent."""
        self._lock = threading.Lock()
        self._idle: list[DeviceRegion] = []
        self._blocks: weakref.WeakValueDictionary[int, SharedBlock] = weakref.WeakValueDictionary()
        self._closed = False
        self._next_request = -math.inf

    def close(self) -> None:
        """Return the memory that no array uses."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for region in idle:
            region.close()

    @property
    def exists(self) -> bool:
        """Whether the server may share memory."""
        return self._path is not None and not self._closed

    def _obtain(self, ordinal: int, size: int) -> DeviceRegion | None:
        """Return an idle region of at least `size` bytes, or a new one; None if the server gives none."""
        with self._lock:
            fitting = [region for region in self._idle if region.ordinal == ordinal and region.size >= size]
            region = min(fitting, key=lambda idle: idle.size) if fitting else None
            if region is not None:
                self._idle.remove(region)
        if region is not None and region.is_held:
            driver().finish(ordinal)  # other libraries may still use the memory of an array that ended
            return region
        if region is not None:  # the server has restarted
            region.close()
        if not self.exists or time.monotonic() < self._next_request:
            return None
        try:
            return DeviceRegion(self._path or "", ordinal, -(-size // _UNIT) * _UNIT)
        except (Refused, CudaError, OSError):
            self._next_request = time.monotonic() + _PAUSE_SECONDS
            return None

    def take_back(self, region: DeviceRegion) -> None:
        """Keep a region for later calls, or close it."""
        # The garbage collector may run this while this thread holds the lock.
        if not self._lock.acquire(blocking=False):
            region.close()
            return
        try:
            keep = not self._closed and len(self._idle) < _MAX_IDLE
            if keep:
                self._idle.append(region)
        finally:
            self._lock.release()
        if not keep:
            region.close()

    def empty(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], order: str, ordinal: int, least: int
    ) -> DeviceArray:
        """Make an array; in memory of this process below `least` bytes, or if the server gives none."""
        if dtype.str not in _TYPES or order not in ("C", "F"):
            raise InvalidRequest(
                f"the type is {dtype} and the order {order!r}: give float32, float64, complex64 or "
                'complex128, and "C" or "F"'
            )
        size = math.prod(shape) * dtype.itemsize
        block = self.block(ordinal, size) if size >= least else None
        return DeviceArray(block or Block(ordinal, size), shape, dtype, order)

    def block(self, ordinal: int, size: int) -> SharedBlock | None:
        """Return memory of at least `size` bytes; None if the server gives none."""
        region = self._obtain(ordinal, size)
        if region is None:
            return None
        block = SharedBlock(self, region)
        with self._lock:
            self._blocks[region.address] = block
        return block

    def find(self, view: DeviceView) -> DevicePlace | None:
        """Return the place of an array in memory from `empty`."""
        with self._lock:
            blocks = list(self._blocks.items())
        for start, block in blocks:
            offset = view.address - start
            if block.ordinal == view.ordinal and 0 <= offset <= block.size - view.nbytes:
                return DevicePlace(block.region, offset, view.nbytes, None) if block.region.is_held else None
        return None


def ordinal_from(device: str) -> int:
    """Convert "cuda" or "cuda:0". Raises InvalidRequest."""
    kind, _, number = device.partition(":")
    if kind != "cuda" or not (number or "0").isdecimal():
        raise InvalidRequest(f'the device is {device!r}: give "cuda", or "cuda:" and the number of a GPU')
    return int(number or 0)
