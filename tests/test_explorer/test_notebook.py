"""Maps in notebooks: what a cell shows, and a widget whose selection comes back."""

import base64
import html
import json
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import tsee
from tsee.explorer import write_map_page
from tsee.explorer.widget import map_widget
from tsee.explorer.written import MAX_SHOWN, MapPage

WIDGET = Path(tsee.__file__).parent / "explorer" / "web" / "widget.js"


def test_a_page_is_a_path_that_shows_itself(simple):
    assert isinstance(simple, Path)
    assert simple.is_file()
    assert Path(simple) == simple
    assert pickle.loads(pickle.dumps(simple)) == simple
    shown = simple._repr_html_()
    framed = re.fullmatch(r'<iframe srcdoc="([^"]*)" [^<]*></iframe>', shown)
    assert html.unescape(framed[1]) == simple.read_text()
    assert simple.parent._repr_html_() is None  # no page


def test_a_large_page_is_a_link(tmp_path):
    path = MapPage(tmp_path / "a&b.html")
    path.write_text("x" * (MAX_SHOWN + 1))
    assert '<a href="' in path._repr_html_()
    assert "a&amp;b.html" in path._repr_html_()
    assert len(path._repr_html_()) < 1000


def test_a_framed_page_opens(simple, open_page, tmp_path):
    host = tmp_path / "host.html"
    host.write_text(f"<!doctype html><meta charset=utf-8><script>{LOOKS_READY}</script>{simple._repr_html_()}")
    opened = open_page(host)
    frame = opened.page.frames[1]
    frame.wait_for_function("window.tsee")
    assert frame.evaluate("tsee.shown()") == 120
    assert not opened.errors
    assert [url for url in opened.requests if not url.startswith(("file:", "data:", "about:"))] == []


@pytest.fixture(scope="module")
def widget(fitted, clusters):
    Y, labels = clusters
    columns = {"kind": labels, "weight": np.linspace(0, 1, 120), "note": [f"n{i}" for i in range(120)]}
    return map_widget(fitted, Y, columns=columns, color="weight")


def test_a_selection_is_numbers_of_rows(widget):
    heard = []
    widget.observe(lambda change: heard.append(change["new"].tolist()), "selection")
    widget.selection = [5, 3, 3]
    widget.selection = np.arange(120) < 2
    assert heard == [[3, 5], [0, 1]]
    assert repr(widget) == "MapWidget of 120 rows, 2 selected"
    widget.selection = []
    assert widget.selection.shape == (0,)
    assert widget.selection.dtype == np.int64


@pytest.mark.parametrize("rows", [[120], [-1], [0.5], ["a"], [[1]], np.ones(7, bool)])
def test_a_selection_of_rows_that_are_not_there_is_refused(widget, rows):
    with pytest.raises(ValueError, match="selection must be numbers of rows from 0 to 119"):
        widget.selection = rows


def test_bad_values_of_a_widget_are_refused(widget, fitted, clusters):
    with pytest.raises(ValueError, match=r"color must be one of the map's columns: 'kind', 'weight'\. Got 'note'"):
        widget.color = "note"
    with pytest.raises(ValueError, match="height must be at least 240"):
        widget.height = 10
    with pytest.raises(ValueError, match="'color' parameter of a page must be one of its columns: 'kind'"):
        map_widget(fitted, clusters[0], columns={"kind": clusters[1]}, color="weight")


# `open_page` waits for what a page of tsee has.
LOOKS_READY = "window.tsee = {screen: () => [0], drawn: () => null};"
HOST = """
const values = %s;
const listeners = {};
window.model = {
  get: (name) => values[name],
  set(name, value) { values[name] = value; },
  save_changes() { window.saved = {...values, _page: null}; },
  on(name, act) { (listeners[name] ??= []).push(act); },
  off() {},
  change(name, value) { values[name] = value; (listeners[`change:${name}`] || []).forEach((act) => act()); },
};
document.body.dataset.jpThemeLight = 'false';
(await import('data:text/javascript;base64,%s')).default.render({model, el: document.body});
%s
"""


def hosted(state, folder):
    """A page that runs the widget as anywidget does, with a model of ours."""
    script = base64.b64encode(WIDGET.read_bytes()).decode()
    # Inside a script, "</" may end it.
    content = HOST % (json.dumps(state).replace("</", "<\\/"), script, LOOKS_READY)
    host = folder / "host.html"
    host.write_text(f"<!doctype html><meta charset=utf-8><body><script type=module>{content}</script></body>")
    return host


def test_the_widget_and_the_page_hear_one_another(widget, open_page, tmp_path):
    state = {"_page": widget._page, "color": "weight", "selection": [1, 2], "height": 500}
    opened = open_page(hosted(state, tmp_path))
    frame = opened.page.frames[1]
    frame.wait_for_function("window.tsee && tsee.selected()?.length === 2")
    assert frame.evaluate("document.documentElement.dataset.theme") == "dark"
    assert frame.evaluate("document.getElementById('color').selectedOptions[0].text") == "weight"
    opened.evaluate("model.change('selection', [7, 8, 9])")
    frame.wait_for_function("tsee.selected().join() === '7,8,9'")
    opened.evaluate("model.change('color', 'kind')")
    frame.wait_for_function("document.getElementById('color').selectedOptions[0].text === 'kind'")
    assert opened.evaluate("window.saved") is None  # nothing is said back
    frame.locator("#selection [aria-label^=Clear]").click()
    opened.wait_for_function("window.saved?.selection.length === 0")
    frame.locator("#color").select_option(label="weight")
    opened.wait_for_function("saved.color === 'weight'")
    assert not opened.errors


def test_a_page_of_its_own_says_nothing_to_what_it_is_in(simple, open_page, tmp_path):
    state = {"_page": simple.read_text(), "color": "weight", "selection": [1], "height": 500}
    opened = open_page(hosted(state, tmp_path))
    frame = opened.page.frames[1]
    frame.wait_for_function("window.tsee")
    frame.locator("#color").select_option(label="weight")
    frame.wait_for_function("document.getElementById('color').selectedOptions[0].text === 'weight'")
    assert frame.evaluate("tsee.selected()") is None
    assert opened.evaluate("window.saved") is None


NOTEBOOK = """
import tsee
digits = tsee.datasets.load_digits()
see = tsee.DtSEE(max_epochs=2, random_state=0).fit(digits.x_train)
see
---
see.plot(digits.y_train, title="Digits")
---
tsee.plots.compare({"a": see, "b": see.embedding_[:, ::-1]}, digits.y_train)
---
see.to_html("digits.html", columns={"digit": digits.y_train})
---
widget = see.show(columns={"digit": digits.y_train}, color="digit")
widget.selection = digits.y_train == 3
widget
"""


def test_a_notebook_shows_maps(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    cells = [nbformat.v4.new_code_cell(source.strip()) for source in NOTEBOOK.split("---")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    client = nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    nbformat.validate(notebook)
    data = [cell.outputs[-1].data for cell in notebook.cells]
    assert len([output for cell in notebook.cells for output in cell.outputs]) == len(cells)  # nothing is shown twice
    assert '<img src="data:image/png;base64,' in data[0]["text/html"]
    assert "sk-container" in data[0]["text/html"]
    for shown in data[1:3]:
        assert base64.b64decode(shown["image/png"]).startswith(b"\x89PNG")
    assert data[3]["text/html"].startswith("<iframe srcdoc=")
    assert (tmp_path / "digits.html").is_file()
    model = data[4]["application/vnd.jupyter.widget-view+json"]["model_id"]
    states = notebook.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"]
    state = states[model]["state"]
    assert state["color"] == "digit"
    assert len(state["selection"]) > 50
    assert state["_page"].startswith("<!doctype html>")
    assert "http" not in state["_esm"]  # nothing is loaded


def test_an_estimator_that_is_not_fitted_shows_its_parameters_only():
    bundle = tsee.DtSEE()._repr_mimebundle_()
    assert "<img" not in bundle["text/html"]
    assert bundle["text/plain"] == "DtSEE()"


def test_a_written_page_can_be_written_again(fitted, clusters, tmp_path):
    page = write_map_page(fitted, clusters[0], tmp_path / "map.html")
    assert write_map_page(fitted, clusters[0], page) == page
