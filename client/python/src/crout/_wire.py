# SPDX-License-Identifier: Apache-2.0
"""Handles protobuf's wire format directly, so that matrix bytes are copied as little as possible.

A matrix is copied once into a message: the key and length of the `bytes` field are written before the
caller's memory. It is not copied out of a message: a received field is a view of the memory in which gRPC
received it. Both rely only on the encoding (https://protobuf.dev/programming-guides/encoding): a
message is a sequence of fields in any order. A length-delimited field is its key, (number << 3) | 2, then
its length as a varint, then its bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from crout.errors import ProtocolError

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_VARINT_BYTES = 10
_SHARED_OFFSET = 13  # from the number of a `bytes` field of a request to that of its shared range


def bytes_field(number: int, length: int) -> bytes:
    """Encode the key and length that precede the `length` bytes of field `number`."""
    return _varint(number << 3 | _BYTES) + _varint(length)


def split(message: bytes, number: int) -> tuple[bytes, list[memoryview]]:
    """Separate a message from the contents of its `bytes` field `number`.

    Returns
    -------
    rest : bytes
        The message without that field.
    pieces : list of memoryview
        The field's values in order; they refer to `message`.

    Raises
    ------
    ProtocolError
        The message is malformed.
    """
    rest = []
    pieces = []
    for field, start, value, end in _fields(memoryview(message)):
        if field == number:
            pieces.append(memoryview(message)[value:end])
        else:
            rest.append(message[start:end])
    return b"".join(rest), pieces


def _fields(view: memoryview) -> Iterator[tuple[int, int, int, int]]:
    """Generate, for each field, its number and the positions of its start, its value and its end.

    The number is 0 for fields that are not length-delimited, which no caller reads.
    """
    position = 0
    while position < len(view):
        start = position
        key, position = _read_varint(view, position)
        number, kind = key >> 3, key & 7
        if kind == _BYTES:
            length, position = _read_varint(view, position)
            value, position = position, position + length
        else:
            value = position
            number = 0
            if kind == _VARINT:
                _, position = _read_varint(view, position)
            elif kind in (_FIXED32, _FIXED64):
                position += 4 if kind == _FIXED32 else 8
            else:
                raise _malformed()
        if position > len(view):
            raise _malformed()
        yield number, start, value, position


def values(message: bytes, number: int) -> list[bytes]:
    """Return the values of the length-delimited field `number`, in order. Raises ProtocolError."""
    return [bytes(piece) for piece in split(message, number)[1]]


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _read_varint(view: memoryview, position: int) -> tuple[int, int]:
    value = 0
    for index in range(min(_MAX_VARINT_BYTES, len(view) - position)):
        byte = view[position + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, position + index + 1
    raise _malformed()


def _malformed() -> ProtocolError:
    return ProtocolError("the server sent a malformed message")


class Range(NamedTuple):
    """Payload bytes in shared memory.

    Attributes
    ----------
    encoded : bytes
        The SharedRange message.
    size : int
        Number of bytes.
    last : bool
        Whether the payload ends with these bytes.
    """

    encoded: bytes
    size: int
    last: bool

    def field(self, number: int) -> bytes:
        """Encode the range in place of bytes of the field `number`."""
        return bytes_field(number + _SHARED_OFFSET, len(self.encoded)) + self.encoded
