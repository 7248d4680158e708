"""Proves that simulated sockets behave as the kernel's do when peers are slow, gone, silent or rude."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from odradek.sim.world.net import SimListener, SimSocket
from odradek.sim.world.runtime import SimRuntime
from odradek.sim.world.world import World

Body = Callable[[World, SimRuntime, SimRuntime, SimSocket, SimSocket], Awaitable[None]]


async def _accept(runtime: SimRuntime, listener: SimListener) -> SimSocket:
    ready: asyncio.Future[SimSocket] = asyncio.get_running_loop().create_future()
    runtime.net.add_reader(listener, lambda: ready.set_result(listener.accept()))
    sock = await ready
    runtime.net.remove_reader(listener)
    return sock


def _complete(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


async def _readable(runtime: SimRuntime, sock: SimSocket) -> None:
    ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    runtime.net.add_reader(sock, lambda: _complete(ready))
    await ready
    runtime.net.remove_reader(sock)


async def _recv(runtime: SimRuntime, sock: SimSocket, count: int) -> bytes:
    await _readable(runtime, sock)
    buffer = bytearray(count)
    return bytes(buffer[: sock.recv_into(buffer)])


async def _recv_all(runtime: SimRuntime, sock: SimSocket) -> bytes:
    received = b""
    while chunk := await _recv(runtime, sock, 1000):
        received += chunk
    return received


def _connected(body: Body, seed: int = 1, world: World | None = None) -> World:
    world = world or World(seed)

    async def main() -> None:
        server, client = world.runtime("server"), world.runtime("client")
        listener = server.sim_net.listen("", 9092)
        near = await client.sim_net.connect("server", 9092)
        far = await _accept(server, listener)
        listener.close()
        await body(world, client, server, near, far)

    world.run(main())
    assert world.loop.unhandled == []
    return world


def test_bytes_arrive_in_order_however_they_are_cut() -> None:
    data = bytes(range(256)) * 400

    async def body(
        world: World, client: SimRuntime, server: SimRuntime, near: SimSocket, far: SimSocket
    ) -> None:
        faults = world.network.faults
        faults.short_count = faults.fragment = faults.slow = 0.5
        sent = 0
        while sent < len(data):
            sent += near.send(data[sent : sent + 5000])
        near.close()
        assert await _recv_all(server, far) == data
        far.close()

    _connected(body)


def test_addresses_are_what_each_end_sees() -> None:
    async def body(
        world: World, client: SimRuntime, server: SimRuntime, near: SimSocket, far: SimSocket
    ) -> None:
        assert near.peer == ("server", 9092)
        assert far.peer[0] == "client"
        assert client.sim_net.open_sockets() == [("server", 9092)]

    _connected(body)


def test_a_slow_reader_fills_the_buffers_and_frees_them() -> None:
    async def body(
        world: World, client: SimRuntime, server: SimRuntime, near: SimSocket, far: SimSocket
    ) -> None:
        world.network.faults.buffer_bytes = 1000
        assert near.send(b"x" * 5000) == 1000
        with pytest.raises(BlockingIOError):
            near.send(b"x")
        writable = asyncio.get_running_loop().create_future()
        client.net.add_writer(near, lambda: _complete(writable))
        await asyncio.sleep(10)
        assert not writable.done()
        assert len(await _recv(server, far, 400)) == 400
        await writable
        client.net.remove_writer(near)
        assert near.sendmsg([b"y" * 300, b"z" * 300]) == 400

    _connected(body)


def test_one_call_takes_so_many_buffers_and_no_more() -> None:
    async def body(
        world: World, client: SimRuntime, server: SimRuntime, near: SimSocket, far: SimSocket
    ) -> None:
        assert near.sendmsg([b"x"] * 1024) == 1024
        with pytest.raises(OSError, match="too long"):
            near.sendmsg([b"x"] * 1025)

    _connected(body)


def test_nothing_to_read_would_block() -> None:
    async def body(
        world: World, client: SimRuntime, server: SimRuntime, near: SimSocket, far: SimSocket
    ) -> None:
        with pytest.raises(BlockingIOError):
            far.recv_into(bytearray(1))

    _connected(body)


def test_sendfile_sends_from_the_disk() -> None:
    async def body(
        world: World, client: SimRuntime, server: SimRuntime, near: SimSocket, far: SimSocket
    ) -> None:
        fd = server.disk.open("/f", 0o102)
        server.disk.pwrite(fd, b"..file", 0)
        assert far.sendfile(fd, 2, 100) == 4
        assert far.sendfile(fd, 6, 100) == 0
        assert await _recv(client, near, 100) == b"file"

    _connected(body)


def test_closing_with_unread_data_resets_the_peer() -> None:
    async def body(
        world: World, client: SimRuntime, server: SimRuntime, near: SimSocket, far: SimSocket
    ) -> None:
        near.send(b"unread")
        await asyncio.sleep(1)
        far.close()
        await _readable(client, near)
        with pytest.raises(ConnectionResetError):
            near.recv_into(bytearray(1))
        assert near.recv_into(bytearray(1)) == 0
        with pytest.raises(BrokenPipeError):
            near.send(b"x")

    _connected(body)


def test_writing_to_a_closed_peer_is_answered_with_a_reset() -> None:
    async def body(
        world: World, client: SimRuntime, server: SimRuntime, near: SimSocket, far: SimSocket
    ) -> None:
        far.close()
        assert await _recv(client, near, 1) == b""
        assert near.send(b"x") == 1
        await asyncio.sleep(1)
        with pytest.raises(ConnectionResetError):
            near.send(b"x")

    _connected(body)


def test_a_partition_holds_bytes_until_it_heals() -> None:
    async def body(
        world: World, client: SimRuntime, server: SimRuntime, near: SimSocket, far: SimSocket
    ) -> None:
        world.network.partition("client", "server")
        near.send(b"la")
        await asyncio.sleep(100)
        near.send(b"te")
        with pytest.raises(BlockingIOError):
            far.recv_into(bytearray(9))
        world.network.heal()
        await asyncio.sleep(1)
        assert await _recv(server, far, 9) == b"late"

    _connected(body)


def test_a_cut_holds_bytes_of_one_direction_only() -> None:
    async def body(
        world: World, client: SimRuntime, server: SimRuntime, near: SimSocket, far: SimSocket
    ) -> None:
        world.network.cut("server", "client")
        near.send(b"there")
        assert await _recv(server, far, 9) == b"there"
        far.send(b"back")
        await asyncio.sleep(100)
        with pytest.raises(BlockingIOError):
            near.recv_into(bytearray(9))
        world.network.heal()
        assert await _recv(client, near, 9) == b"back"

    _connected(body)


def test_a_sender_who_hears_nothing_back_can_send_no_more_than_its_buffer() -> None:
    """What arrived stays in the sender's buffer until it is acknowledged."""

    async def body(
        world: World, client: SimRuntime, server: SimRuntime, near: SimSocket, far: SimSocket
    ) -> None:
        world.network.faults.buffer_bytes = 1000
        world.network.cut("server", "client")
        assert near.send(b"x" * 2000) == 1000
        assert await _recv(server, far, 2000) == b"x" * 1000
        with pytest.raises(BlockingIOError):
            near.send(b"x")
        writable: asyncio.Future[None] = world.loop.create_future()
        client.net.add_writer(near, lambda: _complete(writable))
        await asyncio.sleep(10)
        assert not writable.done()
        world.network.heal()
        await writable
        client.net.remove_writer(near)
        assert near.send(b"x" * 2000) == 1000

    _connected(body)


@pytest.mark.parametrize("direction", [("client", "server"), ("server", "client")])
def test_a_connection_takes_both_directions(direction: tuple[str, str]) -> None:
    async def body(
        world: World, client: SimRuntime, server: SimRuntime, near: SimSocket, far: SimSocket
    ) -> None:
        listener = server.net.listen("", 9093)
        world.network.cut(*direction)
        with pytest.raises(TimeoutError):
            await client.net.connect("server", 9093)
        with pytest.raises(BlockingIOError):
            listener.accept()

    _connected(body)


def test_a_killed_process_hangs_up() -> None:
    async def body(
        world: World, client: SimRuntime, server: SimRuntime, near: SimSocket, far: SimSocket
    ) -> None:
        far.send(b"last words")
        world.loop.kill(server.process)
        server.sim_net.crash(silently=False)
        assert await _recv_all(client, near) == b"last words"
        with pytest.raises(ConnectionRefusedError):
            await client.net.connect("server", 9092)

    _connected(body)


def test_a_lost_host_is_silent_until_it_is_back_and_refuses() -> None:
    async def body(
        world: World, client: SimRuntime, server: SimRuntime, near: SimSocket, far: SimSocket
    ) -> None:
        world.loop.kill(server.process)
        server.sim_net.crash(silently=True)
        world.network.host_down("server")
        near.send(b"anyone?")
        await asyncio.sleep(100)
        with pytest.raises(BlockingIOError):
            near.recv_into(bytearray(1))
        with pytest.raises(TimeoutError):
            await client.net.connect("server", 9092)
        world.network.host_up("server")
        await _readable(client, near)
        with pytest.raises(ConnectionResetError):
            near.recv_into(bytearray(1))

    _connected(body)


def test_random_resets_break_both_ends() -> None:
    async def body(
        world: World, client: SimRuntime, server: SimRuntime, near: SimSocket, far: SimSocket
    ) -> None:
        world.network.faults.reset = 1.0
        with pytest.raises(ConnectionResetError):
            near.send(b"x")
        with pytest.raises(ConnectionResetError):
            far.recv_into(bytearray(1))

    _connected(body)


def test_callbacks_must_be_removed_before_closing() -> None:
    async def body(
        world: World, client: SimRuntime, server: SimRuntime, near: SimSocket, far: SimSocket
    ) -> None:
        client.net.add_reader(near, lambda: None)
        with pytest.raises(AssertionError, match="remove the reader"):
            near.close()
        client.net.remove_reader(near)
        client.net.remove_reader(near)
        near.close()
        assert near.fileno() == -1
        with pytest.raises(ValueError, match="closed"):
            client.net.add_reader(near, lambda: None)
        with pytest.raises(OSError, match="Bad file"):
            near.send(b"x")

    _connected(body)


def test_a_full_backlog_makes_clients_wait() -> None:
    world = World(1)

    async def main() -> None:
        server, client = world.runtime("server"), world.runtime("client")
        listener = server.sim_net.listen("", 9092, backlog=1)
        await client.net.connect("server", 9092)
        second = asyncio.get_running_loop().create_task(client.sim_net.connect("server", 9092))
        await asyncio.sleep(3)
        assert not second.done()
        listener.accept()
        await second

    world.run(main())


def test_an_address_is_taken_once() -> None:
    world = World(1)

    async def main() -> None:
        server = world.runtime("server")
        listener = server.net.listen("server", 9092)
        with pytest.raises(OSError, match="in use"):
            server.net.listen("0.0.0.0", 9092)
        listener.close()
        with pytest.raises(OSError, match="assign"):
            server.net.listen("elsewhere", 9092)
        assert server.net.listen("", 0).address[1] > 0

    world.run(main())
