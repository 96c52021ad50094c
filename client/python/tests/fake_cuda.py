# SPDX-License-Identifier: Apache-2.0
"""A CUDA driver and a memory socket on the host, in place of a GPU."""

import contextlib
import ctypes
import mmap
import os
import socket
import struct
import threading

import numpy as np

UUID = bytes(range(16))
ID = b"i" * 16


def plain(argument):
    return argument.value if hasattr(argument, "value") else argument


class FakeCuda:
    """The functions of libcuda.so.1 that the package calls, on memory of the host.

    Attributes
    ----------
    live : dict of int to object
        Memory that was not freed, by address.
    on_device : int
        Number of bytes copied on the device.
    to_host, from_host : int
        Number of bytes copied between the device and the host.
    """

    def __init__(self):
        self.live = {}
        self.imported = {}
        self.on_device = self.to_host = self.from_host = self.synchronized = 0

    def __getattr__(self, name):
        if name.startswith("cuCtx") or name in ("cuInit", "cuDevicePrimaryCtxRetain", "cuMemSetAccess"):
            return lambda *arguments: 0
        raise AttributeError(name)

    def cuGetErrorName(self, code, text):
        text._obj.value = b"CUDA_ERROR_FAKE"
        return 0

    def cuDeviceGet(self, device, ordinal):
        device._obj.value = plain(ordinal)
        return 0 if plain(ordinal) == 0 else 101

    def cuDeviceGetUuid_v2(self, uuid, device):
        ctypes.memmove(uuid._obj, UUID, len(UUID))
        return 0

    def cuPointerGetAttribute(self, value, attribute, address):
        if not any(0 <= plain(address) - start < len(memory) for start, memory in self.live.items()):
            return 1
        value._obj.value = 2 if plain(attribute) == 2 else 0
        return 0

    def cuMemAlloc_v2(self, address, size):
        memory = mmap.mmap(-1, plain(size))
        address._obj.value = self._add(memory)
        return 0

    def _add(self, memory):
        address = np.frombuffer(memory, np.uint8).ctypes.data
        self.live[address] = memory
        return address

    def cuMemFree_v2(self, address):
        del self.live[plain(address)]
        return 0

    def cuMemImportFromShareableHandle(self, handle, file, kind):
        handle._obj.value = 1 + len(self.imported)
        self.imported[handle._obj.value] = os.dup(plain(file))
        return 0

    def cuMemAddressReserve(self, address, size, alignment, at, flags):
        address._obj.value = 1
        return 0

    def cuMemMap(self, address, size, offset, handle, flags):
        address.value = self._add(mmap.mmap(self.imported[plain(handle)], plain(size)))
        return 0

    def cuMemUnmap(self, address, size):
        self.live.pop(plain(address), None)
        return 0

    def cuMemAddressFree(self, address, size):
        return 0

    def cuMemRelease(self, handle):
        os.close(self.imported.pop(plain(handle)))
        return 0

    def cuStreamSynchronize(self, stream):
        self.synchronized += 1
        return 0

    def cuMemcpyDtoDAsync_v2(self, to, source, size, stream):
        self.on_device += plain(size)
        return self._copy(to, source, size)

    def cuMemcpyDtoH_v2(self, to, source, size):
        self.to_host += plain(size)
        return self._copy(to, source, size)

    def cuMemcpyHtoD_v2(self, to, source, size):
        self.from_host += plain(size)
        return self._copy(to, source, size)

    @staticmethod
    def _copy(to, source, size):
        ctypes.memmove(plain(to), plain(source), plain(size))
        return 0


class MemorySocket:
    """A memory socket that grants regions of `room` bytes of GPU memory in total.

    Attributes
    ----------
    files : list of int
        The memory of all regions.
    requests : list of (int, bytes)
        Size and UUID of the requests.
    open : int
        Number of connections that clients hold.
    """

    def __init__(self, path, room=1 << 30):
        self.files = []
        self.requests = []
        self.open = 0
        self._room = room
        self._connections = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.bind(path)
        self._socket.listen()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        with contextlib.suppress(OSError):  # closed
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        self._connections.append(connection)
        message = connection.recv(4096)
        (size,) = struct.unpack("<Q", message[8:16])
        of_gpu = message[:8] == b"CROUTG1\0"
        if of_gpu:
            self.requests.append((size, message[16:]))
        if not of_gpu or size > self._room:
            connection.send(b"\1too much memory")
            connection.close()
            return
        self._room -= size
        file = os.memfd_create("fake-gpu", os.MFD_CLOEXEC)
        os.ftruncate(file, size)
        self.files.append(file)
        self.open += 1
        socket.send_fds(connection, [b"\0" + ID + struct.pack("<Q", size)], [file])
        with contextlib.suppress(OSError):
            connection.recv(1)
        self.open -= 1
        connection.close()

    def read(self, region, offset, size, dtype=float):
        return np.frombuffer(os.pread(self.files[region], size, offset), dtype)

    def write(self, region, offset, array):
        os.pwrite(self.files[region], array.tobytes(), offset)

    def disconnect(self):
        """End all regions, as a restart of the server does."""
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.disconnect()
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for file in self.files:
            os.close(file)


class Interface:
    """An array of another library, with __cuda_array_interface__ only."""

    def __init__(self, host, strides=None):
        self.host = host  # the fake device's memory is memory of the host
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": host.shape,
            "typestr": host.dtype.str,
            "data": (host.ctypes.data, False),
            "strides": host.strides if strides is None else strides,
            "stream": None,
        }

    @property
    def ndim(self):
        return self.host.ndim

    def __array__(self, dtype=None, copy=None):
        return self.host.copy()
