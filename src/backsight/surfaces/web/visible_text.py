r"""Untrusted text on a page: nothing in it is markup, and no character of it is hidden.

>>> shown("pay\u202e\u200b <b>")
'pay⟨U+202E⟩⟨U+200B⟩ <b>'
"""

from functools import cache
from unicodedata import category

from markdown_it import MarkdownIt
from markupsafe import Markup, escape

LINE_CONTROLS = frozenset("\n\t")
HIDDEN = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
INVISIBLE = frozenset(
    "\u00a0\u034f\u115f\u1160\u17b4\u17b5\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009"
    "\u200a\u202f\u205f\u2800\u3000\u3164\uffa0"
)
"""Letters and signs that look like nothing, or like a space."""


def shown(text: str) -> str:
    """The text with a mark in the place of each character that a reader would not see."""
    return text if text.isascii() and text.isprintable() else "".join(map(_visible, text))


def _visible(character: str) -> str:
    hidden = category(character) in HIDDEN or character in INVISIBLE or _selects_variant(character)
    return f"⟨U+{ord(character):04X}⟩" if hidden and character not in LINE_CONTROLS else character


def _selects_variant(character: str) -> bool:
    return "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"


def finalize(value: object) -> object:
    """What a template writes for a value: Markup as it is, other text with its hidden characters shown."""
    if isinstance(value, Markup):
        return value
    if value is None:
        return "–"
    return shown(str(value))


def as_typed(text: str) -> Markup:
    """Text for the value of a form field: every character as it is, so that sending the form changes nothing."""
    return escape(text)


@cache
def _markdown() -> MarkdownIt:
    """Markdown without HTML, images and links: a link of a document may lead anywhere."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    return parser.disable(["image", "link", "autolink", "html_block", "html_inline", "reference"])


def markdown(text: str) -> Markup:
    """Text as headings, lists and tables; HTML in it is text.

    >>> markdown("# Rules <b>\\n[x](javascript:alert(1))")
    Markup('<h3>Rules &lt;b&gt;</h3>\\n<p>[x](javascript:alert(1))</p>\\n')
    >>> markdown("### Sizing\\n# Rules\\n### Exits")
    Markup('<h3>Sizing</h3>\\n<h3>Rules</h3>\\n<h4>Exits</h4>\\n')
    """
    tokens, level = _markdown().parse(shown(text)), 2
    for token in tokens:
        if token.type == "heading_open":  # below the headings of the page, and never a level too deep
            level = min(6, int(token.tag[1]) + 2, level + 1)
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{level}"
    return Markup(_markdown().renderer.render(tokens, _markdown().options, {}))  # noqa: S704 (html is off)
