"""The widget in a real JupyterLab: skipped unless jupyterlab is installed, which `.[test]` does not do."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import time

import pytest

CELL = """
import json, pathlib
import tsee
digits = tsee.datasets.load_digits()
see = tsee.DtSEE(max_epochs=2, random_state=0).fit(digits.x_train)
widget = see.show(columns={"digit": digits.y_train}, height=500)
write = lambda change: pathlib.Path("selection.json").write_text(json.dumps(change["new"].tolist()))
widget.observe(write, "selection")
widget
"""


@pytest.fixture
def lab(tmp_path):
    """The address of a JupyterLab in an empty folder."""
    if importlib.util.find_spec("jupyterlab") is None:
        pytest.skip("jupyterlab is not installed (pip install jupyterlab)")
    options = ["--no-browser", "--allow-root", "--port=0", "--IdentityProvider.token=", "--ServerApp.password="]
    options += ["--LabApp.news_url=", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    notebook = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    notebook["metadata"]["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "outputs": [], "execution_count": None, "source": CELL}
    notebook["cells"].append(cell)
    (tmp_path / "map.ipynb").write_text(json.dumps(notebook))
    with open(tmp_path / "log.txt", "w") as log:
        command = [sys.executable, "-m", "jupyterlab", *options]
        server = subprocess.Popen(command, cwd=tmp_path, stderr=log, env=os.environ | {"JUPYTER_PLATFORM_DIRS": "1"})
    try:
        address = None
        for _ in range(300):
            address = re.search(r"http://[\w.]+:\d+/lab", (tmp_path / "log.txt").read_text())
            if address or server.poll() is not None:
                break
            time.sleep(0.2)
        assert address, (tmp_path / "log.txt").read_text()
        yield address[0]
    finally:
        server.terminate()
        server.wait(30)


def test_a_selection_in_jupyterlab_comes_back_to_python(lab, browser, tmp_path):
    context = browser.new_context(viewport={"width": 1300, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(90_000)
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(f"{lab}/tree/map.ipynb?reset")
    page.locator(".jp-Cell .cm-content").first.click()
    page.keyboard.press("Shift+Enter")
    frame = page.frame_locator("iframe[title=Map]")
    frame.locator("body.ready").wait_for()
    frame.locator("[data-tool=box]").click()
    box = frame.locator("#map").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x - 150, y - 120)
    page.mouse.down()
    page.mouse.move(x + 100, y + 100, steps=8)
    page.mouse.up()
    frame.locator("#selection strong").wait_for()
    said = int(re.search(r"[\d,]+", frame.locator("#selection strong").inner_text())[0].replace(",", ""))
    for _ in range(100):
        if (tmp_path / "selection.json").exists():
            break
        page.wait_for_timeout(100)
    page.screenshot(path=tmp_path / "lab.png")
    rows = json.loads((tmp_path / "selection.json").read_text())
    assert len(rows) == said > 10
    assert rows == sorted(rows)
    own = lab.removesuffix("/lab")
    assert [url for url in requests if not url.startswith((own, "data:", "blob:", "about:"))] == []
    context.close()
