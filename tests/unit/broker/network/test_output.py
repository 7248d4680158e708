"""The output queue on a socket that takes what it likes and a disk that may be cold."""

import asyncio
import math
import tracemalloc
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import pytest

from odradek.broker.network.output import CHUNK_BYTES, SENDFILE_FROM_BYTES, TURN_PIECES, OutputQueue
from odradek.broker.network.sending import TURN_BYTES, SendingTurns
from odradek.testing.inline import done_at_once


class Slice(NamedTuple):
    fd: int
    position: int
    size: int
    cuts: Sequence[int] = ()
    cuts_seen: int = 0


class World:
    """Socket, net and disk in one: `room` bytes fit into the socket, `cold` files are not cached."""

    def __init__(self, files=(), room=1 << 40, cold=()):
        self.files, self.room, self.cold = dict(files), room, set(cold)
        self.sent, self.calls, self.writer = b"", [], None
        self.disk = self.net = self
        self.soon = []
        self.turns = SendingTurns(self.soon_append)

    def soon_append(self, callback):
        self.soon.append(callback)

    def _take(self, data, how):
        if self.room == 0:
            raise BlockingIOError
        taken = bytes(data[: self.room])
        self.room -= len(taken)
        self.sent += taken
        self.calls.append((how, len(taken)))
        return len(taken)

    def send(self, data):
        return self._take(data, "send")

    def sendmsg(self, buffers):
        return self._take(b"".join(buffers), "sendmsg")

    def sendfile(self, fd, offset, count):
        return self._take(self.files[fd][offset : offset + count], "sendfile")

    def pread(self, fd, count, offset):
        return self.files[fd][offset : offset + count]

    def preadv_nowait(self, fd, buffers, offset):
        if fd in self.cold:
            raise BlockingIOError
        (buffer,) = buffers
        data = self.files[fd][offset : offset + len(buffer)]
        buffer[: len(data)] = data
        return len(data)

    def add_writer(self, sock, callback):
        self.writer = callback

    def remove_writer(self, sock):
        self.writer = None

    def offload(self, work):
        return done_at_once(work, carried=OSError)

    def queue(self):
        self.drained, self.moved, self.errors = 0, 0, []
        return OutputQueue(self, self, self.turns, self._on_moving, self._on_drained, self.errors.append)

    def turn(self):
        """One turn of the loop; whether anything is left to do."""
        soon, self.soon = self.soon, []
        for callback in soon:
            callback()
        if self.writer is not None and self.room:
            self.writer()
        return bool(self.soon) or self.writer is not None

    def _on_moving(self):
        self.moved += 1

    def _on_drained(self):
        self.drained += 1


DATA = bytes(i % 251 for i in range(3 * CHUNK_BYTES))


def test_bytes_and_small_slices_leave_in_one_call_and_in_order():
    world = World({1: DATA})
    out = world.queue()
    out.push(b"head")
    out.push_all([Slice(1, 10, 1000)])
    out.push(b"tail")
    assert out.flush()
    assert world.sent == b"head" + DATA[10:1010] + b"tail"
    assert [how for how, _ in world.calls] == ["sendmsg"]


def test_large_slices_go_by_sendfile_between_their_neighbours():
    world = World({1: DATA})
    out = world.queue()
    out.push(b"head")
    out.push_all([Slice(1, 0, SENDFILE_FROM_BYTES)])
    out.push(b"tail")
    assert out.flush()
    assert world.sent == b"head" + DATA[:SENDFILE_FROM_BYTES] + b"tail"
    assert [how for how, _ in world.calls] == ["send", "sendfile", "send"]


def test_a_full_socket_is_continued_at_the_very_byte():
    for first_room in (1, 3, 5, 4 + 999, 4 + 1000 + 2, 1 << 20):
        world = World({1: DATA}, room=first_room)
        out = world.queue()
        out.push(b"head")
        out.push_all([Slice(1, 0, 1000)])
        out.push_all([Slice(1, 0, 2 * CHUNK_BYTES)])
        out.push(b"tail")
        assert not out.flush()
        assert world.writer is not None
        while world.writer is not None:
            world.room += 333_333
            world.writer()
        assert world.sent == b"head" + DATA[:1000] + DATA[: 2 * CHUNK_BYTES] + b"tail"
        assert world.drained == 1


def test_cold_data_is_read_in_the_pool_and_then_sent():
    async def run():
        world = World({1: DATA}, cold={1})
        out = world.queue()
        out.push(b"head")
        out.push_all([Slice(1, 0, len(DATA))])
        out.push(b"tail")
        assert not out.flush()
        for _ in range(20):
            await asyncio.sleep(0)
        assert world.sent == b"head" + DATA + b"tail"
        assert not any(how == "sendfile" for how, _ in world.calls)
        assert world.drained == 1

    asyncio.run(run())


def test_all_queues_share_what_is_sent_in_one_turn():
    world = World({1: DATA})
    queues = [world.queue() for _ in range(12)]
    for queue in queues:
        queue.push_all([Slice(1, 0, len(DATA))])
        queue.flush()
    sent = [len(world.sent)]
    while world.turn():
        sent.append(len(world.sent))
    each_turn = [after - before for before, after in pairwise([0, *sent])]
    assert max(each_turn) <= TURN_BYTES + CHUNK_BYTES
    assert not any(queues)


def test_short_replies_do_not_wait_for_a_turn():
    world = World({1: DATA})
    world.turns.charge(TURN_BYTES, 0)
    out, large = world.queue(), world.queue()
    large.push_all([Slice(1, 0, len(DATA))])
    assert not large.flush()
    out.push_all([b"head", Slice(1, 0, 1000), b"tail"])
    assert out.flush()


def test_a_file_shorter_than_its_slice_is_an_error_not_a_hang():
    for size in (100, SENDFILE_FROM_BYTES):
        world = World({1: b""})
        out = world.queue()
        out.push_all([Slice(1, 0, size)])
        out.flush()
        assert len(world.errors) == 1


def test_closing_while_the_disk_is_read_sends_nothing_more():
    async def run():
        world = World({1: DATA}, cold={1})
        out = world.queue()
        out.push_all([Slice(1, 0, len(DATA))])
        out.flush()
        out.close()
        for _ in range(5):
            await asyncio.sleep(0)
        assert world.sent == b""

    asyncio.run(run())


def test_many_small_pieces_are_sent_in_turns():
    world = World({1: DATA})
    out = world.queue()
    pieces = [piece for i in range(500) for piece in (b"%3d" % i, Slice(1, i, 7))]
    out.push_all(pieces)
    assert not out.flush()
    assert len(world.sent) == TURN_PIECES * 5
    turns = 1
    while world.turn():
        turns += 1
    assert turns == math.ceil(len(pieces) / TURN_PIECES)
    assert world.sent == b"".join(b"%3d" % i + DATA[i : i + 7] for i in range(500))


@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize("size", [SENDFILE_FROM_BYTES - 1, len(DATA) // 3])
def test_a_peer_that_does_not_read_takes_no_memory(size, cold):
    async def run():
        world = World({1: DATA}, room=1000, cold={1} if cold else ())
        out = world.queue()
        out.push_all([Slice(1, i * size, size) for i in range(3)])
        tracemalloc.start()
        try:
            out.flush()
            for _ in range(20):
                await asyncio.sleep(0)
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert len(world.sent) == 1000
        assert held < 8_000
        while len(world.sent) < 3 * size:
            world.room += size // 2
            if world.writer is not None:
                world.writer()
            await asyncio.sleep(0)
        assert world.sent == DATA[: 3 * size]
        assert world.drained == 1

    asyncio.run(run())


@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize("size", [1000, SENDFILE_FROM_BYTES])
def test_what_a_truncation_has_cut_is_never_sent(size, cold):
    """The peer has read 10 bytes of the slice. Then other bytes are in its place."""

    async def run(cut):
        cuts = [0]  # a cut before the slice was made does not matter
        world = World({1: DATA}, room=14, cold={1} if cold else ())
        out = world.queue()
        out.push_all([b"head", Slice(1, 100, size, cuts, 1), b"tail"])
        out.flush()
        for _ in range(5):
            await asyncio.sleep(0)
        assert world.sent == b"head" + DATA[100:110]
        cuts.append(cut)
        world.files[1] = DATA[:cut] + bytes(len(DATA) - cut)
        world.room = 1 << 40
        world.writer()
        for _ in range(5):
            await asyncio.sleep(0)
        return world

    for cut in (0, 99, 100 + size - 1):
        world = asyncio.run(run(cut))
        assert world.sent == b"head" + DATA[100:110]
        assert ["truncated" in str(error) for error in world.errors] == [True]
    world = asyncio.run(run(100 + size))
    assert world.sent == b"head" + DATA[100 : 100 + size] + b"tail" and world.errors == []


def test_a_truncation_while_the_disk_is_read_is_noticed():
    async def run():
        cuts = []
        world = World({1: DATA}, cold={1})
        offload = world.offload

        def cut_meanwhile(work):
            done = offload(work)
            cuts.append(5)
            return done

        world.offload = cut_meanwhile
        out = world.queue()
        out.push_all([Slice(1, 0, 1000, cuts, 0)])
        out.flush()
        for _ in range(5):
            await asyncio.sleep(0)
        assert world.sent == b"" and len(world.errors) == 1

    asyncio.run(run())
