"""The HTML page of a map: its size, and how fast it opens, pans and places new rows in headless Chromium.

    python benchmarks/page.py

The data are random and the networks are trained for one epoch only: neither size nor speed depends on what is
learned. Drawing is done in software (SwiftShader) without a GPU, the slowest setup that a reader may have. The result
goes to benchmarks/results/page.json; values above their limit are printed as such.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Browser, Page, sync_playwright

import tsee
from tsee.explorer import write_map_page

RESULT = Path(__file__).parent / "results" / "page.json"
FLAGS = ["--no-sandbox", "--no-first-run", "--disable-background-networking", "--disable-component-update"]
FLAGS += ["--disable-sync", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"]
N_FEATURES = 784
LIMITS = {"page_60000_mb": 8.0, "open_1000000_seconds": 5.0, "place_10000_paper_seconds": 20.0}
LIMITS["place_10000_default_seconds"] = 20.0


def clusters(n_rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    labels = generator.integers(10, size=n_rows)
    return 10 * generator.normal(size=(10, 2))[labels] + generator.normal(size=(n_rows, 2)), labels


def fit(**settings: Any) -> Any:
    """Fit 12,000 rows, which are more exemplars than a page stores in full."""
    X = np.random.default_rng(0).normal(size=(12_000, N_FEATURES)).astype(np.float32)
    return tsee.DtSEE(max_epochs=1, refinement=0, random_state=0, **settings).fit(X)


def open_page(browser: Browser, path: Path) -> tuple[Page, float]:
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.set_default_timeout(240_000)
    start = time.perf_counter()
    page.goto(path.as_uri(), wait_until="commit")
    page.wait_for_function("window.tsee && tsee.drawn() === null")
    return page, time.perf_counter() - start


def pan(page: Page, seconds: float = 4.0) -> float:
    """Frames per second while the map is dragged back and forth."""
    page.mouse.move(700, 450)
    page.mouse.down()
    frames = page.evaluate(
        """(seconds) => new Promise((done) => {
            const positions = new Set();
            const start = performance.now();
            const frame = (step) => {
                positions.add(tsee.screen(0).join());
                const elapsed = performance.now() - start;
                if (elapsed > 1000 * seconds) return done((1000 * positions.size) / elapsed);
                const [clientX, clientY] = [700 + 150 * Math.sin(step / 10), 450 + 80 * Math.cos(step / 7)];
                dispatchEvent(new MouseEvent('mousemove', { clientX, clientY, buttons: 1 }));
                requestAnimationFrame(() => frame(step + 1));
            };
            frame(0);
        })""",
        seconds,
    )
    page.mouse.up()
    return float(frames)


def place(page: Page, csv: Path) -> float:
    page.keyboard.press("n")
    start = time.perf_counter()
    page.set_input_files("#file", csv)
    page.wait_for_function("tsee.added()")
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print("Skipped: Chromium is not installed (apt-get install chromium).")
        return
    warnings.simplefilter("ignore")
    load = os.getloadavg()[0]
    models = {"paper": fit(hidden_layers=(500, 500, 2000), normalization=None), "default": fit()}
    runs: dict[str, list[float]] = {}

    def note(name: str, value: float) -> None:
        runs.setdefault(name, []).append(value)

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        version = browser.version
        csv = Path(folder) / "new.csv"
        X_new = np.random.default_rng(1).integers(0, 256, (10_000, N_FEATURES))
        np.savetxt(csv, X_new, "%d", ",", header=",".join(f"p{i}" for i in range(N_FEATURES)), comments="")
        Y, labels = clusters(60_000)
        pages = {name: Path(folder) / f"{name}.html" for name in models}
        for name, model in models.items():
            write_map_page(model, Y, pages[name], columns={"label": labels})
        note("page_60000_mb", pages["paper"].stat().st_size / 1e6)
        Y, labels = clusters(1_000_000)
        million = write_map_page(models["default"], Y, Path(folder) / "million.html", columns={"label": labels})
        note("page_1000000_mb", million.stat().st_size / 1e6)
        for _ in range(repeats):
            page, seconds = open_page(browser, million)
            note("open_1000000_seconds", seconds)
            note("pan_1000000_frames_per_second", pan(page))
            page.close()
            page, seconds = open_page(browser, pages["paper"])
            note("open_60000_seconds", seconds)
            note("pan_60000_frames_per_second", pan(page))
            note("place_10000_paper_seconds", place(page, csv))
            page.close()
            page, _ = open_page(browser, pages["default"])
            note("place_10000_default_seconds", place(page, csv))
            page.close()
        browser.close()

    results = {name: statistics.median(values) for name, values in runs.items()}
    for name, value in results.items():
        limit = LIMITS.get(name)
        note_on_limit = "" if limit is None else f"   (limit {limit:g}{', exceeded' if value > limit else ''})"
        print(f"{name:<32}{value:>9.2f}{note_on_limit}")
    report = {
        "machine": {"processor": platform.machine(), "cores": os.cpu_count(), "load_at_start": round(load, 1)},
        "versions": {"chromium": version, "tsee": tsee.__version__},
        "limits": LIMITS,
        "results": results,
        "runs": runs,
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
