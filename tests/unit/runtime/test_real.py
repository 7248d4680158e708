"""Proves that RealRuntime is the operating system behind the protocols of runtime.api."""

import asyncio
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from odradek.core.errors import is_exhausted
from odradek.runtime.api import Runtime, Socket
from odradek.runtime.real import RealDisk, RealRuntime


def test_real_runtime_is_a_runtime() -> None:
    runtime: Runtime = RealRuntime()
    assert runtime.clock.now_ms() > 1_600_000_000_000


def test_vectored_writes_and_reads_round_trip(tmp_path: Path) -> None:
    disk = RealDisk()
    fd = disk.open(str(tmp_path / "f"), os.O_RDWR | os.O_CREAT)
    assert disk.pwritev(fd, [b"abc", memoryview(b"def")], 2) == 6
    assert disk.pwrite(fd, b"zz", 0) == 2
    into = bytearray(5), bytearray(10)
    assert disk.preadv(fd, into, 0) == 8
    assert bytes(into[0]) + bytes(into[1][:3]) == b"zzabcdef"
    assert disk.pread(fd, 100, 6) == b"ef"
    assert disk.preadv_nowait(fd, [into[0]], 3) == 5
    disk.fsync(fd)
    disk.fdatasync(fd)
    disk.ftruncate(fd, 3)
    assert disk.size(fd) == 3
    disk.close(fd)


def test_fallocate_reserves_blocks_without_growing_the_file(tmp_path: Path) -> None:
    disk = RealDisk()
    path = str(tmp_path / "f")
    fd = disk.open(path, os.O_RDWR | os.O_CREAT)
    disk.fallocate_keep_size(fd, 0, 1 << 20)
    assert disk.size(fd) == 0
    disk.close(fd)
    with pytest.raises(OSError, match="Bad file descriptor"):
        disk.fallocate_keep_size(fd, 0, 1 << 20)


def test_directories(tmp_path: Path) -> None:
    disk = RealDisk()
    root = str(tmp_path / "a" / "b")
    disk.makedirs(root)
    disk.makedirs(root)
    for name in "zyx":
        disk.close(disk.open(f"{root}/{name}", os.O_WRONLY | os.O_CREAT))
    disk.rename(f"{root}/z", f"{root}/x")
    disk.fsync_dir(root)
    assert disk.listdir(root) == ["x", "y"]
    assert disk.stat(root).is_dir
    assert not disk.stat(f"{root}/x").is_dir
    disk.unlink(f"{root}/x")
    disk.unlink(f"{root}/y")
    disk.rmdir(root)
    assert not disk.exists(root)
    total, usable = disk.usage(str(tmp_path))
    assert 0 < usable <= total


def test_lock_excludes_this_process_and_others(tmp_path: Path) -> None:
    disk = RealDisk()
    path = str(tmp_path / ".lock")
    fd = disk.lock(path)
    with pytest.raises(BlockingIOError):
        disk.lock(path)
    # The JVM locks with fcntl records, which is what lockf does.
    script = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    other = [sys.executable, "-c", script, path]
    refused = subprocess.run(other, capture_output=True, text=True, check=False)
    assert "BlockingIOError" in refused.stderr
    disk.close(fd)
    assert subprocess.run(other, check=False).returncode == 0
    disk.close(disk.lock(path))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_sockets_carry_bytes_both_ways(host: str, tmp_path: Path) -> None:
    async def main() -> bytes:
        runtime = RealRuntime()
        loop = asyncio.get_running_loop()
        try:
            listener = runtime.net.listen(host, 0)
        except OSError:
            pytest.skip(f"no {host} on this machine")
        accepted: asyncio.Future[Socket] = loop.create_future()
        runtime.net.add_reader(listener, lambda: accepted.set_result(listener.accept()))
        client = await runtime.net.connect(host, listener.address[1])
        server = await accepted
        runtime.net.remove_reader(listener)
        listener.close()
        with pytest.raises(BlockingIOError):
            client.recv_into(bytearray(1))
        fd = runtime.disk.open(str(tmp_path / "f"), os.O_RDWR | os.O_CREAT)
        runtime.disk.pwrite(fd, b"..from the file", 0)
        assert server.send(b"one ") == 4
        assert server.sendmsg([b"two ", bytearray(b"three ")]) == 10
        assert server.sendfile(fd, 2, 100) == 13
        server.close()
        received = bytearray()
        ended: asyncio.Future[None] = loop.create_future()
        buffer = bytearray(7)

        def on_readable() -> None:
            count = client.recv_into(buffer)
            received.extend(buffer[:count])
            if count == 0:
                runtime.net.remove_reader(client)
                ended.set_result(None)

        runtime.net.add_reader(client, on_readable)
        await ended
        assert client.peer[1] == listener.address[1]
        client.close()
        assert client.fileno() == -1
        return bytes(received)

    assert asyncio.run(main()) == b"one two three from the file"


def test_connection_refused_is_the_systems_error() -> None:
    async def main() -> None:
        runtime = RealRuntime()
        listener = runtime.net.listen("127.0.0.1", 0)
        port = listener.address[1]
        listener.close()
        with pytest.raises(ConnectionRefusedError):
            await runtime.net.connect("127.0.0.1", port)

    asyncio.run(main())


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no niceness of their own elsewhere")
def test_background_work_gives_way_to_the_loop_and_to_what_it_waits_for() -> None:
    def niceness() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    async def main() -> None:
        runtime = RealRuntime()
        own = niceness()
        assert await runtime.in_background(niceness) > own
        assert await runtime.offload(niceness) == own == niceness()
        runtime.close()

    asyncio.run(main())


def test_offload_leaves_the_loop_thread_and_carries_errors() -> None:
    async def main() -> None:
        runtime = RealRuntime()
        assert await runtime.offload(threading.get_ident) != threading.get_ident()
        assert await runtime.in_background(threading.get_ident) != threading.get_ident()
        assert await runtime.for_quorum(threading.get_ident) != threading.get_ident()
        with pytest.raises(ZeroDivisionError):
            await runtime.offload(lambda: 1 // 0)
        runtime.close()

    asyncio.run(main())


def test_work_for_which_no_thread_can_be_started_fails_and_is_never_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[int] = []
    begun: list[threading.Thread] = []
    start = threading.Thread.start

    def lacking(thread: threading.Thread) -> None:
        if begun:
            raise RuntimeError("can't start new thread")
        begun.append(thread)
        start(thread)

    async def main() -> None:
        runtime = RealRuntime()
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", lacking)
            for offload in (runtime.offload, runtime.in_background, runtime.for_quorum):
                with pytest.raises(OSError, match="cannot start threads") as failure:
                    await offload(lambda: done.append(1))
                assert is_exhausted(failure.value)
        begun[0].join()
        await runtime.offload(lambda: done.append(2))
        runtime.close()

    asyncio.run(main())
    assert done == [2]


def test_the_limit_of_descriptors_is_the_soft_one() -> None:
    assert RealRuntime().descriptor_limit() == min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 1 << 20)
