# SPDX-License-Identifier: Apache-2.0
"""Arrays in GPU memory: those of other libraries, and the package's own."""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crout import _dlpack
from crout._cuda import LEGACY_STREAM, CudaError, driver
from crout.errors import InvalidRequest

Array = npt.NDArray[Any]

_PIECE = 1 << 20  # the largest payload of a message


@dataclass(frozen=True)
class DeviceView:
    """An array in memory of a GPU, of any library. Its contents are complete.

    Attributes
    ----------
    address : int
    shape : tuple of int
    dtype : numpy.dtype or None
        None for a type that NumPy lacks.
    order : {"C", "F", ""}
        Layout; "" if the array is not contiguous.
    ordinal : int
        Number of the GPU in this process.
    owner : object
        Keeps the memory.
    """

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any] | None
    order: str
    ordinal: int
    owner: Any

    @property
    def nbytes(self) -> int:
        """Number of bytes."""
        return math.prod(self.shape) * (0 if self.dtype is None else self.dtype.itemsize)

    def pieces(self) -> Iterator[memoryview]:
        """Copy the bytes to the host, in pieces."""
        for start in range(0, self.nbytes, _PIECE):
            piece = np.empty(min(_PIECE, self.nbytes - start), np.uint8)
            driver().read(self.ordinal, piece.ctypes.data, self.address + start, piece.nbytes)
            yield piece.data


def ordinal_of(value: Any) -> int | None:
    """Return the number of the GPU whose memory has the array `value`; None if no GPU has it."""
    if isinstance(value, DeviceArray):
        return value._ordinal
    if hasattr(value, "__dlpack_device__"):
        kind, ordinal = value.__dlpack_device__()
        return int(ordinal) if kind in (_dlpack.CUDA, _dlpack.CUDA_MANAGED) else None
    if isinstance(value, np.ndarray) or not hasattr(value, "__cuda_array_interface__"):
        return None
    try:
        return driver().device_of(value.__cuda_array_interface__["data"][0])
    except CudaError:
        return None


def view_of(value: Any) -> DeviceView | None:
    """Describe an array in memory of a GPU, and wait for its contents. None for all other values."""
    ordinal = ordinal_of(value)
    if ordinal is None:
        return None
    try:
        if isinstance(value, DeviceArray):
            return _view(value, value.__cuda_array_interface__, ordinal)
        if hasattr(value, "detach"):  # PyTorch does not export tensors that require gradients.
            value = value.detach()
        if not hasattr(value, "__dlpack__"):
            return _view(value, value.__cuda_array_interface__, ordinal)
        capsule = value.__dlpack__(stream=LEGACY_STREAM)
        array = _dlpack.read(capsule)
        driver().synchronize(ordinal)
    except (BufferError, CudaError):  # no such form, or no driver in this process
        return None
    order = _order(array.shape, array.strides)
    return DeviceView(array.address, array.shape, array.dtype, order, ordinal, capsule)


def _view(owner: Any, interface: dict[str, Any], ordinal: int) -> DeviceView:
    """Describe an array with __cuda_array_interface__."""
    dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
    strides = interface.get("strides")
    if strides is not None:
        strides = tuple(stride // dtype.itemsize for stride in strides)
    driver().synchronize(ordinal, interface.get("stream") or LEGACY_STREAM)
    return DeviceView(interface["data"][0], shape, dtype, _order(shape, strides), ordinal, owner)


def _order(shape: tuple[int, ...], strides: tuple[int, ...] | None) -> str:
    if strides is None or strides_of(shape, "C") == strides or 0 in shape:
        return "C"
    # The stride of a dimension of length 1 has no meaning.
    for order in ("C", "F"):
        expected = strides_of(shape, order)
        if all(n == 1 or a == b for n, a, b in zip(shape, strides, expected, strict=True)):
            return order
    return ""


def strides_of(shape: tuple[int, ...], order: str) -> tuple[int, ...]:
    """Return the strides of a contiguous array, in elements."""
    strides, step = [], 1
    for length in shape if order == "F" else reversed(shape):
        strides.append(step)
        step *= max(length, 1)
    return tuple(strides if order == "F" else reversed(strides))


class Block:
    """Memory of a GPU for arrays of this package; of this process unless a subclass has other memory."""

    def __init__(self, ordinal: int, size: int) -> None:
        self.ordinal = ordinal
        self.size = size
        self.address = driver().allocate(ordinal, size) if size else 0
        if size:
            weakref.finalize(self, _free, ordinal, self.address, os.getpid()).atexit = False


def _free(ordinal: int, address: int, process: int) -> None:
    if process == os.getpid():  # a forked child leaves the memory to its parent
        driver().free(ordinal, address)


class DeviceArray:
    """A contiguous array in memory of a GPU, from `Client.empty` or as a solution.

    CuPy, PyTorch, JAX and Numba use its memory without a copy: ``cupy.asarray(x)``,
    ``torch.from_dlpack(x)``, ``jax.dlpack.from_dlpack(x)``. They must finish their work on the memory before
    a call sends the array; work on the default stream counts as finished.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    device : str
        "cuda:0", ...: the number of the GPU in this process.
    nbytes : int
    """

    def __init__(self, block: Block, shape: tuple[int, ...], dtype: np.dtype[Any], order: str) -> None:
        self.shape = shape
        self.dtype = dtype
        self._block = block
        self._order = order

    def __repr__(self) -> str:
        return f"<crout.DeviceArray of {self.dtype}, shape {self.shape}, on {self.device}>"

    @property
    def _ordinal(self) -> int:
        return self._block.ordinal

    @property
    def device(self) -> str:
        return f"cuda:{self._ordinal}"

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        size = self.dtype.itemsize
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self._block.address, False),
            "strides": tuple(size * stride for stride in strides_of(self.shape, self._order)),
            "stream": None,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return _dlpack.CUDA, self._ordinal

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Export the array. It has no pending work, so that `stream` and `max_version` have no effect."""
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("a copy, or another device, is not supported: copy the exported array")
        strides = strides_of(self.shape, self._order)
        tensor = _dlpack.Tensor(self._block.address, self.shape, strides, self.dtype)
        return _dlpack.make(tensor, self._ordinal, self._block)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("an array of a GPU cannot be used on the host without a copy")
        return self.get().astype(self.dtype if dtype is None else dtype, copy=False)

    def get(self) -> Array:
        """Copy the array to the host, in the same order."""
        host = np.empty(self.shape, self.dtype, "F" if self._order == "F" else "C")
        if host.nbytes:
            driver().read(self._ordinal, host.ctypes.data, self._block.address, host.nbytes)
        return host

    def set(self, value: Any) -> None:
        """Copy an array of the same shape from the host, or from the same GPU.

        On a GPU it must have the same type and order. Raises InvalidRequest.
        """
        view = view_of(value)
        if view is None:
            self._write(np.asarray(value))
            return
        same = (view.shape, view.dtype, view.ordinal) == (self.shape, self.dtype, self._ordinal)
        if not same or _order(self.shape, strides_of(self.shape, self._order)) != view.order:
            raise InvalidRequest(
                f"the array has the shape {view.shape} and the type {view.dtype}, or another order or GPU: "
                f"give {self.shape}, {self.dtype}, in the order {self._order} on {self.device}"
            )
        if view.nbytes:
            driver().copy(self._ordinal, self._block.address, view.address, view.nbytes)

    def _write(self, value: Array) -> None:
        if value.shape != self.shape:
            raise InvalidRequest(f"the array has the shape {value.shape}: give {self.shape}")
        contiguous = np.asfortranarray if self._order == "F" else np.ascontiguousarray
        host = contiguous(value, self.dtype)
        if host.nbytes:
            driver().write(self._ordinal, self._block.address, host.ctypes.data, host.nbytes)

    def reshape(self, shape: tuple[int, ...]) -> DeviceArray:
        """Return the same memory as a vector, or as one column. Raises InvalidRequest for other shapes."""
        if self.shape not in (shape, (*shape, 1)) and shape != (*self.shape, 1):
            raise InvalidRequest(f"the shape {self.shape} cannot become {shape}: use cupy.asarray(x)")
        return DeviceArray(self._block, shape, self.dtype, self._order)


def on_host(host: Array, ordinal: int) -> DeviceArray:
    """Copy an array of the host to memory of this process on a GPU."""
    order = "C" if host.flags.c_contiguous else "F"
    array = DeviceArray(Block(ordinal, host.nbytes), host.shape, host.dtype, order)
    array.set(host)
    return array
