"""A share as a small bar beside its number, inside a table."""

from markupsafe import Markup

from backsight.surfaces.web.charts.drawing import element


def small_bar(value: float | None, *, largest: float = 1.0, width: int = 60) -> Markup:
    """A bar as long as the share of the largest value."""
    if value is None or largest <= 0:
        return Markup("")
    length = max(0.0, min(1.0, value / largest)) * width
    parts = [
        element("rect", x=0, y=3, width=width, height=6, class_="track"),
        element("rect", x=0, y=3, width=length, height=6, class_="filled"),
    ]
    return element("svg", parts, viewBox=f"0 0 {width} 12", width=width, height=12, class_="bar", aria_hidden="true")
