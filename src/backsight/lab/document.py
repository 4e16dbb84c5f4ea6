"""A document of headings, paragraphs, tables and plots, written as Markdown or as one HTML page."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; level 1 is the title."""

    text: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One paragraph of text; a strong one stands out."""

    text: str
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list of sentences."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Commands:
    """Lines that are typed or printed as they are."""

    text: str


@dataclass(frozen=True, slots=True)
class GridTable:
    """A table: the first column names the row."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot: the name of its file, what it shows, and its SVG."""

    file: str
    caption: str
    svg: str


Block = Heading | Paragraph | Bullets | Commands | GridTable | Plot

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 80rem; margin: 2rem auto; padding: 0 1rem; color: #1b1b1b; }
table { border-collapse: collapse; display: block; overflow-x: auto; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .5rem; border-bottom: 1px solid #dddddd; text-align: right; font-size: .9rem; }
td { white-space: nowrap; } th { vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; }
pre { background: #f4f4f4; padding: .8rem; overflow-x: auto; }
code { background: #f4f4f4; padding: 0 .2em; }
figure { display: inline-block; width: 36rem; max-width: 100%; margin: 1rem 1rem 1rem 0; vertical-align: top; }
svg { max-width: 100%; height: auto; } figcaption { font-size: .9rem; color: #555555; }
.verdict { font-size: 1.15rem; border-left: 4px solid #0072b2; padding: .4rem 1rem; background: #f2f7fb; }
"""


def as_markdown(blocks: Sequence[Block]) -> str:
    """The document as Markdown; plots are links to their files.

    >>> print(as_markdown([Heading("Lab", 1), GridTable(("arm", "n"), (("fixed", "3"),))]))
    # Lab
    <BLANKLINE>
    | arm | n |
    |---|---|
    | fixed | 3 |
    <BLANKLINE>
    """
    return "\n\n".join(_markdown(block) for block in blocks) + "\n"


def _markdown(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {text}"
        case Paragraph(text, strong):
            return f"**{text}**" if strong else text
        case Bullets(items):
            return "\n".join(f"- {item}" for item in items)
        case Commands(text):
            return f"```\n{text}\n```"
        case GridTable(header, rows):
            lines = [header, tuple("---" for _ in header), *rows]
            table = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
            table[1] = "|" + "---|" * len(header)
            return "\n".join(table)
        case Plot(file, caption, _):
            return f"![{caption}]({file})"


def as_html(blocks: Sequence[Block]) -> str:
    """The document as one page that needs no other file.

    >>> "<h1>1 &lt; 2</h1>" in as_html([Heading("1 < 2", 1)])
    True
    """
    title = next((block.text for block in blocks if isinstance(block, Heading)), "")
    body = "\n".join(_html(block) for block in blocks)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>{STYLE}</style>\n</head>\n'
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _html(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"<h{level}>{escape(text)}</h{level}>"
        case Paragraph(text, strong):
            return f'<p class="verdict">{_inline(text)}</p>' if strong else f"<p>{_inline(text)}</p>"
        case Bullets(items):
            return "<ul>" + "".join(f"<li>{_inline(item)}</li>" for item in items) + "</ul>"
        case Commands(text):
            return f"<pre>{escape(text)}</pre>"
        case GridTable(header, rows):
            head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
            lines = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
            return f"<table><tr>{head}</tr>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"
        case Plot(_, caption, svg):
            return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def _inline(text: str) -> str:
    """A sentence as HTML: names between backticks as code.

    >>> _inline("`fixed` < 1")
    '<code>fixed</code> &lt; 1'
    """
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def files_of(blocks: Sequence[Block]) -> Mapping[str, str]:
    """The files of the document: the report as Markdown and as HTML, and its plots."""
    plots = {block.file: block.svg for block in blocks if isinstance(block, Plot)}
    return {"report.md": as_markdown(blocks), "report.html": as_html(blocks), **plots}
