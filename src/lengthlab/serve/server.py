"""A server on this machine, until it is told to end."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from ipaddress import ip_address
from types import FrameType

import uvicorn

from lengthlab.errors import LabError, require
from lengthlab.report.sources import only_published, published_folders
from lengthlab.report.study_site import read_site, site_files
from lengthlab.serve.app import Guard, app_of
from lengthlab.serve.live import Live
from lengthlab.serve.places import Places
from lengthlab.serve.site import site_app

LOCAL = ("localhost", "127.0.0.1", "::1")


class _Server(uvicorn.Server):
    """Readers keep their connection open, so they are told to go before a server waits for the last to leave."""

    def __init__(self, config: uvicorn.Config, stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._stop = stop

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._stop()
        super().handle_exit(sig, frame)


def serve(names: Sequence[str], host: str, port: int, command: str = "", ready: Callable[[str], None] = print) -> None:
    """The page of runs, or of published rows, at `host` and `port` (0: one that is free); `ready` gets its address once it can
    be asked for.
    """
    rows = only_published(names)
    if rows:
        site = read_site(rows)
        require(bool(site.studies), f"no rows of a study that is known here in {', '.join(names)}")
        app = site_app(site_files(site, command), _names(host), _everywhere(host))
        _answer(app, host, port, ready)
        return
    mixed = [name for name in names if published_folders(name)]
    require(
        not mixed, f"{', '.join(mixed)} has published rows: serve them by themselves, or write one page with `lengthlab report`"
    )
    places = Places(names)
    live = Live(places, command)
    try:
        _answer(app_of(live, _names(host), _everywhere(host)), host, port, ready, live.start, live.stop)
    finally:
        live.stop()


def _answer(
    app: Guard,
    host: str,
    port: int,
    ready: Callable[[str], None],
    start: Callable[[], None] = lambda: None,
    stop: Callable[[], None] = lambda: None,
) -> None:
    """`start` is called once it listens, `stop` when it is told to end."""
    listening = _listen(host, port)
    config = uvicorn.Config(
        app, log_level="error", access_log=False, lifespan="off", server_header=False, timeout_graceful_shutdown=2
    )
    try:
        start()
        shown = f"[{host}]" if ":" in host else host
        ready(f"http://{'127.0.0.1' if _everywhere(host) else shown}:{listening.getsockname()[1]}/")
        with suppress(KeyboardInterrupt):  # which is how it is meant to end
            _Server(config, stop).run(sockets=[listening])
    finally:
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
