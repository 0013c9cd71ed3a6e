"""How much a file may ask for, and reading that keeps to it.

A file is data, whoever made it: what it would take is known before it is taken, so that a kilobyte cannot become
gigabytes. No input takes more than half a gigabyte, none under ten megabytes more than ten seconds (`tests/fuzz`).
"""

from __future__ import annotations

import json
import stat
import zipfile
import zlib
from pathlib import Path
from typing import Any

MEGABYTE = 1 << 20

# Documents. In memory, JSON takes up to 25 times its text (a list of empty lists), YAML 300 times while it is read.
LARGEST_JSON = 8 * MEGABYTE
LARGEST_YAML = MEGABYTE
MOST_VALUES_OF_YAML = 20_000  # with every alias written out, as it will be sooner or later
DEEPEST = 100  # nesting of YAML; people write ten
LARGEST_LOG = 16 * MEGABYTE  # of a longer one, the end

# Tables.
LONGEST_LINE = MEGABYTE
MOST_COLUMNS = 2_000  # of a log of another program
MOST_COLUMNS_OF_METRICS = 10_000
MOST_CELLS = 1 << 25  # 8 bytes each, and a bit more
CELLS_AT_A_TIME = 1 << 19  # as Python objects: 60 bytes each

# Event files of TensorBoard.
MOST_TEXTS = 100
LONGEST_TEXT = 1 << 16

# Tensors and archives.
LARGEST_TENSOR_HEADER = 8 * MEGABYTE  # of a safetensors file, which is JSON
LARGEST_TENSORS = 4 << 30  # of all tensors of another program's file together: they are there, byte by byte
MOST_SWELLING = 10  # times that an archive may grow when it is unpacked; weights hardly compress
LARGEST_ARRAY = 8 * MEGABYTE  # of evaluations.npz, unpacked


class TooLarge(ValueError):
    """More than is read; the message says of what, and how much that is."""


def read_bytes(path: Path, most: int = LARGEST_JSON) -> bytes:
    """The whole file. OSError if it cannot be read, or is none: a pipe would be waited for, a device has no end."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError("it is no regular file")
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise TooLarge(f"it is larger than the {size(most)} that are read")
    return content


def read_end(path: Path, most: int = LARGEST_LOG) -> bytes:
    """The last whole lines of a file, all of it where it is not too large."""
    if not stat.S_ISREG((state := path.stat()).st_mode):
        raise OSError("it is no regular file")
    with path.open("rb") as file:
        if state.st_size <= most:
            return file.read(most)
        file.seek(state.st_size - most)
        content = file.read(most)
    return content[content.find(b"\n") + 1 :]


def parse_json(text: bytes) -> Any:
    """The value, NaN and infinity among the numbers; ValueError if it is none, holds text that cannot be written again
    (halves of surrogate pairs), or is nested more than 200 deep, so that whoever walks it may do so by recursion."""
    from pydantic_core import from_json

    if text[:4].count(0) or text[:1] in (b"\xef", b"\xfe", b"\xff"):  # as some editors and shells write it
        text = text.decode(json.detect_encoding(text)).encode()
    return from_json(text)


def read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, most: int) -> bytes:
    """Unpacked, whatever size it claims to have; ValueError (or BadZipFile) if it cannot be, or is too large."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # others are unpacked without a bound
        raise ValueError(f"{member.filename} is packed in a way that is not read")
    try:
        with archive.open(member) as file:
            content = file.read(most + 1)
    except (zlib.error, EOFError, RuntimeError, OverflowError) as error:
        raise ValueError(f"{member.filename} cannot be unpacked: {error}") from error
    if len(content) > most:
        raise TooLarge(f"{member.filename} is larger than the {size(most)} that are read")
    return content


def size(count: int) -> str:
    return f"{count // MEGABYTE} MB" if count >= MEGABYTE else f"{count // 1024} kB"
