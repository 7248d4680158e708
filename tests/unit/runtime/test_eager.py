"""The selector that polls before it sleeps: the same events, and no polling when it is idle."""

import asyncio
import selectors
import socket
import time

import pytest

from odradek.runtime import eager
from odradek.runtime.eager import EagerSelector, new_event_loop


@pytest.fixture
def pair():
    a, b = socket.socketpair()
    yield a, b
    a.close()
    b.close()


def made_eager(selector, a, b):
    """Short waits, as of a client that asks again at once."""
    for _ in range(8):
        b.send(b"x")
        assert selector.select(1)
        a.recv(1)
    assert selector._credit >= eager._WORTH


def test_it_finds_what_its_base_finds(pair):
    a, b = pair
    with EagerSelector() as selector, selectors.EpollSelector() as plain:
        for s in (selector, plain):
            s.register(a, selectors.EVENT_READ | selectors.EVENT_WRITE, "a")
        b.send(b"x")
        for _ in range(10):
            assert selector.select(1) == plain.select(1)
        selector.modify(a, selectors.EVENT_READ)
        plain.modify(a, selectors.EVENT_READ)
        made_eager(selector, a, b)
        a.recv(1)
        assert selector.select(0) == plain.select(0) == []
        b.close()
        assert [mask for _, mask in selector.select(1)] == [mask for _, mask in plain.select(1)]


def test_it_returns_at_the_timeout_and_no_earlier(pair):
    a, b = pair
    with EagerSelector() as selector:
        selector.register(a, selectors.EVENT_READ)
        made_eager(selector, a, b)
        began = time.perf_counter()
        assert selector.select(0.02) == []
        assert time.perf_counter() - began >= 0.019


class Counted:
    """An epoll that counts how often it is asked."""

    def __init__(self, epoll):
        self._epoll, self.polls = epoll, 0

    def poll(self, *args):
        self.polls += 1
        return self._epoll.poll(*args)

    def __getattr__(self, name):
        return getattr(self._epoll, name)


def test_long_waits_make_it_sleep_at_once(pair):
    a, b = pair
    with EagerSelector() as selector:
        selector.register(a, selectors.EVENT_READ)
        counted = selector._selector = Counted(selector._selector)
        made_eager(selector, a, b)
        counted.polls = 0
        selector.select(0.005)
        assert counted.polls > 2
        selector.select(0.005)
        counted.polls = 0
        for _ in range(5):
            selector.select(0.005)
        assert counted.polls == 5


def test_a_loop_runs_timers_and_sockets_on_it():
    async def main():
        a, b = socket.socketpair()
        a.setblocking(False)
        loop = asyncio.get_running_loop()
        loop.call_later(0.01, b.send, b"hello")
        data = await asyncio.wait_for(loop.sock_recv(a, 10), 1)
        a.close()
        b.close()
        return data

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        assert runner.run(main()) == b"hello"
