"""Published studies where they are served: the pages that `lengthlab report` writes, made once, kept in memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lengthlab.report.html_page import policy_of, script_of, style_of
from lengthlab.report.study_site import INDEX
from lengthlab.serve.app import Guard


def site_app(pages: Mapping[str, bytes], names: Collection[str], any_address: bool = False) -> Guard:
    """`pages` by the names under which they are asked for, the index also without one; no address leads to a file."""

    def route(path: str, page: bytes) -> Route:
        async def answer(request: Request) -> Response:
            return Response(page, media_type="text/html")

        return Route(path, answer)

    routes = [route("/", pages[INDEX]), *(route(f"/{name}", page) for name, page in pages.items())]
    policy = policy_of(script_of(), style_of()) + "; frame-ancestors 'none'"
    return Guard(Starlette(routes=routes), names, any_address, policy)
