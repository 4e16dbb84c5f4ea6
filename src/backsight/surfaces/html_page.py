"""A small page of HTML: no script and nothing from another server, so that it works offline."""

from html import escape

from starlette.responses import HTMLResponse

STYLE = """
:root { color-scheme: light dark; --edge: #8885; --soft: #8882; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
code, pre { font: .875rem/1.5 ui-monospace, monospace; }
pre { background: var(--soft); padding: .6rem; overflow-x: auto; border-radius: .3rem; }
details { border: 1px solid var(--edge); border-radius: .3rem; margin: .3rem 0; padding: .3rem .6rem; }
summary { cursor: pointer; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--edge); }
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""The Content-Security-Policy of these pages: they run and load nothing."""


def html_page(title: str, body: str) -> str:
    """A whole page around a body of HTML."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>{body}</body></html>"
    )


def link(address: str, text: str) -> str:
    return f'<a href="{escape(address)}">{escape(text)}</a>'


def page_response(text: str) -> HTMLResponse:
    """The response with a page."""
    return HTMLResponse(text, headers={"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff"})
