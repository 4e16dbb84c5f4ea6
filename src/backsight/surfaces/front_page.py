"""The page at /: what this server offers, with links."""

from html import escape

from backsight import __version__
from backsight.surfaces.html_page import html_page, link


def front_page(*, mcp: bool) -> str:
    """The page; `mcp` says whether MCP is served."""
    entries = {
        link("/api/v1/docs", "/api/v1/docs"): "the REST API: every operation, with examples and links",
        link("/api/v1/openapi.json", "/api/v1/openapi.json"): "the same for clients and tools (OpenAPI)",
        link("/api/v1/admin/status?detail=brief", "/api/v1/admin/status"): "what the store holds",
        "<code>/mcp</code>": "MCP, for agents: add this address to an MCP client"
        if mcp
        else "MCP is not served; its package is not installed",
        link("/health", "/health"): "whether the server can read its store",
        link("/metrics", "/metrics"): "counters of requests, for Prometheus",
    }
    rows = "".join(f"<tr><td>{address}</td><td>{escape(text)}</td></tr>" for address, text in entries.items())
    return html_page(
        "Backsight",
        f"<h1>Backsight {escape(__version__)}</h1><p>The memory of AI trading agents. This server offers:</p>"
        f"<table>{rows}</table>",
    )
