"""Pickles as data: what CIFAR needs is read, whatever protocol wrote it; anything that would run code is refused."""

from __future__ import annotations

import os
import pickle
import struct
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

from reclust.data import DataError
from reclust.data.sets.pickles import load_plain

BATCH = {
    "data": np.arange(48, dtype=np.uint8).reshape(4, 12),
    "labels": [3, 1, 0, 2],
    "filenames": ["a", "b", "c", "d"],
}


def check(found):
    np.testing.assert_array_equal(found["data"], BATCH["data"])
    assert found["data"].dtype == np.uint8
    assert found["labels"] == BATCH["labels"] and len(found["filenames"]) == 4


def test_python_2_pickles(formats):
    check(load_plain(formats.python2_pickle(BATCH), "batch"))


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_python_3_pickles_of_every_later_protocol(protocol):
    check(load_plain(pickle.dumps(BATCH, protocol=protocol), "batch"))


@pytest.mark.parametrize("dtype", ["<i8", ">u2", "<f4", "|b1"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_numeric_arrays_of_any_kind_and_order(dtype, order):
    array = np.asarray(np.arange(24).reshape(4, 6) % 2, dtype=dtype, order=order)
    found = load_plain(pickle.dumps({"data": array}, protocol=2), "batch")["data"]
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype


class Runs:
    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call


def hostile(canary: Path) -> dict[str, bytes]:
    touch = f"open({str(canary)!r}, 'w')"
    return {
        "os.system": pickle.dumps(Runs(os.system, (f"touch {canary}",))),
        "eval": pickle.dumps(Runs(eval, (touch,))),
        "exec inside": pickle.dumps({"data": [Runs(exec, (touch,))], "labels": []}, protocol=2),
        "instance": b"(S'touch " + str(canary).encode() + b"'\nios\nsystem\n.",
        "object": b"(cos\nsystem\nX" + struct.pack("<I", 4) + b"true" + b"o.",
        "new object": pickle.dumps(Path("x"), protocol=4),
        "subclass of dict": pickle.dumps(OrderedDict(data=1)),
        "numpy function": b"\x80\x02cnumpy\nload\nU\x01x\x85R.",
        "dtype of objects": pickle.dumps(np.array([Runs(eval, (touch,))], dtype=object), protocol=2),
        "structured dtype": pickle.dumps(np.zeros(2, [("a", "i4")]), protocol=2),
        "subtype": b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncos\nsystem\nK\x00\x85U\x01b\x87R.",
        "state of a list": b"\x80\x02]}b.",
        "persistent": b"\x80\x02U\x01xQ.",
        "extension": b"\x80\x02\x82\x01.",
        "memo of gigabytes": b"\x80\x02]r\xff\xff\xff\x7f\x8c\xff.",
        "huge text": b"\x80\x04\x8d" + struct.pack("<Q", 1 << 62) + b"abc.",
        "wrong length": b"\x80\x02U\xffabc.",
        "array too short": pickle.dumps(BATCH, protocol=4).replace(b"K\x04K\x0c\x86", b"K\x7fK\x7f\x86"),
        "negative shape": pickle.dumps(BATCH, protocol=2).replace(b"K\x04K\x0c\x86", b"J\xff\xff\xff\xffK\x0c\x86"),
        "list as key": b"\x80\x02}]K\x01s.",
        "odd items": b"\x80\x02}(K\x01K\x02K\x03u.",
        "nothing left": b"\x80\x02.",
        "stack underflow": b"\x80\x02R.",
        "mark underflow": b"\x80\x02t.",
        "unknown memo": b"\x80\x02h\x05.",
        "no stop": b"\x80\x02]",
        "empty": b"",
        "text": b"<html>not found</html>",
    }


@pytest.mark.parametrize("kind", hostile(Path("x")))
def test_hostile_pickles_are_refused_and_never_run(kind, tmp_path):
    canary = tmp_path / "canary"
    with pytest.raises(DataError, match="batch_1"):
        load_plain(hostile(canary)[kind], "batch_1")
    assert not canary.exists()


def test_a_pickle_that_refers_to_itself_ends():
    doubling = (
        b"\x80\x02]" + b"q\x00h\x00h\x00\x86" * 40 + b"."
    )  # a tuple of tuples with 2**40 leaves, were they copied
    with pytest.raises(DataError):
        load_plain(doubling, "batch")
    assert load_plain(b"\x80\x02]q\x00h\x00a.", "batch") is not None
