"""MNIST, Fashion-MNIST and Kuzushiji-MNIST: gzipped idx files."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import explain_read_errors
from .download import RemoteFile
from .known_set import Form, NamedSet, SetPart

_NAMES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Read an idx file of bytes: 0, 0, 8, the number of axes, their lengths, the values."""
    with explain_read_errors(path):
        content = gzip.decompress(path.read_bytes())
        axes = content[3]
        shape = struct.unpack_from(f">{axes}I", content, 4)
        return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape)


def _read(paths: Sequence[Path]) -> list[SetPart]:
    train, train_labels, test, test_labels = (read_idx(path) for path in paths)
    return [SetPart(train, train_labels), SetPart(test, test_labels)]


def _set(name: str, torchvision: str, mirrors: Sequence[str], checksums: Sequence[str],
         **facts: Any) -> NamedSet:
    files = tuple(RemoteFile(file, tuple(mirror + file for mirror in mirrors), f"md5:{checksum}")
                  for file, checksum in zip(_NAMES, checksums, strict=True))
    facts = {"counts": (60_000, 10_000), "histogram": (7_000,) * 10, "image_shape": (1, 28, 28),
             **facts}
    return NamedSet(name=name, forms=(Form(files, _read),), folders=(name, f"{torchvision}/raw"),
                    **facts)


SETS = (
    _set(
        "mnist", "MNIST",
        ("https://ossci-datasets.s3.amazonaws.com/mnist/", "http://yann.lecun.com/exdb/mnist/"),
        ("f68b3c2dcbeaaa9fbdd348bbdeb94873", "d53e105ee54ea40749a09fcbcd1e9432",
         "9fb629c4189551a2d022fa330f9573f3", "ec29112dd5afa0611ce80d1b7f02629c"),
        histogram=(6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958),
        total=1_832_221_745,
        citation="Y. LeCun, L. Bottou, Y. Bengio, P. Haffner. Gradient-based learning applied to "
                 "document recognition. Proceedings of the IEEE 86(11), 1998.",
        licence="CC BY-SA 3.0",
    ),
    _set(
        "fmnist", "FashionMNIST",
        ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",),
        ("8d4fb7e6c68d591d4c3dfef9ec88bf0d", "25c81989df183df01b3e8a0aad5dffbe",
         "bef4ecab320f06d8554ea6380940ec79", "bb300cfdad3c16e7a12a480ee83cd310"),
        total=4_004_583_251,
        citation="H. Xiao, K. Rasul, R. Vollgraf. Fashion-MNIST: a novel image dataset for "
                 "benchmarking machine learning algorithms. arXiv:1708.07747, 2017.",
        licence="MIT",
    ),
    _set(
        "kmnist", "KMNIST",
        ("https://codh.rois.ac.jp/kmnist/dataset/kmnist/",
         "http://codh.rois.ac.jp/kmnist/dataset/kmnist/"),
        ("bdb82020997e1d708af4cf47b453dcf7", "e144d726b3acfaa3e44228e80efcd344",
         "5c965bf0a639b31b8f53240b1b52f4d7", "7320c461ea6c1c855c0b718fb2a4b134"),
        citation="T. Clanuwat, M. Bober-Irizar, A. Kitamoto, A. Lamb, K. Yamamoto, D. Ha. Deep "
                 "learning for classical Japanese literature. arXiv:1812.01718, 2018.",
        licence="CC BY-SA 4.0",
    ),
)
