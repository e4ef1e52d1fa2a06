"""HTML and SVG, written so that nothing of a user's can become more than text: what is not `Markup` is escaped."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape
from typing import Any

from lengthlab.report.page import visible

EMPTY = ("br", "col", "circle", "line", "link", "meta", "path", "rect")
"""Elements that nothing stands in; those of SVG have to say so."""
INERT = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


class Markup(str):
    """A text that is markup already."""


def tag(name: str, /, *content: str, **attributes: str | float | bool | None) -> Markup:
    """An element. `class_` and `for_` are written without the underscore, `data_x` is `data-x`; an attribute that is None or
    False is left out.

    >>> tag("td", "a < b", class_="good", tabindex=0)
    '<td class="good" tabindex="0">a &lt; b</td>'
    """
    head = "".join([f"<{name}", *(_attribute(key, value) for key, value in attributes.items())])
    return Markup(f"{head}/>" if name in EMPTY else f"{head}>{joined(content)}</{name}>")


def joined(content: Iterable[str]) -> Markup:
    """Texts are escaped, and shown without what would act on their reader."""
    return Markup("".join(each if isinstance(each, Markup) else escape(visible(each), quote=False) for each in content))


def _attribute(key: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(visible(_written(value)))}"'


def _written(value: str | float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def embedded(data: Any) -> Markup:
    r"""Data inside a page, as JSON in which no character ends the element that it stands in.

    >>> embedded({"name": "</script>"})
    '{"name":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    for character, written in INERT.items():
        text = text.replace(character, written)
    return Markup(text)
