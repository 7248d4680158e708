"""What the node says over HTTP: /metrics for Prometheus, /healthz for a supervisor."""

import importlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from odradek.http.idle import Idle
from odradek.http.lags import Lags
from odradek.http.message import Request, Response, text

if TYPE_CHECKING:
    from odradek.http.observed import Observed


class App:
    """Routes of one node."""

    def __init__(self, node: "Observed") -> None:
        self._node = node
        self._lags = Lags(node)
        self._idle = Idle()
        self._routes: dict[str, Callable[[], Awaitable[Response]]] = {
            "/metrics": self._metrics,
            "/healthz": self._health,
        }

    async def __call__(self, request: Request) -> Response:
        route = self._routes.get(request.path)
        if route is None:
            return text(404, "not found: try /metrics or /healthz")
        if request.method not in ("GET", "HEAD"):
            return text(405, "only GET")
        return await route()

    async def _metrics(self) -> Response:
        if not self._node.health.is_ready:
            return text(503, self._node.health.trouble() or "starting")
        # prometheus-client takes a tenth of a second to import: done for the first scrape, beside the loop.
        runtime = self._node.runtime
        await runtime.offload(lambda: importlib.import_module("odradek.http.exposition"))
        from odradek.http.exposition import CONTENT_TYPE, render
        from odradek.http.families import families
        from odradek.http.process_families import process

        of_process = await runtime.offload(process)
        now_ms = runtime.clock.now_ms()
        found = families(self._node, self._lags, self._idle.share(), of_process, now_ms)
        return Response(200, await render(found), CONTENT_TYPE)

    async def _health(self) -> Response:
        trouble = self._node.health.trouble()
        return text(200, "ok") if trouble is None else text(503, trouble)
