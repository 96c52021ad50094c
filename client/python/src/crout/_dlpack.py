# SPDX-License-Identifier: Apache-2.0
"""DLPack, the protocol by which libraries exchange arrays in GPU memory: its structures and capsules."""

from __future__ import annotations

import ctypes
import threading
from ctypes import c_char_p, c_int, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p, py_object
from typing import Any, NamedTuple

import numpy as np

CUDA, CUDA_MANAGED = 2, 13
"""Kinds of devices: memory of a GPU."""

_NAME = b"dltensor"
_FLOAT, _COMPLEX = 2, 5  # kinds of types
_KINDS = {_FLOAT: "f", _COMPLEX: "c"}


class _Device(ctypes.Structure):
    _fields_ = (("kind", c_int), ("id", c_int32))


class _Type(ctypes.Structure):
    _fields_ = (("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", c_void_p),
        ("device", _Device),
        ("ndim", c_int32),
        ("type", _Type),
        ("shape", ctypes.POINTER(c_int64)),
        ("strides", ctypes.POINTER(c_int64)),
        ("byte_offset", c_uint64),
    )


class _ManagedTensor(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_ManagedTensor))
_ManagedTensor._fields_ = (("tensor", _Tensor), ("context", c_void_p), ("deleter", _Deleter))
_Destructor = ctypes.PYFUNCTYPE(None, c_void_p)

_python = ctypes.pythonapi
_new = _python.PyCapsule_New
_new.restype, _new.argtypes = py_object, (c_void_p, c_char_p, _Destructor)
# A destructor receives an object that must not gain references, so that it is passed as an address.
_is_valid = ctypes.PYFUNCTYPE(c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", _python))
_pointer = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", _python))


class Tensor(NamedTuple):
    """An array of a GPU.

    Attributes
    ----------
    address : int
    shape : tuple of int
    strides : tuple of int or None
        In elements; None for the order of C.
    dtype : numpy.dtype or None
        None for a type that NumPy lacks.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: np.dtype[Any] | None


def read(capsule: Any) -> Tensor:
    """Describe the array in a capsule, which must live as long as the array is used."""
    address = id(capsule)
    if not _is_valid(address, _NAME):
        raise BufferError("the DLPack capsule is not of version 0")
    tensor = ctypes.cast(_pointer(address, _NAME), ctypes.POINTER(_ManagedTensor)).contents.tensor
    kind, bits, lanes = _KINDS.get(tensor.type.code), tensor.type.bits, tensor.type.lanes
    dtype = np.dtype(f"<{kind}{bits // 8}") if kind and bits in (16, 32, 64, 128) and lanes == 1 else None
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else None
    return Tensor((tensor.data or 0) + tensor.byte_offset, shape, strides, dtype)


_lock = threading.Lock()
_exported: dict[int, tuple[Any, ...]] = {}  # structures, arrays and owners of capsules, by address


def _drop(
    managed: Any, address_of: Any = ctypes.addressof, exported: Any = _exported, lock: Any = _lock
) -> None:
    """End an array. Other libraries may call this while the interpreter ends and modules are empty."""
    with lock:
        kept = exported.pop(address_of(managed.contents), None)
    del kept  # without the lock: the owner's destructor may take long


def _end(capsule: int) -> None:
    """End a capsule that no library has taken over."""
    if _is_valid(capsule, _NAME):
        _drop(ctypes.cast(_pointer(capsule, _NAME), ctypes.POINTER(_ManagedTensor)))


_delete = _Deleter(_drop)
_destroy = _Destructor(_end)
for _callback in (_delete, _destroy):  # they must outlive this module
    _python.Py_IncRef(py_object(_callback))


def make(array: Tensor, ordinal: int, owner: Any) -> Any:
    """Make a capsule of an array. It refers to `owner`."""
    count = len(array.shape)
    shape, strides = (c_int64 * count)(*array.shape), (c_int64 * count)(*(array.strides or ()))
    dtype = array.dtype
    assert dtype is not None
    code = _COMPLEX if dtype.kind == "c" else _FLOAT
    managed = _ManagedTensor()
    managed.tensor = _Tensor(
        array.address,
        _Device(CUDA, ordinal),
        count,
        _Type(code, 8 * dtype.itemsize, 1),
        ctypes.cast(shape, ctypes.POINTER(c_int64)),
        ctypes.cast(strides, ctypes.POINTER(c_int64)) if array.strides is not None else None,
        0,
    )
    managed.deleter = _delete
    address = ctypes.addressof(managed)
    with _lock:
        _exported[address] = (managed, shape, strides, owner)
    return _new(address, _NAME, _destroy)
