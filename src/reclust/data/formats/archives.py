"""Reading packed files without trusting them: bounded, in memory, nothing is ever unpacked to the disk.

Every function either returns the whole content or raises a DataError that names the file.
"""

from __future__ import annotations

import bz2
import gzip
import re
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from ..errors import DataError, reading

GIB = 1 << 30
_RATIO = 200  # what a large file may grow to when unpacked; images and numbers stay far below


def allowance(path: Path) -> int:
    """How many bytes a packed file may unpack to: a gibibyte, or 200 times its own size where that is more."""
    with reading(path):
        return max(GIB, _RATIO * path.stat().st_size)


def read_file(path: Path, *, limit: int) -> bytes:
    """A plain file of at most `limit` bytes."""
    with reading(path), open(path, "rb") as stream:
        return _bounded(stream, path, limit)


def gunzip(path: Path, *, limit: int) -> bytes:
    """The content of a gzip file, at most `limit` bytes."""
    with reading(path), gzip.open(path, "rb") as stream:
        return _bounded(cast(BinaryIO, stream), path, limit)


def bunzip(path: Path, *, limit: int) -> bytes:
    """The content of a bzip2 file, at most `limit` bytes."""
    with reading(path), bz2.open(path, "rb") as stream:
        return _bounded(cast(BinaryIO, stream), path, limit)


class ZipMembers:
    """The files of an open zip archive whose directory has been checked."""

    def __init__(self, archive: zipfile.ZipFile, path: Path) -> None:
        self._archive, self._path = archive, path
        self._members = {member.filename: member for member in archive.infolist() if not member.is_dir()}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._members)

    def read(self, name: str) -> bytes:
        """The bytes of one member; their CRC is checked."""
        if name not in self._members:
            raise DataError(f"{self._path} holds no {name}; it holds {', '.join(self.names[:5]) or 'nothing'} ….")
        member = self._members[name]
        with reading(f"{self._path}: {name}"), self._archive.open(member) as stream:
            content = _bounded(cast(BinaryIO, stream), self._path, member.file_size)
        if len(content) != member.file_size:
            raise DataError(f"{self._path}: {name} has {len(content)} bytes, the archive says {member.file_size}.")
        return content


@contextmanager
def open_zip(path: Path, *, limit: int) -> Iterator[ZipMembers]:
    """A zip archive of at most `limit` bytes unpacked; refused where names, links, sizes or the packing look wrong."""
    with reading(path), zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        for member in members:
            _check_name(member.filename, path)
            if stat.S_ISLNK(member.external_attr >> 16):
                raise DataError(f"{path} is refused: {member.filename!r} is a link.")
            if member.flag_bits & 1 or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise DataError(
                    f"{path}: {member.filename} is encrypted or packed with an unusual method; pack it anew."
                )
        if len({member.filename for member in members}) != len(members):
            raise DataError(f"{path} is refused: two of its members have the same name.")
        if (stated := _stated_members(path)) not in (len(members), 0xFFFF):  # 65535 stands for "see elsewhere"
            raise DataError(f"{path} is corrupt: its directory lists {len(members)} members and says {stated}.")
        # Members that share packed bytes are how small archives unpack to terabytes; honest ones add up to the file.
        if sum(member.compress_size for member in members) > path.stat().st_size:
            raise DataError(f"{path} is refused: its members overlap.")
        _check_size(sum(member.file_size for member in members), path, limit)
        yield ZipMembers(archive, path)


def _stated_members(path: Path) -> int:
    """How many members the last record of a zip archive says there are, which the standard reader does not compare."""
    with open(path, "rb") as stream:
        stream.seek(max(0, path.stat().st_size - 0xFFFF - 22))
        tail = stream.read()
    at = tail.rindex(b"PK\x05\x06")
    return int.from_bytes(tail[at + 10 : at + 12], "little")


def read_tar_gz(path: Path, *, limit: int) -> dict[str, memoryview]:
    """The files of a tar.gz archive of at most `limit` bytes unpacked, by name.

    Our own reader of the plain format: the standard one knows sparse files, links and sizes below zero, each of which
    has been an attack, and none of which a data set needs.
    """
    content = memoryview(gunzip(path, limit=limit))
    files: dict[str, memoryview] = {}
    with reading(path):
        at = 0
        while at < len(content) and any(content[at : at + 512]):
            header = bytes(content[at : at + 512])
            name, size, kind = _tar_header(header, path)
            at += 512
            if at + size > len(content):
                raise DataError(f"{path} is truncated: {name} should have {size} bytes, {len(content) - at} are left.")
            if kind in b"0\0" and not name.endswith("/"):
                if name in files:
                    raise DataError(f"{path} is refused: it holds {name} twice.")
                files[name] = content[at : at + size]
            elif kind not in b"5xg":  # folders, and extended headers, which nothing here needs
                raise DataError(f"{path} is refused: {name!r} is a link or a special file (type {kind!r}).")
            at += -(-size // 512) * 512
    return files


def _tar_header(header: bytes, path: Path) -> tuple[str, int, bytes]:
    stated = int(header[148:156].split(b"\0")[0].strip() or b"0", 8)
    if len(header) < 512 or sum(header[:148]) + 8 * 32 + sum(header[156:]) != stated:
        raise DataError(f"{path} is corrupt: a header of the tar archive does not match its checksum.")
    name = header[:100].split(b"\0")[0].decode()
    if header[257:262] == b"ustar" and header[345] and header[263:265] == b"00":
        name = header[345:500].split(b"\0")[0].decode() + "/" + name
    _check_name(name, path)
    digits = header[124:136].strip(b" \0")
    if not re.fullmatch(rb"[0-7]*", digits):
        raise DataError(f"{path} is refused: the size of {name!r} is not an octal number.")
    return name, int(digits or b"0", 8), header[156:157]


def _check_name(name: str, path: Path) -> None:
    parts = name.replace("\\", "/").split("/")
    if not name or "\0" in name or parts[0] == "" or ".." in parts or re.match(r"[A-Za-z]:", name):
        raise DataError(f"{path} is refused: the name {name!r} of a member leads out of the archive.")


def _check_size(size: int, path: Path, limit: int) -> None:
    if size > limit:
        raise DataError(f"{path} is refused: unpacked it has {size} bytes or more, at most {limit} were expected.")


def _bounded(stream: BinaryIO, path: Path, limit: int) -> bytes:
    content = stream.read(limit + 1)
    _check_size(len(content), path, limit)
    return content
