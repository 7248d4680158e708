"""Guards against a write that arrives after the end of the transaction it belongs to.

Before the first write of a transaction its coordinator is asked. While the answer is on its way the end of
the transaction may be written here, and the answer be out of date: a guard taken before the question is void
after any end.
"""


class Guard:
    """Proof that a question to the coordinator was asked after the last end."""

    __slots__ = ()


class Verification:
    """The guards of one partition, by producer id; none but while a question is under way."""

    __slots__ = ("_guards",)

    def __init__(self) -> None:
        self._guards: dict[int, Guard] = {}

    def begin(self, producer_id: int) -> Guard:
        return self._guards.setdefault(producer_id, Guard())

    def holds(self, producer_id: int, guard: Guard) -> bool:
        return self._guards.get(producer_id) is guard

    def ended(self, producer_id: int) -> None:
        self._guards.pop(producer_id, None)
