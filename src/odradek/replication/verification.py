"""Guards against a write that arrives after the end of its transaction.

Before the first write of a transaction the leader asks the coordinator. Until the answer arrives, the end of
the transaction may be written here, and the answer is out of date. So the leader takes a guard before it
asks, and any end of a transaction of the producer makes the guard invalid.
"""


class Guard:
    """Proof that the coordinator was asked after the last end. Several requests may share one."""

    __slots__ = ("holders", "producer_id")

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.holders = 0


class Verification:
    """The guards of one partition by producer id. They exist only while a request to the coordinator is
    open."""

    __slots__ = ("_guards",)

    def __init__(self) -> None:
        self._guards: dict[int, Guard] = {}

    def __len__(self) -> int:
        return len(self._guards)

    def begin(self, producer_id: int) -> Guard:
        guard = self._guards.get(producer_id)
        if guard is None:
            guard = self._guards[producer_id] = Guard(producer_id)
        guard.holders += 1
        return guard

    def holds(self, guard: Guard) -> bool:
        return self._guards.get(guard.producer_id) is guard

    def release(self, guard: Guard) -> None:
        """The request has been written or refused."""
        assert guard.holders > 0, "released more often than it was taken"
        guard.holders -= 1
        if guard.holders == 0 and self.holds(guard):
            del self._guards[guard.producer_id]

    def ended(self, producer_id: int) -> None:
        self._guards.pop(producer_id, None)
