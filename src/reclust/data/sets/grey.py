"""Sets of gray images: MNIST and its variants, USPS, OPTDIGITS, and `digits` of scikit-learn."""

import gzip
import io
import struct
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, explain_read_errors
from ..formats.arrays import open_hdf5
from .download import RemoteFile
from .known_set import Form, NamedSet, SetPart

_IDX_FILES = ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
              "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz")
_USPS_URL = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/"
_OPTDIGITS_URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/optdigits/"
_OPTDIGITS_ZIP = "optical+recognition+of+handwritten+digits.zip"
_OPTDIGITS_FILES = {
    "optdigits.tra": "e1b683cc211604fe8fd8c4417e6a69f31380e0c61d4af22e93cc21e9257ffedd",
    "optdigits.tes": "6ebb3d2fee246a4e99363262ddf8a00a3c41bee6014c373ed9d9216ba7f651b8",
}
_OPTDIGITS_FACTS: dict[str, Any] = {
    "image_shape": (1, 8, 8), "max_value": 16, "licence": "CC BY 4.0",
    "citation": "E. Alpaydin, C. Kaynak. Optical Recognition of Handwritten Digits. UCI Machine "
                "Learning Repository, 1998. https://doi.org/10.24432/C50P49"}


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Read an idx file of bytes: 0, 0, 8, the number of axes, their lengths, the values."""
    with explain_read_errors(path):
        content = gzip.decompress(path.read_bytes())
        axes = content[3]
        shape = struct.unpack_from(f">{axes}I", content, 4)
        return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape)


def _read_idx_parts(paths: Sequence[Path]) -> list[SetPart]:
    train, train_labels, test, test_labels = (read_idx(path) for path in paths)
    return [SetPart(train, train_labels), SetPart(test, test_labels)]


def read_libsvm(path: Path) -> SetPart:
    """Read lines "label index:value …" with labels 1..10 and values -1..1 at 1..256 (absent: 0)."""
    from sklearn.datasets import load_svmlight_file  # slow to import

    with explain_read_errors(path):
        values, labels = load_svmlight_file(str(path), n_features=256, dtype=np.float32,
                                            zero_based=False)
        return SetPart(_to_bytes((values.toarray() + 1) / 2, path), labels.astype(np.int64) - 1)


def _read_usps_hdf5(path: Path) -> list[SetPart]:
    """Read the groups `train` and `test`, each with `data` (n, 256) in 0..1 and `target` (n,)."""
    with open_hdf5(path) as file:
        return [SetPart(_to_bytes(file[f"{part}/data"][()].astype(np.float32), path),
                        file[f"{part}/target"][()].astype(np.int64)) for part in ("train", "test")]


def _to_bytes(values: NDArray[np.floating[Any]], path: Path) -> NDArray[np.uint8]:
    """Scale [0, 1] to 0..255, truncating as in the usual copies of USPS."""
    if not (values.min() >= 0 and values.max() <= 1):  # also catches NaN
        raise DataError(f"{path}: scaled pixels are {values.min()}..{values.max()}; needed: 0..1.")
    return (values * 255).astype(np.uint8).reshape(-1, 16, 16)


def _parse_optdigits(stream: Any) -> SetPart:
    """Parse lines of 64 counts 0..16 and a label 0..9."""
    rows = np.loadtxt(stream, delimiter=",", dtype=np.int64, ndmin=2)
    return SetPart(rows[:, :64].astype(np.uint8).reshape(-1, 8, 8), rows[:, 64])


def _read_optdigits(paths: Sequence[Path]) -> list[SetPart]:
    parts = []
    for path in paths:
        with explain_read_errors(path):
            parts.append(_parse_optdigits(path))
    return parts


def _read_optdigits_zip(paths: Sequence[Path]) -> list[SetPart]:
    with explain_read_errors(paths[0]), zipfile.ZipFile(paths[0]) as archive:
        return [_parse_optdigits(io.BytesIO(archive.read(name))) for name in _OPTDIGITS_FILES]


def _read_digits(_: Sequence[Path]) -> list[SetPart]:
    from sklearn.datasets import load_digits  # slow to import

    digits = load_digits()
    return [SetPart(digits.images.astype(np.uint8), digits.target)]


def _mnist(name: str, torchvision: str, mirrors: Sequence[str], checksums: Sequence[str], *,
           histogram: tuple[int, ...] = (7_000,) * 10, **facts: Any) -> NamedSet:
    files = tuple(RemoteFile(file, tuple(mirror + file for mirror in mirrors), f"md5:{checksum}")
                  for file, checksum in zip(_IDX_FILES, checksums, strict=True))
    return NamedSet(name=name, forms=(Form(files, _read_idx_parts),), image_shape=(1, 28, 28),
                    counts=(60_000, 10_000), histogram=histogram,
                    folders=(name, f"{torchvision}/raw"), **facts)


SETS = (
    _mnist(
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
    _mnist(
        "fmnist", "FashionMNIST",
        ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",),
        ("8d4fb7e6c68d591d4c3dfef9ec88bf0d", "25c81989df183df01b3e8a0aad5dffbe",
         "bef4ecab320f06d8554ea6380940ec79", "bb300cfdad3c16e7a12a480ee83cd310"),
        total=4_004_583_251,
        citation="H. Xiao, K. Rasul, R. Vollgraf. Fashion-MNIST: a novel image dataset for "
                 "benchmarking machine learning algorithms. arXiv:1708.07747, 2017.",
        licence="MIT",
    ),
    _mnist(
        "kmnist", "KMNIST",
        ("https://codh.rois.ac.jp/kmnist/dataset/kmnist/",
         "http://codh.rois.ac.jp/kmnist/dataset/kmnist/"),
        ("bdb82020997e1d708af4cf47b453dcf7", "e144d726b3acfaa3e44228e80efcd344",
         "5c965bf0a639b31b8f53240b1b52f4d7", "7320c461ea6c1c855c0b718fb2a4b134"),
        citation="T. Clanuwat, M. Bober-Irizar, A. Kitamoto, A. Lamb, K. Yamamoto, D. Ha. Deep "
                 "learning for classical Japanese literature. arXiv:1812.01718, 2018.",
        licence="CC BY-SA 4.0",
    ),
    NamedSet(
        name="usps", image_shape=(1, 16, 16), folders=("usps", "."),
        forms=(Form((RemoteFile("usps.bz2", (_USPS_URL + "usps.bz2",),
                                "md5:ec16c51db3855ca6c91edd34d0e9b197"),
                     RemoteFile("usps.t.bz2", (_USPS_URL + "usps.t.bz2",),
                                "md5:8ea070ee2aca1ac39742fdd1ef5ed118")),
                    lambda paths: [read_libsvm(path) for path in paths]),
               Form((RemoteFile("usps.h5"),), lambda paths: _read_usps_hdf5(paths[0]),
                    exact=False)),
        counts=(7_291, 2_007),
        histogram=(1553, 1269, 929, 824, 852, 716, 834, 792, 708, 821),
        total=155_814_423,
        citation="J. J. Hull. A database for handwritten text recognition research. IEEE "
                 "Transactions on Pattern Analysis and Machine Intelligence 16(5), 1994.",
        licence="unclear; research use",
    ),
    NamedSet(
        name="optdigits", folders=("optdigits", "."),
        forms=(Form(tuple(RemoteFile(name, (_OPTDIGITS_URL + name,), f"sha256:{sha256}")
                          for name, sha256 in _OPTDIGITS_FILES.items()), _read_optdigits),
               Form((RemoteFile(_OPTDIGITS_ZIP, ("https://archive.ics.uci.edu/static/public/80/"
                                                 + _OPTDIGITS_ZIP,)),), _read_optdigits_zip)),
        counts=(3_823, 1_797), histogram=(554, 571, 557, 572, 568, 558, 558, 566, 554, 562),
        total=1_766_476, **_OPTDIGITS_FACTS,
    ),
    NamedSet(
        name="digits", folders=(), forms=(Form((), _read_digits),), counts=(1_797,),
        histogram=(178, 182, 177, 183, 181, 182, 181, 179, 174, 180), total=561_718,
        **_OPTDIGITS_FACTS,
    ),
)
