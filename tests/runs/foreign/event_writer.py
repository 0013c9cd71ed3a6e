"""Event files as TensorBoard writes them, made by hand: what the reader is tested against."""

from __future__ import annotations

import struct


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number: int, content: bytes | int | float, form: str = "") -> bytes:
    """A length-delimited field for bytes, a varint for int, a fixed one for a float in `form` <f or <d."""
    if isinstance(content, bytes):
        return varint(number << 3 | 2) + varint(len(content)) + content
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | (1 if form == "<d" else 5)) + struct.pack(form, content)


def record(data: bytes, checksum: int = 0) -> bytes:
    return struct.pack("<QI", len(data), checksum) + data + struct.pack("<I", checksum)


def event(step: int, *values: bytes, time: float = 1.7e9) -> bytes:
    summary = b"".join(field(1, value) for value in values)
    return record(field(1, time, "<d") + (field(2, step) if step else b"") + field(5, summary))


def version() -> bytes:
    return record(field(1, 1.7e9, "<d") + field(3, b"brain.Event:2"))


def scalar(tag: str, value: float) -> bytes:
    return field(1, tag.encode()) + field(2, float(value), "<f")


def tensor_scalar(tag: str, value: float, double: bool = False) -> bytes:
    tensor = field(1, 2 if double else 1) + field(2, b"")
    tensor += field(6, struct.pack("<d", value)) if double else field(4, struct.pack("<f", value))
    return field(1, tag.encode()) + field(8, tensor) + field(9, field(1, field(1, b"scalars")))


def text(tag: str, content: str) -> bytes:
    tensor = field(1, 7) + field(2, field(2, field(1, 1))) + field(8, content.encode())
    return field(1, f"{tag}/text_summary".encode()) + field(8, tensor) + field(9, field(1, field(1, b"text")))
