"""One of several brokers in a test's process: with the others it shares planted errors, a log and wires."""

import threading
from collections.abc import Mapping

from odradek.broker.faults import PlantedErrors
from odradek.core.errors import ErrorCode
from odradek.runtime.real import RealRuntime
from odradek.testing.broker import Broker
from odradek.testing.clock import Shift
from odradek.testing.log_tail import LogTail
from odradek.testing.wires import WiredNet, Wires


class SharedErrors(PlantedErrors):
    """Each is taken once, by whichever node is asked first."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()

    def take(self, api_key: int) -> ErrorCode | None:
        with self._lock:
            return super().take(api_key)


class Shared:
    """What the brokers of a cluster have in common."""

    def __init__(self) -> None:
        self.errors = SharedErrors()
        self.log = LogTail()
        self.shift = Shift()
        self.wires = Wires()


class ClusterBroker(Broker):
    def __init__(self, properties: Mapping[str, str], shared: Shared) -> None:
        super().__init__(properties, data_dir=properties["log.dirs"])
        self.errors = shared.errors
        self.shift = shared.shift
        self._wires = shared.wires
        self._log = shared.log
        self._log_prefix = f"[{self.node_id}] "
        self._net = WiredNet(self.node_id, self._wires)

    def make_runtime(self) -> RealRuntime:
        runtime = super().make_runtime()
        runtime.net = self._net = WiredNet(self.node_id, self._wires)
        return runtime

    def obey_cuts(self) -> None:
        """Done when this returns. A paused node does so when it goes on, before anything else."""
        if self.node is None or self._loop is None:
            return
        obeyed = threading.Event()

        def obey() -> None:
            self._net.obey()
            obeyed.set()

        self._loop.call_soon_threadsafe(obey)
        if not self.is_paused:
            obeyed.wait()
