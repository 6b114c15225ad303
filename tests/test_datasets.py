"""The loaders: from folders, and through the real download from a server on this machine."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import struct
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from tsee import datasets
from tsee.datasets import Split, load_coil100, load_digits, load_fashion, load_mnist

LOADERS = {"mnist": load_mnist, "fashion": load_fashion, "coil100": load_coil100}
IDX_NAMES = list(datasets._SOURCES["mnist"].files)


def small_split() -> Split:
    generator = np.random.default_rng(0)
    x = generator.integers(256, size=(9, 784), dtype=np.uint8)
    y = generator.integers(10, size=9, dtype=np.uint8)
    return Split(x[:6], y[:6], x[6:], y[6:])


def assert_same(a: Split, b: Split) -> None:
    for field in Split._fields:
        np.testing.assert_array_equal(getattr(a, field), getattr(b, field))
        assert getattr(a, field).dtype == getattr(b, field).dtype


def idx(array: np.ndarray) -> bytes:
    header = bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape)
    # Without the time: these bytes are in the names of tests, which must be the same for all workers.
    return gzip.compress(header + array.tobytes(), mtime=0)


def idx_files() -> dict[str, bytes]:
    x_train, y_train, x_test, y_test = small_split()
    arrays = (x_train.reshape(-1, 28, 28), y_train, x_test.reshape(-1, 28, 28), y_test)
    return {name: idx(array) for name, array in zip(IDX_NAMES, arrays, strict=True)}


class Server:
    """Serves ``files``; the files in ``cut`` are announced whole, but end halfway."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.cut: set[str] = set()
        self.asked: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                name = self.path.rsplit("/", 1)[-1]
                outer.asked.append(self.path)
                if name not in outer.files or self.path.startswith("/broken/"):
                    self.send_error(404)
                    return
                content = outer.files[name]
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content[: len(content) // 2] if name in outer.cut else content)

            def log_message(self, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()
        self.address = f"http://127.0.0.1:{self.http.server_port}/"

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server of small files instead of the official ones, with matching checksums."""
    for proxy in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(proxy, raising=False)
    server = Server()
    server.files = idx_files()
    publish(server, monkeypatch)
    yield server
    server.close()


def publish(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in server.files.items()}
    for name, source in datasets._SOURCES.items():
        files = {file: sums.get(file, published) for file, published in source.files.items()}
        monkeypatch.setitem(datasets._SOURCES, name, source._replace(mirrors=(server.address,), files=files))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache and no data folder, whatever the machine's settings are."""
    monkeypatch.delenv("TSEE_DATA", raising=False)
    monkeypatch.setenv("TSEE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class TestDigits:
    def test_split(self):
        split = load_digits()
        assert split.x_train.shape == (1198, 64)
        assert split.x_test.shape == (599, 64)
        assert split.x_train.dtype == np.float32
        assert (split.x_train.min(), split.x_train.max()) == (0, 16)
        assert np.bincount(split.y_test).min() >= 57  # every class is held out equally

    def test_seed(self):
        assert_same(load_digits(random_state=1), load_digits(random_state=1))
        assert not np.array_equal(load_digits(random_state=1).y_train, load_digits().y_train)

    def test_size(self):
        assert len(load_digits(test_size=0.1).x_test) == 180


class TestFolders:
    @pytest.mark.parametrize("name", LOADERS)
    def test_a_folder_by_argument(self, name, tmp_path):
        np.savez(tmp_path / f"{name}.npz", **small_split()._asdict())
        assert_same(LOADERS[name](tmp_path), small_split())
        assert_same(LOADERS[name](folder=str(tmp_path)), small_split())

    def test_a_folder_by_environment(self, tmp_path, monkeypatch):
        np.savez(tmp_path / "mnist.npz", **small_split()._asdict())
        monkeypatch.setenv("TSEE_DATA", str(tmp_path))
        assert_same(load_mnist(), small_split())

    def test_a_folder_by_argument_is_not_left(self, tmp_path, cache):
        cache.mkdir()
        np.savez(cache / "mnist.npz", **small_split()._asdict())
        assert_same(load_mnist(), small_split())
        with pytest.raises(FileNotFoundError, match=r"There is no mnist.npz in the folder '.*elsewhere'"):
            load_mnist(tmp_path / "elsewhere")

    @pytest.mark.parametrize(
        "change, message",
        [
            ({"x_test": None}, "must be an .npz file of the arrays x_train, y_train, x_test, y_test"),
            ({"y_test": np.array(["a", None, "b"], dtype=object)}, "could not be read as one"),  # a pickle
            ({"x_train": np.zeros((6, 784))}, "one uint8 row per image in x_train .* Got float64"),
            ({"x_test": np.zeros((3, 28, 28), np.uint8)}, r"x_test .* Got uint8 of shape \(3, 28, 28\)"),
            ({"y_train": np.zeros(5, np.uint8)}, r"one label per row in y_train. .* labels of shape \(5,\)"),
        ],
    )
    def test_a_bad_file(self, tmp_path, change, message):
        arrays = {key: value for key, value in (small_split()._asdict() | change).items() if value is not None}
        np.savez(tmp_path / "mnist.npz", **arrays)
        with pytest.raises(ValueError, match=message):
            load_mnist(tmp_path)

    @pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04 nor this"])
    def test_not_an_npz_file(self, tmp_path, content):
        (tmp_path / "mnist.npz").write_bytes(content)
        with pytest.raises(ValueError, match=r"mnist\.npz must be an .npz file"):
            load_mnist(tmp_path)


class TestDownload:
    @pytest.mark.parametrize("name", ["mnist", "fashion"])
    def test_once_and_then_from_the_cache(self, name, server, cache):
        assert_same(LOADERS[name](), small_split())
        assert os.listdir(cache) == [f"{name}.npz"]
        assert len(server.asked) == 4
        server.close()
        assert_same(LOADERS[name](), small_split())

    def test_a_folder_without_the_file_is_passed_over(self, server, tmp_path, monkeypatch):
        monkeypatch.setenv("TSEE_DATA", str(tmp_path))
        assert_same(load_mnist(), small_split())
        assert os.listdir(tmp_path) == ["cache"]  # only the cache is written to

    def test_the_next_mirror(self, server, monkeypatch):
        source = datasets._SOURCES["mnist"]
        mirrors = (server.address + "broken/", server.address)
        monkeypatch.setitem(datasets._SOURCES, "mnist", source._replace(mirrors=mirrors))
        assert_same(load_mnist(), small_split())
        assert len(server.asked) == 8

    def assert_refused(self, reason: str, cache: Path) -> None:
        way_out = r"\): try again, or put mnist.npz in a folder and set TSEE_DATA to that folder\.$"
        with pytest.raises(OSError, match=rf"^MNIST could not be downloaded \(.*{reason}.*{way_out}"):
            load_mnist()
        assert os.listdir(cache) == []

    @pytest.mark.parametrize("file", IDX_NAMES)
    def test_another_file_is_refused(self, file, server, cache):
        server.files[file] = idx(np.ones(2, np.uint8))
        self.assert_refused("this is not the published file: its SHA-256 differs", cache)

    def test_a_broken_off_download_is_refused(self, server, cache):
        server.cut.add(IDX_NAMES[2])
        size = len(server.files[IDX_NAMES[2]])
        self.assert_refused(f"broke off after {size // 2} of {size} bytes", cache)

    def test_a_missing_file(self, server, cache):
        del server.files[IDX_NAMES[1]]
        self.assert_refused("train-labels-idx1-ubyte.gz: HTTP Error 404", cache)

    def test_offline(self, server, cache):
        server.close()
        self.assert_refused("train-images-idx3-ubyte.gz: .*refused", cache)

    def test_a_cache_that_cannot_be_written(self, server, cache):
        cache.write_text("a file where the folder should be")
        with pytest.raises(OSError, match=r"MNIST could not be downloaded .* set TSEE_DATA"):
            load_mnist()

    @pytest.mark.parametrize("name", datasets._SOURCES)
    def test_official_sources_are_https_and_have_checksums(self, name):
        source = datasets._SOURCES[name]
        assert all(mirror.startswith("https://") and mirror.endswith("/") for mirror in source.mirrors)
        assert all(len(bytes.fromhex(sha256)) == 32 for sha256 in source.files.values())


class TestIdx:
    @pytest.mark.parametrize(
        "content, message",
        [
            (b"not gzip", "not a complete gzip file"),
            (idx(np.zeros(50, np.uint8))[:-9], "not a complete gzip file"),
            (gzip.compress(b"", mtime=0), "not an IDX file"),
            (gzip.compress(b"\0\0\x08\x01\0\0", mtime=0), "not an IDX file"),  # the header breaks off
            (
                gzip.compress(b"\0\0\x0d\x01" + struct.pack(">I", 1) + b"\0\0\0\0", mtime=0),
                "not an IDX file",
            ),  # floats
            (idx(np.zeros((2, 3, 3), np.uint8)), "not an IDX file of unsigned bytes in 1 dim"),
            (
                gzip.compress(b"\0\0\x08\x01" + struct.pack(">I", 5) + b"1234", mtime=0),
                "must have 13 bytes .* has 12",
            ),
            (
                gzip.compress(b"\0\0\x08\x01" + struct.pack(">I", 3) + b"1234", mtime=0),
                "must have 11 bytes .* has 12",
            ),
        ],
    )
    def test_bad_files(self, tmp_path, content, message):
        path = tmp_path / "train-labels-idx1-ubyte.gz"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            datasets._read_idx(path)


class TestCoil:
    """With 2 objects instead of 100."""

    @pytest.fixture(autouse=True)
    def few_objects(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("PIL")
        monkeypatch.setattr(datasets, "_COIL_OBJECTS", 2)

    @staticmethod
    def view(number: int, degrees: int) -> np.ndarray:
        """A gray image that differs between views, and is not uniform within a square of 4 x 4."""
        columns, rows = np.meshgrid(np.arange(128), np.arange(128))
        return ((columns * rows + 50 * number + degrees) % 251).astype(np.uint8)

    def archive(self, drop: str = "", size: int = 128, extra: str = "convertGroupppm2png.pl") -> bytes:
        from PIL import Image

        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr(f"coil-100/{extra}", b"not an image")
            for number in (2, 1):
                for degrees in range(355, -5, -5):
                    image = io.BytesIO()
                    Image.fromarray(self.view(number, degrees)[:size]).convert("RGB").save(
                        image, "png", compress_level=1
                    )
                    if f"obj{number}__{degrees}" != drop:
                        archive.writestr(f"coil-100/obj{number}__{degrees}.png", image.getvalue())
        return buffer.getvalue()

    def test_views_are_split_by_angle(self, server, monkeypatch):
        server.files = {"coil-100.zip": self.archive()}
        publish(server, monkeypatch)
        split = load_coil100()
        for x, y, first in ((split.x_train, split.y_train, 0), (split.x_test, split.y_test, 5)):
            assert x.dtype == y.dtype == np.uint8
            assert x.shape == (72, 1024)
            views = [(number, degrees) for number in (1, 2) for degrees in range(first, 360, 10)]
            for row, label, (number, degrees) in zip(x, y, views, strict=True):
                means = self.view(number, degrees).reshape(32, 4, 32, 4).mean((1, 3)).ravel()
                assert label == number
                assert np.abs(row - means).max() <= 0.51  # rounded to whole numbers

    @pytest.mark.parametrize(
        "change, message",
        [
            ({"drop": "obj2__85"}, "must hold 144 images, but holds 143"),
            ({"size": 100}, "does not have 128 x 128 pixels"),
            ({"extra": "obj1__7.png"}, "obj1__7.png is none of 2 objects seen every 5 degrees"),
            ({"extra": "obj3__0.png"}, "obj3__0.png is none of 2 objects"),
            ({"drop": "obj1__0", "extra": "obj1__0.png"}, "coil-100.zip cannot be read"),
        ],
    )
    def test_a_bad_archive(self, server, monkeypatch, cache, change, message):
        server.files = {"coil-100.zip": self.archive(**change)}
        publish(server, monkeypatch)
        with pytest.raises(OSError, match=rf"COIL-100 could not be downloaded \(.*{message}.*set TSEE_DATA"):
            load_coil100()
        assert os.listdir(cache) == []

    def test_not_a_zip_file(self, tmp_path):
        (tmp_path / "coil-100.zip").write_bytes(b"nothing of the kind")
        with pytest.raises(ValueError, match=r"coil-100\.zip cannot be read"):
            datasets._from_coil_zip(iter([tmp_path / "coil-100.zip"]))

    def test_without_pillow_nothing_is_downloaded(self, server, monkeypatch):
        monkeypatch.setitem(sys.modules, "PIL", None)
        with pytest.raises(ImportError, match=r"needs Pillow: pip install pillow, or put coil100\.npz"):
            load_coil100()
        assert server.asked == []


DATA = os.environ.get("TSEE_DATA")


@pytest.mark.skipif(not DATA, reason="TSEE_DATA is not set to a folder with mnist.npz and the others")
class TestRealData:
    @pytest.mark.parametrize(
        "name, rows, columns, classes",
        [("mnist", 60000, 784, 10), ("fashion", 60000, 784, 10), ("coil100", 3500, 1024, 100)],
    )
    def test_shapes(self, name, rows, columns, classes):
        if not (Path(DATA) / f"{name}.npz").is_file():
            pytest.skip(f"there is no {name}.npz in TSEE_DATA")
        split = LOADERS[name](DATA)
        assert len(split.x_train) >= rows
        assert split.x_train.shape[1] == split.x_test.shape[1] == columns
        assert len(np.unique(split.y_train)) == classes
        assert split.x_train.dtype == split.y_train.dtype == np.uint8
