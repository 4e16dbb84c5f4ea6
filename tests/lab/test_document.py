"""Documents and plots: readable as Markdown and in a browser, and the same for the same numbers."""

from xml.etree import ElementTree

import numpy as np

from backsight.lab.document import (
    Block,
    Bullets,
    Commands,
    GridTable,
    Heading,
    Paragraph,
    Plot,
    as_html,
    as_markdown,
    files_of,
)
from backsight.lab.plots import histogram, log_line_plot, scatter_plot

CURVES = {"fixed": [1.0, 1.1, 1.05], "a < b": [1.0, 0.9, 0.0]}
PLOTS = {
    "line": log_line_plot("Equity", CURVES, x_label="days", y_label="equity"),
    "histogram": histogram("Null", np.linspace(-1, 1, 99), mark=0.5, mark_label="arm", x_label="Sharpe"),
    "flat": histogram("Null", np.zeros(5), mark=0.0, mark_label="arm", x_label="Sharpe"),
    "points": scatter_plot("Sizes", np.array([0.0, 1.0]), np.array([-1.0, 2.0]), x_label="size", y_label="R"),
}
BLOCKS: list[Block] = [
    Heading("Lab", 1),
    Paragraph("No: nothing & nobody.", strong=True),
    Bullets(("`one`", "two")),
    Commands("backsight lab run"),
    GridTable(("arm", "n"), (("a|b", "3"),)),
    Plot("equity.svg", "Equity", PLOTS["line"]),
]


def test_every_plot_is_well_formed_and_has_a_title() -> None:
    for svg in PLOTS.values():
        root = ElementTree.fromstring(svg)
        assert root[0].tag.endswith("title")
        assert "nan" not in svg


def test_markdown_links_plots_and_html_contains_them() -> None:
    assert "![Equity](equity.svg)" in as_markdown(BLOCKS)
    assert "| a\\|b | 3 |" in as_markdown(BLOCKS)
    page = as_html(BLOCKS)
    assert "<polyline" in page
    assert "<li><code>one</code></li>" in page
    assert "nothing &amp; nobody" in page
    assert set(files_of(BLOCKS)) == {"report.md", "report.html", "equity.svg"}
