"""Files are written completely or not at all."""

import csv
import io
import os
import subprocess
import sys

import pytest

from reclust.utils.files import check_writable, csv_text, exclusive_lock, write_bytes, write_text


def test_old_content_is_kept_where_asked(tmp_path):
    path, previous = tmp_path / "x", tmp_path / "x.previous"
    for i, content in enumerate((b"one", b"two", b"three")):
        write_bytes(path, content, previous=previous)
        assert path.read_bytes() == content and previous.exists() == (i > 0)
    assert previous.read_bytes() == b"two" and sorted(os.listdir(tmp_path)) == ["x", "x.previous"]


def test_the_previous_content_is_replaced_at_once(tmp_path, monkeypatch):
    path, previous = tmp_path / "x", tmp_path / "x.previous"
    for content in (b"one", b"two"):
        write_bytes(path, content, previous=previous)
    replace, seen = os.replace, []

    def look(source, target):
        seen.append((os.path.basename(target), previous.read_bytes(), path.read_bytes()))
        replace(source, target)

    monkeypatch.setattr(os, "replace", look)
    write_bytes(path, b"three", previous=previous)
    assert seen == [("x.previous", b"one", b"two"), ("x", b"two", b"two")]


def test_text_keeps_line_ends_and_odd_file_names(tmp_path):
    write_text(tmp_path / "x", "a\r\nb\udcff")
    assert (tmp_path / "x").read_bytes() == b"a\r\nb\xff"


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    write_bytes(tmp_path / "x", b"old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="x could not be written, its old content is intact: No space left"):
        write_bytes(tmp_path / "x", b"new")
    assert (tmp_path / "x").read_bytes() == b"old" and os.listdir(tmp_path) == ["x"]


def test_targets_that_cannot_be_written_are_explained(tmp_path, monkeypatch):
    check_writable(tmp_path / "x")
    with pytest.raises(IsADirectoryError, match="is a folder: name a file in it"):
        check_writable(tmp_path)
    with pytest.raises(FileNotFoundError, match="There is no folder .*nowhere to write x into"):
        check_writable(tmp_path / "nowhere" / "x")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError, match="The folder .* is read-only"):
        check_writable(tmp_path / "x")
    (tmp_path / "kept").touch()
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    with pytest.raises(PermissionError, match="kept is read-only: choose another name"):
        check_writable(tmp_path / "kept")


def test_a_lock_is_held_by_one_at_a_time(tmp_path):
    with exclusive_lock(tmp_path / "lock", "held"):
        with pytest.raises(RuntimeError, match="^held$"), exclusive_lock(tmp_path / "lock", "held"):
            pass
    with exclusive_lock(tmp_path / "lock", "held"):
        pass
    with pytest.raises(RuntimeError, match="could not be locked"), exclusive_lock(tmp_path, "held"):
        pass


@pytest.mark.skipif(sys.platform == "win32", reason="links and modes are another matter there")
def test_links_and_modes_stay(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder" / "x")
    write_bytes(tmp_path / "link", b"one")
    os.chmod(tmp_path / "folder" / "x", 0o640)
    write_bytes(tmp_path / "link", b"two")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "folder" / "x").read_bytes() == b"two"
    assert os.stat(tmp_path / "folder" / "x").st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path / "folder") == ["x"]


WRITE_AND_STOP = """
import os, sys
from reclust.utils.files import write_bytes
os.fsync = lambda _: (print("writing", flush=True), sys.stdin.read())
write_bytes(sys.argv[1], b"half")
"""


def test_the_next_write_deletes_what_a_killed_one_left_but_not_what_is_being_written(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    writers = [subprocess.Popen([sys.executable, "-c", WRITE_AND_STOP, tmp_path / name], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, env=environment) for name in ("killed", "living")]
    for writer in writers:
        writer.stdout.readline()
    (tmp_path / ".config.tmp").write_text("of another program")
    writers[0].kill()
    writers[0].wait()
    write_bytes(tmp_path / "x", b"new")
    assert len(os.listdir(tmp_path)) == 4, "while another process writes, nothing is deleted"
    writers[1].communicate()
    write_bytes(tmp_path / "x", b"newer")
    assert sorted(os.listdir(tmp_path)) == [".config.tmp", "living", "x"]


def test_csv_is_read_back_whatever_names_hold():
    names = ["a", "a\rb", "a\nb", 'say "x", y', "", " ", "-5", "+1e-3", "\udcff", 7, -2.5]
    rows = list(csv.reader(io.StringIO(csv_text([("id", "cluster"), *((name, 1) for name in names)]), newline="")))
    assert rows == [["id", "cluster"], *([str(name), "1"] for name in names)]


@pytest.mark.parametrize("name", ["=1+1", "+cmd", "-cmd|' /C calc'!A0", "@SUM(A1)", "\tx", "\rx", "\n=1+1"])
def test_what_a_spreadsheet_would_compute_is_text(name):
    assert next(csv.reader(io.StringIO(csv_text([(name,)]), newline=""))) == [f"'{name}"]


@pytest.mark.parametrize("delimiter", ";\t")
def test_a_name_is_one_cell_for_spreadsheets_that_cut_elsewhere(delimiter):
    (cell,) = next(csv.reader(io.StringIO(csv_text([(f"x{delimiter}=1+1",)]), newline=""), delimiter=delimiter))
    assert cell == f"x{delimiter}=1+1"


@pytest.mark.parametrize("name", ["a" * 255, "數" * 85])
def test_names_may_be_as_long_as_the_system_allows(name, tmp_path):
    write_bytes(tmp_path / name, b"x")
    assert os.listdir(tmp_path) == [name]


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="no such names here")
@pytest.mark.parametrize("open_file", ["/dev/stdout", "/dev/fd/1"])
def test_open_files_are_written_to_and_not_replaced(open_file, tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    script = f"from reclust.utils.files import write_text; write_text('{open_file}', 'new')"
    (tmp_path / "all").write_text("old ")
    with open(tmp_path / "all", "a") as file:
        subprocess.run([sys.executable, "-c", script], env=environment, stdout=file, check=True)
    assert (tmp_path / "all").read_text() == "old new"
    assert subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=True).stdout == b"new"
