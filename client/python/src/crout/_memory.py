# SPDX-License-Identifier: Apache-2.0
"""Memory that a client shares with a server on the same machine. Large payloads then bypass gRPC.

The client creates a region, an anonymous file (memfd) that can neither shrink nor grow, and offers it on the
memory socket of the server, ``PATH.memory`` for the address ``unix:PATH``. The connection holds the region.
If the server has no such socket, or refuses, payloads are sent in messages.
"""

from __future__ import annotations

import fcntl
import math
import mmap
import os
import socket
import struct
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from crout import _wire
from crout._device import DeviceArray, DeviceView
from crout._device_memory import DeviceMemory, DevicePlace, DeviceReply, SharedBlock, ordinal_from
from crout._wire import Range
from crout.v1 import matrix_pb2

if TYPE_CHECKING:
    from typing_extensions import Self

Array = npt.NDArray[Any]
Bytes = bytes | memoryview

LEAST_BYTES = 256 << 10
"""Smallest payload or reply in shared memory; a message costs less for a smaller one."""

_MAGIC = b"CROUTM1\0"
_ID_BYTES = 16
_ANSWER_SECONDS = 10.0  # limit for the server's answer to an offer, which may pin many pages
_PAUSE_SECONDS = 10.0  # after a refusal, until the next offer
_PIECE = 16 << 20  # the server copies one piece while the client writes the next
_MAX_IDLE = 4  # regions kept for later calls
_ALIGNMENT = 4096
_SHARED_REPLY = 14  # field of requests


class Refused(Exception):
    """The server does not map the memory."""


class Region:
    """A file of `size` bytes, which the server at `path` maps. Raises Refused and OSError."""

    def __init__(self, path: str, size: int) -> None:
        self.size = size
        self.id = b""
        self._path = path
        self._socket: socket.socket | None = None
        self._file = os.memfd_create("crout", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(self._file, size)
            fcntl.fcntl(self._file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
            self.mapping = mmap.mmap(self._file, size)
            self._offer()
        except BaseException:
            self.close()
            raise

    def _offer(self) -> None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            connection.settimeout(_ANSWER_SECONDS)
            connection.connect(self._path)
            socket.send_fds(connection, [_MAGIC + struct.pack("<Q", self.size)], [self._file])
            answer = connection.recv(4096)
            if len(answer) != 1 + _ID_BYTES or answer[0] != 0:
                raise Refused(answer[1:].decode(errors="replace"))
            connection.setblocking(False)
        except BaseException:
            connection.close()
            raise
        self.id = answer[1:]
        self._socket = connection

    def ensure_held(self) -> None:
        """Offer the region again if the server no longer holds it. Raises Refused and OSError."""
        if self._socket is None:
            raise Refused("the region is closed")
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return  # the connection is open
        except OSError:
            pass
        self._socket.close()
        self._socket = None
        self._offer()

    def close(self) -> None:
        """End the server's mapping. This process keeps its own as long as arrays refer to it."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def range(self, offset: int, size: int, last: bool) -> Range:
        """Describe bytes of the region."""
        message = matrix_pb2.SharedRange(region=self.id, offset=offset, size=size)
        return Range(message.SerializeToString(), size, last)


class Place:
    """Shared memory of one payload: the bytes from `offset` on, `size` bytes."""

    def __init__(self, region: Region, offset: int, size: int, filled: bool) -> None:
        self._region = region
        self._offset = offset
        self._size = size
        self._filled = filled

    def send(self, pieces: Callable[[], Iterator[Bytes]]) -> Iterator[Range | Bytes]:
        """Copy the payload, and generate its ranges. Bytes that do not fit are generated as they are."""
        if self._filled:
            yield self._region.range(self._offset, self._size, last=True)
            return
        memory = np.frombuffer(self._region.mapping, np.uint8)
        sent = copied = 0
        for piece in pieces():
            if copied + len(piece) > self._size:  # a file has grown
                if copied > sent:
                    yield self._region.range(self._offset + sent, copied - sent, last=False)
                    sent = copied
                yield piece
                continue
            start = self._offset + copied
            np.copyto(memory[start : start + len(piece)], np.frombuffer(piece, np.uint8))
            copied += len(piece)
            if copied - sent >= _PIECE or copied == self._size:
                yield self._region.range(self._offset + sent, copied - sent, last=copied == self._size)
                sent = copied
        if copied > sent:
            yield self._region.range(self._offset + sent, copied - sent, last=True)


class Loan:
    """Shared memory for one attempt of a call. A context manager; an attempt that succeeds leaves the block.

    Attributes
    ----------
    places : dict of int to Place
        Memory of the payloads, by position; other payloads are sent in messages.
    reply_field : bytes
        Field of the first message with the memory for the reply; empty if there is none.
    reply : memoryview or None
        That memory, on the host.
    reply_array : DeviceArray or None
        That memory, on a GPU.
    """

    def __init__(self) -> None:
        self.places: dict[int, Place | DevicePlace] = {}
        self.reply_field = b""
        self.reply: memoryview | None = None
        self.reply_array: DeviceArray | None = None
        self._memory: Memory | None = None
        self._region: Region | None = None
        self._blocks: list[SharedBlock] = []

    def lend(self, memory: Memory, region: Region, sizes: dict[int, int], reply: int) -> None:
        """Divide a region among the payloads of these sizes and a reply."""
        self._memory, self._region = memory, region
        offset = 0
        for index, size in sizes.items():
            self.places[index] = Place(region, offset, size, filled=False)
            offset += _aligned(size)
        if reply:
            self._set_reply(region.range(offset, reply, last=True).encoded)
            self.reply = memoryview(region.mapping)[offset : offset + reply]

    def _set_reply(self, encoded: bytes) -> None:
        self.reply_field = _wire.bytes_field(_SHARED_REPLY, len(encoded)) + encoded

    def lend_device(self, memory: DeviceMemory, views: dict[int, DeviceView]) -> None:
        """Find memory of GPUs for payloads that are there. The others pass through the host."""
        copied: dict[int, list[int]] = {}  # payloads to copy, by GPU
        for index, view in views.items():
            place = memory.find(view)
            if place is None:
                copied.setdefault(view.ordinal, []).append(index)
            else:
                self.places[index] = place
        for ordinal, indices in copied.items():
            block = memory.block(ordinal, sum(_aligned(views[index].nbytes) for index in indices))
            if block is None:
                continue
            self._blocks.append(block)
            offset = 0
            for index in indices:
                size = views[index].nbytes
                self.places[index] = DevicePlace(block.region, offset, size, views[index])
                offset += _aligned(size)

    def lend_reply(self, memory: DeviceMemory, reply: DeviceReply) -> None:
        """Find memory of a GPU for the reply."""
        size = math.prod(reply.shape) * reply.dtype.itemsize
        block = memory.block(reply.ordinal, size)
        if block is None:
            return
        self._blocks.append(block)
        self.reply_array = DeviceArray(block, reply.shape, reply.dtype, reply.order)
        self._set_reply(block.region.range(0, size))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            for block in self._blocks:
                block.discard()
        self._blocks.clear()
        if self._memory is not None and self._region is not None:
            # After an error the server, or a thread that sends, may still use the memory.
            self._memory.take_back(self._region, reusable=kind is None)


class Memory:
    """The regions of a client of `address`. Thread-safe. A forked child makes its own."""

    def __init__(self, address: str) -> None:
        self._path = memory_path(address)
        self.device = DeviceMemory(self._path)
        self._reset()
        _of_this_process.add(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Region] = []
        self._arrays: dict[int, tuple[int, Region]] = {}  # address of the memory: size, region
        self._closed = False
        self._next_offer = -math.inf
        self.device.reset()

    def close(self) -> None:
        """Return the memory that no array uses."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for region in idle:
            region.close()
        self.device.close()

    def applies_to(self, call: Any) -> bool:
        """Whether a `Call` has a payload or a reply for shared memory."""
        if self._path is None or self._closed:
            return False
        return (
            call.reply_bytes >= LEAST_BYTES
            or _is_large(call.device_reply)
            or any(opener.size >= LEAST_BYTES for _, opener in call.payloads)
        )

    def borrow(self, call: Any) -> Loan:
        """Lend memory for the large payloads of a `Call` and for its reply. May wait for the server."""
        loan = Loan()
        if not self.applies_to(call):
            return loan
        views = {
            index: opener.view
            for index, (_, opener) in enumerate(call.payloads)
            if opener.view is not None and opener.size >= LEAST_BYTES
        }
        loan.lend_device(self.device, views)
        if _is_large(call.device_reply):
            loan.lend_reply(self.device, call.device_reply)
        sizes = {}
        for index, (_, opener) in enumerate(call.payloads):
            if opener.size < LEAST_BYTES or index in loan.places:
                continue
            place = self._find(opener)
            if place is not None:
                loan.places[index] = place
            else:
                sizes[index] = opener.size
        reply = call.reply_bytes if call.reply_bytes >= LEAST_BYTES else 0
        total = sum(_aligned(size) for size in sizes.values()) + reply
        region = self._obtain(total) if total else None
        if region is not None:
            loan.lend(self, region, sizes, reply)
        return loan

    def take_back(self, region: Region, reusable: bool) -> None:
        """Keep a region for later calls, or close it."""
        with self._lock:
            if reusable and not self._closed:
                self._idle.append(region)
                self._idle.sort(key=lambda idle: idle.size)
                surplus = self._idle.pop(0) if len(self._idle) > _MAX_IDLE else None
            else:
                surplus = region
        if surplus is not None:
            surplus.close()

    def empty(self, shape: Any, dtype: npt.DTypeLike, order: Any, device: str) -> Any:
        """Make an array in shared memory; in the memory of this process if the server maps none."""
        kind = np.dtype(dtype)
        dimensions = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        if device != "host":
            return self.device.empty(dimensions, kind, order, ordinal_from(device), LEAST_BYTES)
        size = math.prod(dimensions) * kind.itemsize
        region = None
        if size >= LEAST_BYTES and not self._closed and not kind.hasobject:
            region = self._offer(size)
        if region is None:
            return np.empty(shape, kind, order)
        array: Array = np.ndarray(dimensions, kind, buffer=region.mapping, order=order)
        start = array.__array_interface__["data"][0]
        with self._lock:
            self._arrays[start] = (size, region)
        mapping = region.mapping
        del region.mapping  # only arrays refer to it from now on
        weakref.finalize(mapping, _forget, weakref.ref(self), start, region)
        return array

    def _find(self, opener: Any) -> Place | None:
        """Return the place of a payload that is one array in memory from `empty`."""
        if len(opener.arrays) != 1:
            return None
        start = opener.arrays[0].__array_interface__["data"][0]
        with self._lock:
            found = [(at, *held) for at, held in list(self._arrays.items()) if at <= start < at + held[0]]
        if not found:
            return None
        at, size, region = found[0]
        if start + opener.size > at + size:
            return None
        try:
            region.ensure_held()
        except (Refused, OSError):
            return None
        return Place(region, start - at, opener.size, filled=True)

    def _obtain(self, size: int) -> Region | None:
        """Return an idle region of at least `size` bytes, or a new one."""
        with self._lock:
            fitting = [region for region in self._idle if region.size >= size]
            region = fitting[0] if fitting else None
            if region is not None:
                self._idle.remove(region)
        if region is None:
            return self._offer(_rounded(size))
        try:
            region.ensure_held()
        except (Refused, OSError):
            region.close()
            self._pause()
            return None
        return region

    def _offer(self, size: int) -> Region | None:
        if self._path is None or time.monotonic() < self._next_offer:
            return None
        try:
            return Region(self._path, size)
        except (Refused, OSError):
            self._pause()
            return None

    def _pause(self) -> None:
        self._next_offer = time.monotonic() + _PAUSE_SECONDS


def _forget(owner: Callable[[], Memory | None], start: int, region: Region) -> None:
    """End a region whose arrays no longer exist."""
    memory = owner()
    if memory is not None:
        # Without the lock, which this thread may hold: the garbage collector runs anywhere.
        memory._arrays.pop(start, None)
    region.close()


def memory_path(address: str) -> str | None:
    """Return the path of the server's memory socket; None if the address has none."""
    if not address.startswith("unix:") or not hasattr(os, "memfd_create"):
        return None
    path = address[len("unix:") :]
    return (path[2:] if path.startswith("//") else path) + ".memory"


def _is_large(reply: DeviceReply | None) -> bool:
    return reply is not None and math.prod(reply.shape) * reply.dtype.itemsize >= LEAST_BYTES


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _rounded(size: int) -> int:
    """Round up by at most an eighth, so that calls of similar sizes use the same region."""
    step = max(_ALIGNMENT, 1 << max(0, size.bit_length() - 4))
    return -(-size // step) * step


_of_this_process: weakref.WeakSet[Memory] = weakref.WeakSet()


def _reset_after_fork() -> None:
    """Leave the regions to the parent: both processes would write to them."""
    for memory in _of_this_process:
        memory._reset()


os.register_at_fork(after_in_child=_reset_after_fork)
