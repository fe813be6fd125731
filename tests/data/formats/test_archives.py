"""Archives: what was packed comes back; what could reach outside, or fill the memory, does not get in."""

from __future__ import annotations

import bz2
import gzip
import io
import stat
import tarfile
import tracemalloc
import zipfile

import numpy as np
import pytest

from reclust.data import DataError
from reclust.data.formats.archives import bunzip, gunzip, open_zip, read_file, read_tar_gz
from reclust.data.formats.arrays import read_npz

FILES = {"a/b.txt": b"hello" * 300, "c": b"", "d.bin": bytes(range(256)) * 5}
OUTSIDE = ["../evil", "a/../../evil", "/etc/evil", "C:/evil", "a\\..\\..\\evil"]
MIB = 1 << 20


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content)
    return path


def read_zip(path, limit=MIB):
    with open_zip(path, limit=limit) as members:
        return {name: members.read(name) for name in members.names}


@pytest.mark.parametrize(("packed", "read"), [(gzip.compress, gunzip), (bz2.compress, bunzip), (bytes, read_file)])
def test_streams(packed, read, tmp_path):
    path = write(tmp_path, "file", packed(FILES["a/b.txt"]))
    assert read(path, limit=1500) == FILES["a/b.txt"]
    with pytest.raises(DataError, match="file is refused: unpacked it has 1500 bytes or more, at most 1499"):
        read(path, limit=1499)


def test_zip_and_tar_give_what_was_packed(formats, tmp_path):
    assert read_zip(write(tmp_path, "x.zip", formats.zip_of(FILES))) == FILES
    packed = write(tmp_path, "x.tar.gz", formats.tar_gz_of(FILES))
    assert {name: bytes(content) for name, content in read_tar_gz(packed, limit=MIB).items()} == FILES


def test_tar_of_every_dialect_with_folders_and_long_names(tmp_path):
    long = "folder/" * 18 + "file"
    for dialect in (tarfile.USTAR_FORMAT, tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w:gz", format=dialect) as archive:
            folder = tarfile.TarInfo("a")
            folder.type = tarfile.DIRTYPE
            archive.addfile(folder)
            info = tarfile.TarInfo("a/b" if dialect != tarfile.USTAR_FORMAT else long)
            info.size, info.mtime = 3, 1.5
            archive.addfile(info, io.BytesIO(b"abc"))
        found = read_tar_gz(write(tmp_path, "x.tar.gz", out.getvalue()), limit=MIB)
        assert {name: bytes(content) for name, content in found.items()} == {info.name: b"abc"}


@pytest.mark.parametrize("name", OUTSIDE)
def test_names_that_lead_out_are_refused(name, formats, tmp_path):
    with pytest.raises(DataError, match=r"x\.zip is refused.*leads out"):
        read_zip(write(tmp_path, "x.zip", formats.zip_of({"good": b"1", name: b"2"})))
    with pytest.raises(DataError, match=r"x\.tar is refused.*leads out"):
        read_tar_gz(write(tmp_path, "x.tar", formats.tar_gz_of({"good": b"1", name: b"2"})), limit=MIB)


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.GNUTYPE_SPARSE]
)
def test_links_and_special_files_are_refused(kind, formats, tmp_path):
    with pytest.raises(DataError, match=r"x\.tar is refused: 'a' is a link or a special file"):
        read_tar_gz(write(tmp_path, "x.tar", formats.tar_gz_of({"a": b""}, kind=kind)), limit=MIB)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        link = zipfile.ZipInfo("link")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(DataError, match=r"x\.zip is refused: 'link' is a link"):
        read_zip(write(tmp_path, "x.zip", out.getvalue()))


def test_bombs_are_refused_before_they_fill_the_memory(formats, tmp_path):
    zeros = bytes(64 * MIB)
    bombs = {
        "x.gz": (gzip.compress(zeros), lambda path: gunzip(path, limit=MIB)),
        "x.bz2": (bz2.compress(zeros), lambda path: bunzip(path, limit=MIB)),
        "x.zip": (formats.zip_of({"zeros": zeros}), read_zip),
        "x.tar.gz": (formats.tar_gz_of({"zeros": zeros}), lambda path: read_tar_gz(path, limit=MIB)),
    }
    for name, (content, read) in bombs.items():
        path = write(tmp_path, name, content)
        tracemalloc.start()
        with pytest.raises(DataError, match=f"{name} is refused"):
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 8 * MIB, name
        tracemalloc.stop()


def test_zip_members_that_share_bytes_are_refused(formats, tmp_path):
    content = bytearray(formats.zip_of({"a": b"x" * 4000, "b": bytes(range(250)) * 20}))
    start = content.index(b"PK\x01\x02")
    content[start + 20 : start + 24] = (len(content) - 50).to_bytes(4, "little")  # a claims the bytes of b too
    with pytest.raises(DataError, match="members overlap"):
        read_zip(write(tmp_path, "x.zip", bytes(content)))


def test_a_zip_directory_that_hides_members_is_refused(formats, tmp_path):
    content = bytearray(formats.zip_of({"a": b"1", "b": b"2"}))
    at = content.index(b"PK\x01\x02")
    content[at + 33] = 8  # a comment of 2048 bytes, which swallows the entry of b
    with pytest.raises(DataError, match="lists 1 members and says 2"):
        read_zip(write(tmp_path, "x.zip", bytes(content)))


def test_a_zip_that_lies_about_sizes_is_refused(formats, tmp_path):
    content = bytearray(formats.zip_of({"a": bytes(MIB)}))
    for signature, offset in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        at = content.index(signature) + offset
        content[at : at + 4] = (100).to_bytes(4, "little")
    with pytest.raises(DataError, match="x.zip"):
        read_zip(write(tmp_path, "x.zip", bytes(content)))


def test_tar_sizes_below_zero_and_duplicates_are_refused(formats, tmp_path):
    raw = bytearray(gzip.decompress(formats.tar_gz_of({"a": b"abc"})))
    raw[124:136] = b"\xff" * 12  # minus one in the binary notation of GNU tar
    raw[148:156] = b"%06o\0 " % (sum(raw[:148]) + 256 + sum(raw[156:512]))
    with pytest.raises(DataError, match="not an octal number"):
        read_tar_gz(write(tmp_path, "x.tar", gzip.compress(bytes(raw))), limit=MIB)
    twice = gzip.decompress(formats.tar_gz_of({"a": b"abc"}))[:1024] * 2
    with pytest.raises(DataError, match="twice"):
        read_tar_gz(write(tmp_path, "x.tar", gzip.compress(twice)), limit=MIB)


def test_packed_arrays_of_objects_or_false_shapes_are_refused(formats, tmp_path):
    np.savez(tmp_path / "x.npz", images=np.array([{}, []], dtype=object))
    with pytest.raises(DataError, match=r"x\.npz: images\.npy holds object"):
        read_npz(tmp_path / "x.npz")
    for shape in (
        "(4, 3)",
        "(5, 4)",
        "(-4, -4)",
        "(10**9, 4)",
        "(9999999999, 9999999999)",
        "()",
        "4",
        "(" * 500,
        "-" * 9000,
    ):
        text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".encode()
        content = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(16)
        path = write(tmp_path, "x.npz", formats.zip_of({"images.npy": content}))
        with pytest.raises(DataError, match=r"x\.npz: images\.npy"):
            read_npz(path)
