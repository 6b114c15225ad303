"""A map that takes in new rows: how far old rows move, errors and time, beside a fit of everything.

    TSEE_DATA=folder python benchmarks/update.py mnist fashion sentences pbmc   # halves, the second with new kinds
    TSEE_DATA=folder python benchmarks/update.py ten:5000 ten:1000              # ten updates of so many rows of MNIST
    TSEE_DATA=folder python benchmarks/update.py draw                           # the figures of these
    TSEE_DATA=folder python benchmarks/update.py small                          # 10,000 rows of MNIST, for the peers
    TSEE_DATA=folder peers/bin/python benchmarks/update.py peers                # AlignedUMAP, ParametricUMAP

The old half lacks some kinds: the digit 2, boots, three sections, B cells. The new half has them. Old rows of all
methods are compared before and after the update: the distance of a row from where it was, as a share of the longest
side of the old map. A fit of everything is first shifted, turned and scaled to lie as near as possible to the old map
(Procrustes). Errors are of 1-NN on the map, for held-out rows, among the rows of both halves; "new kinds" are the
held-out rows of these. Times are processor seconds of one thread. Settings of tsee were chosen on rows of MNIST's
training set that were left out there. Results go to benchmarks/results/update.json.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
RESULT = HERE / "results" / "update.json"
FIGURES = HERE.parent / "docs" / "updates"
NAMES = ("mnist", "fashion", "sentences", "pbmc")
BOOTS, B_CELLS = 9, "CD19+ B"
SMALL, SMALL_TEST = 10_000, 2_000
TEN = 10
LANDMARKS = 0.01


def halves(name: str) -> tuple[Any, Any, Any, list[int]]:
    """The old half without some kinds, the new half, and the held-out rows, each with labels; and these kinds."""
    from sets import load

    if name == "pbmc":
        X, y = _pbmc()
        order = np.random.default_rng(0).permutation(len(X))
        X, y = X[order], y[order]
        train, test = (X[:525], y[:525]), (X[525:], y[525:])
        kinds = [B_CELLS]
    else:
        data = load(name)
        order = np.random.default_rng(0).permutation(len(data.x_train))
        train, test = (data.x_train[order], data.y_train[order]), (data.x_test, data.y_test)
        kinds = {"mnist": [2], "fashion": [BOOTS]}.get(name, [])
        if name == "sentences":  # three random sections of at least 200 sentences
            sections, counts = np.unique(train[1], return_counts=True)
            kinds = np.random.default_rng(0).choice(sections[counts >= 200], 3, replace=False).tolist()
    X, y = train
    n = len(X) // 2
    old = np.flatnonzero(~np.isin(y[:n], kinds))
    return (X[old], y[old]), (X[n:], y[n:]), test, kinds


def _pbmc() -> tuple[np.ndarray, np.ndarray]:
    """The 50 principal components of 700 blood cells, and their kinds."""
    import h5py
    from sets import _folder

    with h5py.File(_folder() / "pbmc700.h5ad") as file:
        names = np.array([name.decode() for name in file["uns"]["bulk_labels_categories"][:]])
        return np.asarray(file["obsm"]["X_pca"], dtype=np.float32), names[file["obs"]["bulk_labels"]]


def moved(before: np.ndarray, after: np.ndarray) -> dict[str, float]:
    """How far rows are from where they were, in percent of the extent."""
    shares = 100 * np.linalg.norm(after - before, axis=1) / np.ptp(before, axis=0).max()
    return {
        "moved median %": round(float(np.median(shares)), 3),
        "moved 95 %": round(float(np.percentile(shares, 95)), 3),
    }


def procrustes(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Positions after, shifted, turned and scaled to lie as near as possible to those before."""
    a, b = after - after.mean(0), before - before.mean(0)
    left, sizes, right = np.linalg.svd(a.T.astype(np.float64) @ b)
    return a @ (left @ right) * (sizes.sum() / np.square(a).sum()) + before.mean(0)


def errors(Y: np.ndarray, y: np.ndarray, Y_test: np.ndarray, y_test: np.ndarray, kinds: list[int]) -> dict[str, float]:
    from sklearn.neighbors import KNeighborsClassifier

    wrong = KNeighborsClassifier(1).fit(Y, y).predict(Y_test) != y_test
    new = np.isin(y_test, kinds)
    return {
        "error %": round(100 * float(wrong.mean()), 2),
        "error of new kinds %": round(100 * float(wrong[new].mean()), 2),
        "error of known kinds %": round(100 * float(wrong[~new].mean()), 2),
    }


def timed(function: Any) -> tuple[Any, float]:
    start = time.process_time()
    result = function()
    return result, round(time.process_time() - start, 2)


def kept(folder: Path, function: Any) -> tuple[Any, float]:
    """A fitted estimator and its time, from a folder if they are there: a benchmark that was stopped goes on."""
    import tsee

    if (folder / "seconds.json").exists():
        return tsee.load(folder / "model"), json.loads((folder / "seconds.json").read_text())
    see, seconds = timed(function)
    see.save(folder / "model")
    (folder / "seconds.json").write_text(json.dumps(seconds))
    print(folder, seconds, flush=True)
    return see, seconds


def compare(name: str, old: Any, new: Any, test: Any, kinds: list[int]) -> dict[str, Any]:
    """An update beside a fit of everything."""
    import torch

    import tsee

    torch.set_num_threads(1)
    (X_old, y_old), (X_new, y_new), (X_test, y_test) = old, new, test
    tsee.DtSEE(max_epochs=1, random_state=0).fit(X_old[:200])  # what is imported late
    y = np.concatenate([y_old, y_new])
    models = Path(tempfile.gettempdir()) / "tsee-update" / name
    see, fit_seconds = kept(models / "old", lambda: tsee.DtSEE(random_state=0).fit(X_old))
    before = see.embedding_.copy()
    known = ~np.isin(y_test, kinds)
    result: dict[str, Any] = {
        "rows": {
            "old": len(X_old),
            "new": len(X_new),
            "new kinds": int(np.isin(y_new, kinds).sum()),
            "held out": len(y_test),
        },
        "kinds": [str(kind) for kind in kinds],
        "fit of the old half s": fit_seconds,
    }
    for hold in (1.0, 0.1):
        grown, seconds = kept(models / f"grown{hold:g}", lambda hold=hold: see.update(X_new, hold=hold))
        placed = grown.transform(X_test)
        held_out = moved(see.transform(X_test[known]), placed[known])
        result[f"update, hold={hold:g}"] = {
            **moved(before, grown.embedding_[: len(before)]),
            **{f"held-out known rows {name}": value for name, value in held_out.items()},
            **errors(grown.embedding_, y, placed, y_test, kinds),
            "s": seconds,
            "new kind": grown.update_.n_new_kind,
        }
    X = np.concatenate([X_old, X_new])
    refit, seconds = kept(models / "everything", lambda: tsee.DtSEE(random_state=0).fit(X))
    result["fit of everything"] = {
        **moved(before, procrustes(before, refit.embedding_[: len(before)])),
        **errors(refit.embedding_, y, refit.transform(X_test), y_test, kinds),
        "s": seconds,
    }
    return result


def small() -> tuple[Any, Any, Any, list[int]]:
    """10,000 rows of MNIST in the same halves."""
    old, new, test, kinds = halves("mnist")
    return (
        tuple(part[: SMALL // 2] for part in old),
        tuple(part[: SMALL // 2] for part in new),
        tuple(part[:SMALL_TEST] for part in test),
        kinds,
    )


def aligned_umap(old: Any, new: Any, kinds: list[int]) -> dict[str, Any]:
    """It has no transform: each row of both halves is compared with the others."""
    from sklearn.neighbors import KNeighborsClassifier
    from umap import AlignedUMAP

    X, y = np.concatenate([old[0], new[0]]), np.concatenate([old[1], new[1]])
    relation = {i: i for i in range(len(old[0]))}
    mapper = AlignedUMAP(random_state=0)
    # It cannot be fitted to one map: the old half stands there twice.
    (_, first) = timed(lambda: mapper.fit([old[0], old[0]], relations=[relation]))
    before = np.array(mapper.embeddings_[1])
    (_, seconds) = timed(lambda: mapper.update(X, relations=relation))
    after = np.array(mapper.embeddings_[-1])
    others = KNeighborsClassifier(2).fit(after, y).kneighbors(return_distance=False)[:, 0]
    wrong = y[others] != y
    return {
        **moved(before, after[: len(before)]),
        "error of rows among the others %": round(100 * float(wrong.mean()), 2),
        "error of new kinds among the others %": round(100 * float(wrong[np.isin(y, kinds)].mean()), 2),
        "fit of the old half s": first,
        "s": seconds,
    }


def parametric_umap(old: Any, new: Any, test: Any, kinds: list[int]) -> dict[str, Any]:
    """With one in a hundred old rows as landmarks, and all new rows, as its documentation shows."""
    from umap.parametric_umap import ParametricUMAP

    X_old, y_old = old
    mapper = ParametricUMAP(random_state=0, verbose=False)
    _, first = timed(lambda: mapper.fit(X_old))
    before = np.array(mapper.transform(X_old))
    chosen = np.random.default_rng(0).choice(len(X_old), int(LANDMARKS * len(X_old)), replace=False)
    X_more = np.concatenate([new[0], X_old[chosen]])
    positions = np.concatenate([np.full((len(new[0]), 2), np.nan), before[chosen]]).astype(np.float32)
    _, seconds = timed(lambda: mapper.fit(X_more, landmark_positions=positions))
    after = np.array(mapper.transform(np.concatenate([X_old, new[0]])))
    y = np.concatenate([y_old, new[1]])
    return {
        **moved(before, after[: len(before)]),
        **errors(after, y, np.array(mapper.transform(test[0])), test[1], kinds),
        "fit of the old half s": first,
        "s": seconds,
    }


def ten(n_each: int) -> dict[str, Any]:
    """Ten updates of so many rows each, from as many rows without the digit 2."""
    import torch

    import tsee

    torch.set_num_threads(1)
    (X_old, y_old), (X_new, y_new), (X_test, y_test), kinds = halves("mnist")
    X, y = np.concatenate([X_new, X_old]), np.concatenate([y_new, y_old])
    without = np.flatnonzero(y != kinds[0])[:n_each]
    others = np.setdiff1d(np.arange(len(X)), without)[: TEN * n_each]
    see = tsee.DtSEE(random_state=0).fit(X[without])
    first, seen, steps = see.embedding_.copy(), without, []
    for rows in np.array_split(others, TEN):
        see, seconds = timed(lambda see=see, rows=rows: see.update(X[rows]))
        seen = np.concatenate([seen, rows])
        steps.append(
            {
                "rows": len(seen),
                **moved(first, see.embedding_[: len(first)]),
                **errors(see.embedding_, y[seen], see.transform(X_test), y_test, kinds),
                "s": seconds,
            }
        )
        print(steps[-1], flush=True)
    refits = []
    for count in (1, 4, 10):
        rows = np.concatenate([without, others[: count * n_each]])
        refit, seconds = timed(lambda rows=rows: tsee.DtSEE(random_state=0).fit(X[rows]))
        found = errors(refit.embedding_, y[rows], refit.transform(X_test), y_test, kinds)
        back = procrustes(first, refit.embedding_[: len(first)])
        refits.append({"rows": len(rows), **moved(first, back), **found, "s": seconds})
        print(refits[-1], flush=True)
    return {"updates": steps, "fits of everything": refits}


def draw(found: dict[str, Any], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3), layout="constrained")
    for axes, names, title in zip(
        figure.subplots(1, 2),
        (("error %", "error of new kinds %"), ("moved median %", "moved 95 %")),
        ("1-NN error of held-out rows, %", f"way of the first {found['updates'][0]['rows'] // 2:,} rows, % of the map"),
        strict=True,
    ):
        for name, color in zip(names, ("#0b5fa5", "#c4501b"), strict=True):
            label = {"error %": "all digits", "error of new kinds %": "the digit 2", "moved median %": "median"}
            label = label.get(name, "95th percentile")
            for part, style in (("updates", "o-"), ("fits of everything", "s:")):
                rows = [step["rows"] / 1000 for step in found[part]]
                values = [step[name] for step in found[part]]
                axes.plot(rows, values, style, color=color, markersize=4, label=f"{label}, {part}")
        axes.set_title(title, fontsize=9)
        axes.set_xlabel("thousand rows on the map")
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=7)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)


def main() -> None:
    for name in sys.argv[1:]:
        results = json.loads(RESULT.read_text()) if RESULT.exists() else {}
        if name == "draw":
            for run in (run for run in results if run.startswith("ten:")):
                draw(results[run], FIGURES / f"{run.replace(':', '-')}.svg")
            continue
        if name.startswith("ten"):
            results[name] = ten(int(name.partition(":")[2]))
        elif name == "small":
            results.setdefault("mnist, 10,000 rows", {}).update(compare("small", *small()))
        elif name == "peers":
            old, new, test, kinds = small()
            found = results.setdefault("mnist, 10,000 rows", {})
            found["AlignedUMAP"] = aligned_umap(old, new, kinds)
            print(found["AlignedUMAP"], flush=True)
            found["ParametricUMAP, landmarks"] = parametric_umap(old, new, test, kinds)
        else:
            results[name] = compare(name, *halves(name))
        print(json.dumps(results.get(name, results.get("mnist, 10,000 rows")), indent=1), flush=True)
        latest = json.loads(RESULT.read_text()) if RESULT.exists() else {}  # another process may have written
        key = "mnist, 10,000 rows" if name in ("small", "peers") else name
        merged = {**latest.get(key, {}), **results[key]}
        RESULT.write_text(json.dumps({**latest, key: merged}, indent=1) + "\n")


if __name__ == "__main__":
    main()
