"""Text of a run as it may be shown: characters that steer a terminal or turn the direction of writing are left out."""

from __future__ import annotations

import json
import re

# Controls but tab and newline; directions and isolates; invisible characters that hide or reorder what is read, among
# them the tags that spell ASCII out of sight; separators that some take for new lines.
_UNSHOWN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
_ESCAPES = re.compile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[PX^_][^\x1b]*(?:\x1b\\\\)?)")


_COLOURS = re.compile("(\x1b\\[[0-9;]*m)")


def clean(text: str) -> str:
    """Without sequences that steer terminals, control characters and marks of direction; tabs and newlines stay."""
    return _UNSHOWN.sub("", _ESCAPES.sub("", text)) if not text.isprintable() or not text.isascii() else text


def clean_rendered(text: str) -> str:
    """The same of what a renderer has coloured: colours stay."""
    return "".join(part if index % 2 else clean(part) for index, part in enumerate(_COLOURS.split(text)))


def escaped(text: str) -> str:
    """JSON with the same characters written as escapes: it says what it said."""
    return _UNSHOWN.sub(lambda found: json.dumps(found[0])[1:-1], text)
