"""The data folder and downloads: whole and right, or not there; and what to do where there is no network."""

from __future__ import annotations

import hashlib
import http.server
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from reclust.data import DataError, load
from reclust.data.sets import load as load_module
from reclust.data.sets.download import RemoteFile, data_folder, fetch

CONTENT = bytes(range(256)) * 8192  # two blocks
SUM = "sha256:" + hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    """A server whose paths say how it behaves; and the paths it was asked for."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            if "missing" in self.path or ("second" in self.path and asked.count(self.path) < 2):
                self.send_error(503)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(CONTENT)))
            self.end_headers()
            self.wfile.write(CONTENT[: 1000 if "short" in self.path else None])

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}/", asked
        running.shutdown()


def get(folder: Path, *urls: str, checksum: str | None = SUM) -> Path:
    return fetch(RemoteFile("file.bin", urls, checksum), folder, pause=0.01, timeout=5)


def test_download(server, tmp_path):
    url, asked = server
    path = get(tmp_path / "new" / "folder", url + "file")
    assert path.read_bytes() == CONTENT and asked == ["/file"]
    assert list(path.parent.iterdir()) == [path]


def test_failures_are_tried_again_and_mirrors_in_turn(server, tmp_path):
    url, asked = server
    assert get(tmp_path / "1", url + "second").read_bytes() == CONTENT and asked == ["/second"] * 2
    assert get(tmp_path / "2", url + "missing", url + "file").read_bytes() == CONTENT and asked[2:] == [
        "/missing",
        "/file",
    ]


@pytest.mark.parametrize(
    ("where", "checksum", "message"), [("short", None, "1000 of 2097152 bytes arrived"), ("file", "md5:" + "0" * 32, "its md5 is")]
)
def test_what_is_short_or_wrong_never_appears(where, checksum, message, server, tmp_path):
    url, asked = server
    (tmp_path / "file.bin").write_bytes(b"as before")
    with pytest.raises(DataError, match=rf"file\.bin could not be downloaded: http.*{message}"):
        get(tmp_path, url + where, checksum=checksum)
    assert len(asked) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["file.bin"] and (
        tmp_path / "file.bin"
    ).read_bytes() == b"as before"


def test_load_downloads_only_what_is_missing(server, tiny, tmp_path, monkeypatch):
    made = tiny("usps")
    made.write(tmp_path)
    (tmp_path / "usps" / "usps.t.bz2").unlink()
    fetched = []

    def pretend(file: RemoteFile, folder: Path) -> Path:
        fetched.append(file.name)
        (folder / file.name).write_bytes(made.files()[file.name])
        return folder / file.name

    monkeypatch.setattr(load_module, "fetch", pretend)
    assert len(load("usps", folder=tmp_path)) == 19 and fetched == ["usps.t.bz2"]


@pytest.mark.parametrize("name", [name for name in load_module.SETS if name != "digits"])
def test_without_a_network_the_error_says_what_to_put_where(name, tmp_path, monkeypatch):
    def unreachable(*_: object, **__: object) -> None:
        raise urllib.error.URLError("no route to host")

    monkeypatch.setattr(urllib.request, "urlopen", unreachable)
    monkeypatch.setattr("time.sleep", lambda _: None)
    with pytest.raises(DataError) as caught:
        load(name, folder=tmp_path / "data")
    assert list(tmp_path.iterdir()) == [], "nothing came, so there is nothing to put it into"
    message = str(caught.value)
    for file in load_module.SETS[name].forms[0].files:
        assert file.urls[0] in message
    for part in ("no route to host", str(tmp_path / "data" / name), f"{name}.npz", "RECLUST_DATA", "folder=", "--data"):
        assert part in message
    with pytest.raises(DataError, match="Put into"):
        load(name, folder=tmp_path, download=False)


def test_folder_is_the_argument_then_the_variable_then_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RECLUST_DATA", str(tmp_path / "variable"))
    assert data_folder(tmp_path / "argument") == tmp_path / "argument"
    assert data_folder() == tmp_path / "variable"
    monkeypatch.delenv("RECLUST_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    assert data_folder() == tmp_path / "reclust"
    monkeypatch.setattr("sys.platform", "darwin")
    assert data_folder() == Path.home() / "Library" / "Caches" / "reclust"
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "Local"))
    assert data_folder() == tmp_path / "Local" / "reclust" / "Cache"
