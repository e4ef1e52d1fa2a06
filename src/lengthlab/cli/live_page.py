"""`--open` of `demo` and `train`: the live page of their store, in a process of its own, from before the first step."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec

from lengthlab.cli.pages import say
from lengthlab.errors import require
from lengthlab.store import Store


@contextmanager
def live_page(store: str, wanted: bool) -> Iterator[None]:
    """While the work within goes on, and after it until the user ends it; work that fails ends it at once."""
    if not wanted:
        yield
        return
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    require(not missing, f"--open needs {' and '.join(missing)}: pip install 'lengthlab[serve]'")
    Store(store).prepare()
    server = subprocess.Popen([sys.executable, "-m", "lengthlab", "serve", store, "--port", "0", "--open"])
    try:
        yield
        if server.poll() is None:
            say("the page stays until Ctrl-C", err=True)
            with suppress(KeyboardInterrupt):
                server.wait()
    finally:
        server.terminate()
        server.wait()
