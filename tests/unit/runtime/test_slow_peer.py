"""A peer that does not read: what the kernel takes for it is bounded."""

import contextlib
import socket

from odradek.runtime.real import UNSENT_BYTES, RealSocket


def test_the_kernel_takes_little_for_a_peer_that_does_not_read() -> None:
    with socket.socket() as listener, socket.socket() as peer:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.connect(listener.getsockname())
        accepted = RealSocket(*listener.accept())
        taken = 0
        with contextlib.suppress(BlockingIOError):
            while taken < 64 << 20:
                taken += accepted.send(bytes(1 << 20))
        accepted.close()
    assert UNSENT_BYTES <= taken < 2 << 20
