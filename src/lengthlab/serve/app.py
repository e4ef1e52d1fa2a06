"""What a browser may ask for: the page, its script, its style, and events. Nothing in an address names a file, so that none
leads to one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from ipaddress import ip_address

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lengthlab.report.html_page import script_of, style_of
from lengthlab.serve.live import Live, Reader

POLICY_NAME = "content-security-policy"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
BEAT = 15.0
"""Seconds after which a reader hears that the server is still there."""


def app_of(live: Live, names: Collection[str], any_address: bool = False) -> Guard:
    """The application. `names`: the hosts that it goes by; `any_address`: numbers are its own, too."""

    async def page(request: Request) -> Response:
        return Response(live.page, media_type="text/html")

    async def script(request: Request) -> Response:
        return Response(script_of(live=True), media_type="text/javascript")

    async def style(request: Request) -> Response:
        return Response(style_of(), media_type="text/css")

    async def events(request: Request) -> Response:
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        reader = live.join(asyncio.get_running_loop())
        if reader is None:
            return PlainTextResponse("too many pages are open, or the server is about to end", status_code=503)
        return StreamingResponse(_events(live, reader), media_type="text/event-stream")

    routes = {"/": page, "/page.js": script, "/page.css": style, "/events": events}
    return Guard(Starlette(routes=[Route(path, answer) for path, answer in routes.items()]), names, any_address)


async def _events(live: Live, reader: Reader) -> AsyncIterator[bytes]:
    try:
        yield b"retry: 1000\n\n"
        while True:
            try:
                data = await asyncio.wait_for(reader.queue.get(), BEAT)
            except TimeoutError:
                data = b": still here\n\n"
            if data is None:
                return
            yield data
    finally:
        live.leave(reader)


class Guard:
    """In front of everything: only reading, only under its own name (a page of somebody else's that points its name to this
    machine is refused), and headers that let nothing run but the script of the page.
    """

    def __init__(self, app: ASGIApp, names: Collection[str], any_address: bool = False, policy: str = POLICY) -> None:
        self._app, self._names, self._any_address = app, {name.lower() for name in names}, any_address
        self._headers = [(name.encode(), value.encode()) for name, value in (HEADERS | {POLICY_NAME: policy}).items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *self._headers]
            await send(message)

        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            return
        elif not self._own(scope):
            await PlainTextResponse("this server does not go by that name", status_code=421)(scope, receive, sent)
        elif scope["method"] not in ("GET", "HEAD"):
            refused = PlainTextResponse("this server is for reading", status_code=405, headers={"allow": "GET, HEAD"})
            await refused(scope, receive, sent)
        else:
            await self._app(scope, receive, sent)

    def _own(self, scope: Scope) -> bool:
        hosts = [value.decode("latin-1").lower() for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1:
            return False
        name = host_in(hosts[0])
        return name in self._names or (self._any_address and _is_address(name))


def host_in(header: str) -> str:
    """A host without its port.

    >>> host_in("localhost:8000"), host_in("[::1]:8000"), host_in("127.0.0.1")
    ('localhost', '::1', '127.0.0.1')
    """
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
