"""TensorBoard event files, read without TensorBoard: records as TFRecord frames them, in the wire format of protobuf.

    record   length u64, its checksum u32, data, checksum u32            (tensorflow/core/lib/io/record_writer.h)
    Event    wall_time = 1 (double), step = 2, summary = 5               (tensorflow/core/util/event.proto)
    Summary  value = 1: tag = 1, simple_value = 2 (float), tensor = 8    (tensorflow/core/framework/summary.proto)

A scalar event of one writer differs from the next of the same tag in its time, step and value only. So events are read
by the thousand: those of one length side by side as a matrix of bytes, compared with the first of them.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from gymnasium_solver.limits import LONGEST_TEXT, MOST_COLUMNS, MOST_TEXTS
from gymnasium_solver.runs.foreign.series import Series

FRAME = 16  # bytes around the data of a record
SHORTEST = 20  # data of a record that can be a scalar
AT_A_TIME = 100_000
PATTERNS = 200  # tags of one length that are read together; others one by one
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
FLOAT, DOUBLE, INT32, STRING, INT64 = 1, 2, 3, 7, 9  # types of a tensor


@dataclass
class Events:
    """What a file holds: scalars by tag, the last text of each tag, and what could not be read."""

    scalars: dict[str, Series] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def read_events(paths: list[Path]) -> Events:
    """Several files of one run, in the order in which they were written."""
    events = Events()
    parts: dict[str, list[Series]] = {}
    for path in sorted(paths, key=lambda path: path.name):
        try:
            size = path.stat().st_size
            with path.open("rb") as file:
                if not size:
                    events.notes.append(f"{path.name} is empty")
                    continue
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                    _read_file(data, path.name, parts, events)
        except OSError as error:
            events.notes.append(f"{path.name} cannot be read: {error.strerror or error}")
    if len(parts) > MOST_COLUMNS:
        events.notes.append(f"{len(parts)} tags were logged; those {MOST_COLUMNS} with the most values were read")
        lengths = {tag: sum(map(len, pieces)) for tag, pieces in parts.items()}
        kept = set(sorted(parts, key=lambda tag: -lengths[tag])[:MOST_COLUMNS])
        parts = {tag: pieces for tag, pieces in parts.items() if tag in kept}
    for tag, pieces in parts.items():
        joined = [np.concatenate(x) for x in zip(*((s.steps, s.values, s.times) for s in pieces), strict=True)]
        events.scalars[tag] = Series(*joined).at(np.argsort(joined[2], kind="stable"))  # as they were written
    return events


def _read_file(data: mmap.mmap, name: str, parts: dict[str, list[Series]], events: Events) -> None:
    starts, lengths, left = _records(data)
    if not len(starts):
        events.notes.append(f"{name} holds no readable records: it is damaged or no event file")
        return
    if left:
        events.notes.append(f"{name} is cut off or damaged: its last {left} bytes cannot be read")
    view = np.frombuffer(data, np.uint8)
    slow: list[np.ndarray] = []
    for length in np.unique(lengths):
        some = starts[lengths == length]
        if length < SHORTEST:
            slow.append(some)
            continue
        blocks = (some[begin : begin + AT_A_TIME] for begin in range(0, len(some), AT_A_TIME))
        slow += [_read_alike(view, block, int(length), parts) for block in blocks]
    del view  # the file cannot be closed while an array looks at it
    by_tag: dict[str, list[tuple[float, float, float]]] = {}
    damaged = 0
    others = np.sort(np.concatenate(slow))
    for start, length in zip(others.tolist(), lengths[np.searchsorted(starts, others)].tolist(), strict=True):
        try:
            _read_event(data[start : start + length], by_tag, events.texts)
        except (ValueError, IndexError, struct.error, OverflowError):
            damaged += 1
    for tag, rows in by_tag.items():
        parts.setdefault(tag, []).append(Series(*np.array(rows).T))
    if damaged:
        events.notes.append(f"{name}: {damaged} damaged records were left out")


def _records(data: mmap.mmap) -> tuple[np.ndarray, np.ndarray, int]:
    """Where the data of each record begins, how long it is, and how many bytes at the end are no whole record."""
    starts, lengths = [], []
    at, size, length_at = 0, len(data), struct.Struct("<Q").unpack_from
    while at + FRAME <= size:
        (length,) = length_at(data, at)
        if at + FRAME + length > size:
            break
        starts.append(at + 12)
        lengths.append(length)
        at += FRAME + length
    return np.array(starts, np.int64), np.array(lengths, np.int64), size - at


def _read_alike(view: np.ndarray, starts: np.ndarray, length: int, parts: dict[str, list[Series]]) -> np.ndarray:
    """Scalars among the records of one length; returns where the others begin."""
    rows = np.lib.stride_tricks.sliding_window_view(view, length)[starts]
    slow = []
    plain = (rows[:, 0] == 1 << 3 | FIXED64) & (rows[:, 9] == 2 << 3 | VARINT)
    slow.append(starts[~plain])
    starts, rows = starts[plain], rows[plain]
    more = np.cumprod(rows[:, 10:20] >= 128, axis=1).sum(axis=1)  # bytes of the step beyond its first
    for extra in np.unique(more):
        here, begin = rows[more == extra], 11 + int(extra)
        at = starts[more == extra]
        for _ in range(PATTERNS):
            if not len(here) or length - 4 <= begin:
                break
            alike = (here[:, begin : length - 4] == here[0, begin : length - 4]).all(axis=1)
            tag = _scalar_tag(here[0].tobytes(), begin)
            if tag is None:
                slow.append(at[alike])
            else:
                parts.setdefault(tag, []).append(_scalars(here[alike], begin))
            here, at = here[~alike], at[~alike]
        slow.append(at)
    return np.concatenate(slow)


def _scalars(rows: np.ndarray, begin: int) -> Series:
    times = np.ascontiguousarray(rows[:, 1:9]).view("<f8").ravel()
    values = np.ascontiguousarray(rows[:, -4:]).view("<f4").ravel().astype(float)
    digits = (rows[:, 10:begin] & 127).astype(np.uint64)
    steps = (digits << (7 * np.arange(digits.shape[1], dtype=np.uint64))).sum(axis=1).astype(np.int64)
    return Series(steps.astype(float), values, times)


def _scalar_tag(event: bytes, begin: int) -> str | None:
    """The tag, if after the step there is one scalar whose value is the last four bytes, and nothing else."""
    try:
        fields = list(_fields(event[begin:]))
        if [number for number, _, _ in fields] != [5]:
            return None
        ((number, _, value),) = _fields(fields[0][2])
        (first, _, tag), (second, kind, _) = _fields(value)
    except (ValueError, IndexError):
        return None
    return tag.decode(errors="replace") if (number, first, second, kind) == (1, 1, 2, FIXED32) else None


def _read_event(event: bytes, scalars: dict[str, list[tuple[float, float, float]]], texts: dict[str, str]) -> None:
    time, step, values = 0.0, 0, []
    for number, kind, content in _fields(event):
        if number == 1 and kind == FIXED64:
            (time,) = struct.unpack("<d", content)
        elif number == 2 and kind == VARINT:
            step = _signed(content)
        elif number == 5 and kind == BYTES:
            values += [value for inner, _, value in _fields(content) if inner == 1]
    for value in values:
        tag, number_or_text = _read_value(value)
        if isinstance(number_or_text, float):
            scalars.setdefault(tag, []).append((float(step), number_or_text, time))
        elif number_or_text is not None and (tag in texts or len(texts) < MOST_TEXTS):
            texts[tag] = number_or_text


def _read_value(value: bytes) -> tuple[str, float | str | None]:
    tag, found = "", None
    for number, kind, content in _fields(value):
        if number == 1:
            tag = content.decode(errors="replace")
        elif number == 2 and kind == FIXED32:
            (found,) = struct.unpack("<f", content)
        elif number == 8 and kind == BYTES:
            found = _read_tensor(content)
    return tag, found


def _read_tensor(tensor: bytes) -> float | str | None:
    """The single number or text in it; None for anything larger."""
    dtype = 0
    content: bytes = b""
    listed: dict[int, list[bytes]] = {}
    for number, _, data in _fields(tensor):
        if number == 1:
            dtype = _signed(data)
        elif number == 4:
            content = data
        else:
            listed.setdefault(number, []).append(data)
    if dtype == STRING:
        return b"\n".join(listed.get(8, []))[:LONGEST_TEXT].decode(errors="replace") or None
    field_of, form = {FLOAT: (5, "<f"), DOUBLE: (6, "<d"), INT32: (7, "<i"), INT64: (10, "<q")}.get(dtype, (0, ""))
    if not form:
        return None
    data = content or b"".join(listed.get(field_of, []))
    if dtype in (INT32, INT64) and not content:
        return float(_signed(data)) if data else None
    return float(struct.unpack(form, data)[0]) if len(data) == struct.calcsize(form) else None


def _fields(message: bytes) -> Iterator[tuple[int, int, bytes]]:
    """(field number, wire type, content); the content of a varint is the varint itself."""
    at, size = 0, len(message)
    while at < size:
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            end = _varint(message, at)[1]
        elif kind == BYTES:
            length, at = _varint(message, at)
            end = at + length
        elif kind in (FIXED64, FIXED32):
            end = at + (8 if kind == FIXED64 else 4)
        else:
            raise ValueError(f"wire type {kind}")
        if end > size:
            raise ValueError("cut off")
        yield number, kind, message[at:end]
        at = end


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise ValueError("varint too long")


def _signed(varint: bytes) -> int:
    value = _varint(varint, 0)[0] & (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value
