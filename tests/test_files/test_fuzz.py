"""Damaged files of every format are read or refused with one sentence; none ends the process or hangs it."""

import gzip
import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import zarr

SEED = int(os.environ.get("TSEE_FUZZ_SEED", 0))
FILES = int(os.environ.get("TSEE_FUZZ_FILES", 60))  # of each kind

# Opens each folder of argv, reads all of its only entry, and prints what came of it, one line each.
READER = """
    import faulthandler, os, resource, warnings
    from pathlib import Path
    import numpy as np
    import scipy.sparse
    from tsee.exceptions import DataFileError
    from tsee.files import open_table, text

    faulthandler.enable()
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30, 3 * 2**30))
    for folder in Path(sys.argv[1]).iterdir():
        print(folder.name, end="\\t", flush=True)
        (path,) = folder.iterdir()
        text.ARROW_BYTES = 0 if sum(folder.name.encode()) % 2 else 2**60
        faulthandler.dump_traceback_later(15, exit=True)
        try:
            with open_table(path) as table:
                for start in range(0, min(len(table), 2000), 64):
                    block = table.rows[start : start + 64]
                    stop = min(start + 64, len(table))
                    assert block.shape == (stop - start, table.rows.shape[1]), block.shape
                    if scipy.sparse.issparse(block) and block.shape[1] < 10**6:
                        block = block.toarray()
                    values = block.data if scipy.sparse.issparse(block) else block
                    assert values.dtype == table.rows.dtype, values.dtype
                    assert np.isfinite(values).all()
                    kept = table.kept(start, stop)
                    assert all(len(column) == stop - start for column in kept.values())
            print("read")
        except DataFileError as error:
            sentence = str(error)
            fine = "\\n" not in sentence and sentence.endswith((".", "?")) and path.name.partition(".")[0] in sentence
            if "TSEE_FUZZ_TELL" in os.environ:
                print(sentence, file=sys.stderr)
            print("refused" if fine else f"badly worded: {sentence!r}")
        except BaseException as error:
            print(f"{type(error).__name__}: {str(error)[:200]!r}")
    """


def make(folder, kind, numbers, make_h5ad):
    """A sound file of one kind."""
    path = folder / {"npy F": "a.npy", "npz sparse": "a.npz", "npz packed": "a.npz", "npz csc": "a.npz"}.get(kind, kind)
    frame = pd.DataFrame(numbers, columns=list("abcdef")).assign(name=[f"row {i}" for i in range(len(numbers))])
    sparse = scipy.sparse.csr_matrix(np.where(numbers > 0.5, numbers, 0))
    if kind == "a.csv":
        frame.to_csv(path, index=False)
    elif kind == "a.tsv.gz":
        path.write_bytes(gzip.compress(frame.to_csv(index=False, sep="\t").encode()))
    elif kind == "a.parquet":
        frame.to_parquet(path, row_group_size=50)
    elif kind in ("a.npy", "npy F"):
        np.save(path, np.asfortranarray(numbers) if kind == "npy F" else numbers)
    elif kind in ("a.npz", "npz packed"):
        (np.savez if kind == "a.npz" else np.savez_compressed)(path, numbers)
    elif kind in ("npz sparse", "npz csc"):
        scipy.sparse.save_npz(path, sparse if kind == "npz sparse" else sparse.tocsc(), compressed=False)
    elif kind == "a.h5":
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=numbers, chunks=(50, 6), compression="gzip")
            file["y"] = np.arange(len(numbers))
    elif kind.endswith(".h5ad"):
        make_h5ad(path, len(numbers), 6)
        with h5py.File(path, "a") as file:
            del file["X"]
            if kind == "dense.h5ad":
                file["X"] = numbers
            else:
                matrix = sparse.asformat(kind[:3])
                group = file.create_group("X")
                group.attrs.update({"encoding-type": f"{kind[:3]}_matrix", "shape": matrix.shape})
                for part in ("data", "indices", "indptr"):
                    group.create_dataset(part, data=getattr(matrix, part), compression="gzip")
            file["obs"].attrs["column-order"] = np.array(["kind"], dtype=object)
            column = file["obs"].create_group("kind")
            column.attrs["encoding-type"] = "categorical"
            column["codes"] = (np.arange(len(numbers)) % 2).astype(np.int8)
            column["categories"] = np.array(["ant", "bee"], dtype=object)
    else:
        zarr_format = 2 if kind == "v2.zarr" else 3
        zarr.create_array(str(path), data=numbers, chunks=(50, 6), zarr_format=zarr_format)
    return path


KINDS = ["a.csv", "a.tsv.gz", "a.npy", "npy F", "a.npz", "npz packed", "npz sparse", "npz csc", "a.parquet", "a.h5"]
KINDS += ["dense.h5ad", "csr.h5ad", "csc.h5ad", "v2.zarr", "v3.zarr"]


def damage(content, generator):
    """One kind of damage: bits, bytes, pieces, the end, or a number in the header."""
    content = bytearray(content or b"?")
    at = int(generator.integers(len(content)))
    head = int(generator.integers(min(300, len(content))))
    length = int(generator.integers(1, 40))
    how = generator.integers(8)
    if how == 0:
        for place in generator.integers(len(content), size=3):
            content[place] ^= 1 << int(generator.integers(8))
    elif how == 1:
        content[head] ^= 1 << int(generator.integers(8))
    elif how == 2:
        del content[at:]
    elif how == 3:
        content[at:at] = generator.bytes(length)
    elif how == 4:
        del content[at : at + length]
    elif how == 5:
        content[at : at + length] = generator.bytes(length)
    elif how == 6:  # another number in a header of text, or among bytes
        digits = [place for place, byte in enumerate(content[:2000]) if 48 <= byte < 58] or [head]
        content[digits[int(generator.integers(len(digits)))]] = ord(str(generator.integers(10)))
    else:  # a long number of bytes: lengths and offsets
        value = [0, 1, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1][int(generator.integers(6))]
        content[at : at + 8] = value.to_bytes(8, "little")
    return bytes(content)


ODD = [
    0,
    -1,
    1,
    7,
    2**31,
    2**40,
    2**63,
    0.5,
    "x",
    "|O",
    "<f8",
    "<c16",
    "<U0",
    "|V0",
    "bytes",
    None,
    True,
    [],
    [0],
    [-1, 6],
    {},
]


def edit(content, generator):
    """One value of a JSON text changed for an odd one."""
    document = json.loads(content)
    places = []

    def collect(item):
        for key, value in list(item.items() if isinstance(item, dict) else enumerate(item)):
            places.append((item, key))
            if isinstance(value, dict | list):
                collect(value)

    collect(document)
    if not places:
        return b""
    item, key = places[int(generator.integers(len(places)))]
    item[key] = ODD[int(generator.integers(len(ODD)))]
    return json.dumps(document).encode()


def edit_header(content, generator):
    """Another shape, type or order in the header of an .npy file."""
    array = np.lib.format.read_array(io.BytesIO(content))
    shape = [array.shape, array.shape[::-1], (-5, 6), (2**40, 2**40), (2**62, 4), (0, 6), (200,), (), (1, 1, 7)]
    types = ["<f4", ">f8", "|O", "<c16", "<U0", "<M8[s]", "|V3", "<f2", "|b1", "<i8", "<f16", [("a", "<f4")]]
    header = {
        "descr": types[int(generator.integers(len(types)))],
        "fortran_order": bool(generator.integers(2)),
        "shape": shape[int(generator.integers(len(shape)))],
    }
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + array.tobytes()


def damage_inside(path, generator):
    """Damage that no checksum shows: what is compressed is damaged, then compressed again."""
    content = path.read_bytes()
    either = (damage, edit_header)[int(generator.integers(2))]
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(damage(gzip.decompress(content), generator)))
    elif path.suffix == ".npy":
        path.write_bytes(edit_header(content, generator))
    elif path.suffix == ".npz":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        name = list(members)[int(generator.integers(len(members)))]
        members[name] = either(members[name], generator)
        with zipfile.ZipFile(
            path, "w", (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)[int(generator.integers(2))]
        ) as archive:
            for member, inner in members.items():
                archive.writestr(member, inner)
    elif path.name in ("zarr.json", ".zarray", ".zattrs"):
        path.write_bytes(edit(content, generator))
    else:
        path.write_bytes(damage(content, generator))


def run(folder, program):
    """What came of each damaged file. A process that ends early is started again for the files after that one."""
    outcomes = {}
    while left := list(folder.iterdir()):
        done = subprocess.run(
            [sys.executable, "-c", program(READER), str(folder)],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        if "TSEE_FUZZ_TELL" in os.environ:
            print(done.stderr)
        lines = [line.split("\t", 1) for line in done.stdout.splitlines() if "\t" in line]
        for name, outcome in lines:
            outcomes[name] = outcome or f"ended the process ({done.returncode}): {done.stderr[-600:]}"
        assert lines, done.stderr
        for name, _ in lines:
            if outcomes[name] in ("read", "refused"):
                shutil.rmtree(folder / name)
            else:
                (folder / name).rename(folder.parent / f"bad {name}")
        assert len(list(folder.iterdir())) < len(left)
    return outcomes


@pytest.mark.timeout(900)
def test_damaged_files_are_read_or_refused(tmp_path, program, make_h5ad):
    numbers = np.random.default_rng(0).normal(size=(200, 6)).astype(np.float32)
    generator = np.random.default_rng(SEED)
    (tmp_path / "sound").mkdir()
    (tmp_path / "damaged").mkdir()
    for kind in KINDS:
        sound = make(tmp_path / "sound", kind, numbers, make_h5ad)
        for attempt in range(FILES):
            path = tmp_path / "damaged" / f"{kind} {attempt}" / sound.name
            path.parent.mkdir()
            if sound.is_dir():
                shutil.copytree(sound, path)
                files = sorted(entry for entry in path.rglob("*") if entry.is_file())
                target = files[int(generator.integers(len(files)))] if attempt % 2 else metadata(path)
            else:
                target = Path(shutil.copyfile(sound, path))
            if attempt:  # the first is sound
                if attempt % 3:
                    target.write_bytes(damage(target.read_bytes(), generator))
                else:
                    damage_inside(target, generator)
    outcomes = run(tmp_path / "damaged", program)
    bad = {name: outcome for name, outcome in outcomes.items() if outcome not in ("read", "refused")}
    counts = {kind: sum(outcomes[f"{kind} {i}"] == "refused" for i in range(FILES)) for kind in KINDS}
    print(json.dumps({"tried": len(outcomes), "refused": counts, "bad": len(bad)}))
    assert len(outcomes) == FILES * len(KINDS)
    assert {outcomes[f"{kind} 0"] for kind in KINDS} == {"read"}
    assert not bad, "\n".join(f"{name}: {outcome}" for name, outcome in bad.items())
    assert min(counts.values()) > FILES // 20  # the damage reaches what is read


def metadata(store):
    return next(store / name for name in ("zarr.json", ".zarray") if (store / name).exists())
