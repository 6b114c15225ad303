"""The data sets of the paper's experiments: MNIST, Fashion-MNIST and COIL-100; and scikit-learn's digits.

MNIST, Fashion-MNIST and COIL-100 are read from ``mnist.npz``, ``fashion.npz`` and ``coil100.npz``: in a
folder of yours (the argument ``folder``, or the environment variable ``TSEE_DATA``), or in the cache
(``TSEE_CACHE``, or ``~/.cache/tsee``). A file that is in neither is downloaded into the cache once, from the
official sources, and refused unless it has the published SHA-256.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import struct
import tempfile
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import URLError

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from tsee.files.atomic import replacing

__all__ = ["Split", "load_coil100", "load_digits", "load_fashion", "load_mnist"]

Array = NDArray[Any]


class Split(NamedTuple):
    """Rows to train on and rows held out, one image per row, with a label each.

    Attributes
    ----------
    x_train, x_test : ndarray of shape (n, n_features)
    y_train, y_test : ndarray of shape (n,)

    Examples
    --------
    >>> data = load_digits()
    >>> x_train, y_train, x_test, y_test = data
    >>> data.x_train.shape, y_test.shape
    ((1198, 64), (599,))
    """

    x_train: Array
    y_train: Array
    x_test: Array
    y_test: Array


class _Source(NamedTuple):
    """Where a data set is published: folders that all serve the same files, and the SHA-256 of each file."""

    title: str
    mirrors: tuple[str, ...]
    files: dict[str, str]


# tensorflow_datasets publishes these checksums in url_checksums: mnist, fashion_mnist and coil100.
_SOURCES = {
    "mnist": _Source(
        "MNIST",
        (
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
        ),
        {
            "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        },
    ),
    "fashion": _Source(
        "Fashion-MNIST",
        # The authors' repository; the address in its README serves the same files, but not over https.
        ("https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",),
        {
            "train-images-idx3-ubyte.gz": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            "train-labels-idx1-ubyte.gz": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            "t10k-images-idx3-ubyte.gz": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            "t10k-labels-idx1-ubyte.gz": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
        },
    ),
    "coil100": _Source(
        "COIL-100",
        ("https://www.cs.columbia.edu/CAVE/databases/SLAM_coil-20_coil-100/coil-100/",),
        {"coil-100.zip": "fcb4b8b01c0778f416d8d7a09f45082c4f7075cc74743dcddd5c44307bd4afe7"},
    ),
}
_COIL_OBJECTS = 100
_TIMEOUT = 30  # seconds without an answer


def load_digits(test_size: float = 1 / 3, random_state: int | None = 0) -> Split:
    """The 1,797 handwritten digits that come with scikit-learn: 8 x 8 pixels, 10 classes.

    Parameters
    ----------
    test_size : float, default 1/3
        The share held out, drawn within each class.
    random_state : int or None, default 0
        The seed of the draw.

    Returns
    -------
    Split
        Pixels as float32 from 0 to 16, labels as int64.

    Examples
    --------
    >>> from tsee.datasets import load_digits
    >>> x_train, y_train, x_test, y_test = load_digits()
    >>> x_train.shape, x_test.shape
    ((1198, 64), (599, 64))
    """
    from sklearn import datasets
    from sklearn.model_selection import train_test_split

    x, y = datasets.load_digits(return_X_y=True)
    x_train, x_test, y_train, y_test = train_test_split(
        x.astype(np.float32), y, test_size=test_size, random_state=random_state, stratify=y
    )
    return Split(x_train, y_train, x_test, y_test)


def load_mnist(folder: str | os.PathLike[str] | None = None) -> Split:
    """MNIST: 60,000 + 10,000 handwritten digits of 28 x 28 pixels, in the official split.

    Parameters
    ----------
    folder : path, optional
        The folder of ``mnist.npz``. By default the folder ``TSEE_DATA``, then the cache; a file that is in
        neither is downloaded.

    Returns
    -------
    Split
        Pixels as uint8 from 0 to 255 in 784 columns, labels as uint8 from 0 to 9.

    Examples
    --------
    >>> from tsee.datasets import load_mnist
    >>> x_train, y_train, x_test, y_test = load_mnist()  # doctest: +SKIP
    """
    return _load("mnist", folder, _from_idx)


def load_fashion(folder: str | os.PathLike[str] | None = None) -> Split:
    """Fashion-MNIST: 60,000 + 10,000 photographs of clothes, 28 x 28 pixels, 10 classes.

    The download has the official split. A ``fashion.npz`` of your own can have any split.

    Parameters
    ----------
    folder : path, optional
        The folder of ``fashion.npz``. By default the folder ``TSEE_DATA``, then the cache; a file that is in
        neither is downloaded.

    Returns
    -------
    Split
        Pixels as uint8 from 0 to 255 in 784 columns, labels as uint8 from 0 to 9.

    Examples
    --------
    >>> from tsee.datasets import load_fashion
    >>> x_train, y_train, x_test, y_test = load_fashion()  # doctest: +SKIP
    """
    return _load("fashion", folder, _from_idx)


def load_coil100(folder: str | os.PathLike[str] | None = None) -> Split:
    """COIL-100: 100 objects seen from 72 sides, 5 degrees apart; for research only.

    Downloaded, the 7,200 color images of 128 x 128 pixels become gray ones of 32 x 32, each pixel the mean
    of 4 x 4. The 3,600 views at even multiples of 5 degrees are for training, the others are held out.

    Parameters
    ----------
    folder : path, optional
        The folder of ``coil100.npz``. By default the folder ``TSEE_DATA``, then the cache; a file that is in
        neither is downloaded, which needs Pillow.

    Returns
    -------
    Split
        Pixels as uint8 from 0 to 255 in 1,024 columns, labels as uint8 from 1 to 100.

    Examples
    --------
    >>> from tsee.datasets import load_coil100
    >>> x_train, y_train, x_test, y_test = load_coil100()  # doctest: +SKIP
    """
    return _load("coil100", folder, _from_coil_zip)


def _load(name: str, folder: str | os.PathLike[str] | None, parse: Callable[[Iterator[Path]], Split]) -> Split:
    """The file ``name``.npz in the folder, in TSEE_DATA or in the cache, downloaded if it is in none of them."""
    file = f"{name}.npz"
    if folder is not None:
        if not (Path(folder) / file).is_file():
            raise FileNotFoundError(f"There is no {file} in the folder {os.fspath(folder)!r}.")
        return _read(Path(folder) / file)
    cache = Path(os.environ.get("TSEE_CACHE") or "~/.cache/tsee").expanduser()
    given = [Path(os.environ["TSEE_DATA"]).expanduser()] if os.environ.get("TSEE_DATA") else []
    for known_folder in [*given, cache]:
        if (known_folder / file).is_file():
            return _read(known_folder / file)
    source = _SOURCES[name]
    try:
        _fill(cache / file, source, parse)
    except (OSError, ValueError) as error:
        raise OSError(
            f"{source.title} could not be downloaded ({error}): try again, "
            f"or put {file} in a folder and set TSEE_DATA to that folder."
        ) from error
    return _read(cache / file)


def _fill(path: Path, source: _Source, parse: Callable[[Iterator[Path]], Split]) -> None:
    """Download, check and parse the files of ``source``, and write ``path`` completely or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # The cache has room for it; a temporary folder elsewhere might be too small.
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.stem}-") as work, replacing(path) as temporary:
        split = parse(_download(source, file, Path(work)) for file in source.files)
        with open(temporary, "wb") as finished:
            np.savez_compressed(finished, **split._asdict())


def _download(source: _Source, file: str, folder: Path) -> Path:
    """One file from the first mirror that serves it as it was published."""
    failures = []
    for mirror in source.mirrors:
        try:
            _fetch(mirror + file, folder / file, source.files[file], f"{source.title}: {file}")
            return folder / file
        except (OSError, HTTPException) as error:
            reason = error.reason if type(error) is URLError else error
            failures.append(f"{mirror}{file}: {reason}")
    raise OSError("; ".join(failures))


def _fetch(url: str, path: Path, sha256: str, title: str) -> None:
    digest, received = hashlib.sha256(), 0
    request = urllib.request.Request(url, headers={"User-Agent": "tsee"})
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer, open(path, "wb") as file:
        length = answer.headers.get("Content-Length")
        total = None if length is None else int(length)
        with tqdm(total=total, desc=title, unit="B", unit_scale=True, disable=None) as bar:
            while chunk := answer.read(1 << 16):
                file.write(chunk)
                digest.update(chunk)
                received += len(chunk)
                bar.update(len(chunk))
    if total is not None and received < total:
        raise OSError(f"the download broke off after {received} of {total} bytes")
    if digest.hexdigest() != sha256:
        raise OSError("this is not the published file: its SHA-256 differs")


def _read(path: Path) -> Split:
    """A split from an ``.npz`` file, after checks."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            split = Split(*(arrays[field] for field in Split._fields))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(
            f"{path} must be an .npz file of the arrays {', '.join(Split._fields)}, "
            f"and could not be read as one ({error})."
        ) from error
    for part, x, y in (("train", split.x_train, split.y_train), ("test", split.x_test, split.y_test)):
        if x.ndim != 2 or x.dtype != np.uint8 or y.shape != x.shape[:1]:
            raise ValueError(
                f"{path} must hold one uint8 row per image in x_{part} and one label per row in y_{part}. "
                f"Got {x.dtype} of shape {x.shape} and labels of shape {y.shape} instead."
            )
    return split


def _from_idx(paths: Iterator[Path]) -> Split:
    """The four gzipped IDX files of MNIST or Fashion-MNIST."""
    x_train, y_train, x_test, y_test = (_read_idx(path) for path in paths)
    return Split(x_train.reshape(len(x_train), -1), y_train, x_test.reshape(len(x_test), -1), y_test)


def _read_idx(path: Path) -> Array:
    """The array in a gzipped IDX file of bytes: a magic number, the sizes, the bytes, and nothing more."""
    try:
        content = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path.name} is not a complete gzip file ({error})") from error
    # Two zero bytes, 8 for unsigned bytes, and the number of dimensions: 3 for images, 1 for labels.
    n_dimensions = 3 if "idx3" in path.name else 1
    start = 4 + 4 * n_dimensions
    if content[:4] != bytes((0, 0, 8, n_dimensions)) or len(content) < start:
        raise ValueError(f"{path.name} is not an IDX file of unsigned bytes in {n_dimensions} dimension(s)")
    shape = struct.unpack(f">{n_dimensions}I", content[4:start])
    expected = start + int(np.prod(shape, dtype=np.int64))
    if len(content) != expected:
        raise ValueError(f"{path.name} must have {expected} bytes according to its own header, but has {len(content)}")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def _from_coil_zip(paths: Iterator[Path]) -> Split:
    """The archive of COIL-100: ``coil-100/obj<object>__<degrees>.png``, every object from every side."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            "Reading the images of COIL-100 needs Pillow: pip install pillow, or put coil100.npz in a folder "
            "and set TSEE_DATA to that folder."
        ) from error

    path = next(paths)  # downloads it, now that Pillow can read it
    rows = np.empty((_COIL_OBJECTS, 72, 1024), np.uint8)  # by object, and by degrees / 5
    seen = np.zeros((_COIL_OBJECTS, 72), bool)
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.namelist():
                match = re.search(r"(?:^|/)obj(\d+)__(\d+)\.png$", member)
                if match is None:  # the archive also holds the script that made the images
                    continue
                number, degrees = int(match[1]), int(match[2])
                if not 1 <= number <= _COIL_OBJECTS or degrees not in range(0, 360, 5):
                    raise ValueError(f"{member} is none of {_COIL_OBJECTS} objects seen every 5 degrees")
                with archive.open(member) as file, Image.open(file) as image:
                    if image.size != (128, 128):
                        raise ValueError(f"{member} does not have 128 x 128 pixels")
                    # Gray is ITU-R 601's; reduce(4) makes each pixel the mean of 4 x 4.
                    rows[number - 1, degrees // 5] = np.asarray(image.convert("L").reduce(4)).ravel()
                seen[number - 1, degrees // 5] = True
    except (OSError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path.name} cannot be read: {error}") from error
    if not seen.all():
        raise ValueError(f"{path.name} must hold {seen.size} images, but holds {seen.sum()}")
    train, test = rows[:, ::2].reshape(-1, 1024), rows[:, 1::2].reshape(-1, 1024)
    labels = np.arange(1, _COIL_OBJECTS + 1, dtype=np.uint8).repeat(36)
    return Split(train, labels, test, labels)
