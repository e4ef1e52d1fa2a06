"""A server on this machine, until it is told to end."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from ipaddress import ip_address
from types import FrameType

import uvicorn

from lengthlab.errors import LabError
from lengthlab.serve.app import app_of
from lengthlab.serve.live import Live
from lengthlab.serve.places import Places

LOCAL = ("localhost", "127.0.0.1", "::1")


class _Server(uvicorn.Server):
    """Readers keep their connection open, so they are told to go before a server waits for the last to leave."""

    def __init__(self, config: uvicorn.Config, live: Live) -> None:
        super().__init__(config)
        self._live = live

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._live.stop()
        super().handle_exit(sig, frame)


def serve(names: Sequence[str], host: str, port: int, command: str = "", ready: Callable[[str], None] = print) -> None:
    """The page of runs at `host` and `port` (0: one that is free); `ready` gets its address once it can be asked for."""
    places = Places(names)
    listening = _listen(host, port)
    live = Live(places, command)
    app = app_of(live, _names(host), _everywhere(host))
    config = uvicorn.Config(
        app, log_level="error", access_log=False, lifespan="off", server_header=False, timeout_graceful_shutdown=2
    )
    live.start()
    try:
        shown = f"[{host}]" if ":" in host else host
        ready(f"http://{'127.0.0.1' if _everywhere(host) else shown}:{listening.getsockname()[1]}/")
        with suppress(KeyboardInterrupt):  # which is how it is meant to end
            _Server(config, live).run(sockets=[listening])
    finally:
        live.stop()
        listening.close()


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=128)
    except (OSError, OverflowError, UnicodeError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise LabError(f"cannot listen at {host}, port {port}: {said}; name another --port (0: any that is free)") from None


def _everywhere(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False


def _names(host: str) -> set[str]:
    """What the machine goes by; from elsewhere only where the server listens to elsewhere."""
    near = host in LOCAL
    return {*LOCAL, host, *(() if near else (socket.gethostname(), socket.getfqdn()))}
