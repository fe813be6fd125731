"""Pictures as PNG, without another package: a report needs no more than this."""

from __future__ import annotations

import struct
import zlib

import numpy as np

COLOR_TYPE = {1: 0, 3: 2}
"""Channels -> the number that PNG gives grey and RGB."""


def png(pixels: np.ndarray) -> bytes:
    """(h, w, 1 or 3) bytes."""
    height, width, channels = pixels.shape
    if channels not in COLOR_TYPE:
        raise ValueError(f"A picture has 1 or 3 channels, this one has {channels}.")
    header = struct.pack(">IIBBBBB", width, height, 8, COLOR_TYPE[channels], 0, 0, 0)
    lines = np.zeros((height, 1 + width * channels), dtype=np.uint8)  # each line begins with its filter: none
    lines[:, 1:] = pixels.reshape(height, -1)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")))
