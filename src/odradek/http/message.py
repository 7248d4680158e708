"""The little of HTTP/1.1 that a scraper needs: a request head in, a response out. Bytes only, no sockets."""

from typing import NamedTuple

MAX_HEAD_BYTES = 8 * 1024
END_OF_HEAD = b"\r\n\r\n"
REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    413: "Content Too Large",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
PLAIN = "text/plain; charset=utf-8"


class BadRequest(Exception):
    """Bytes that this server does not take; the connection is closed after the answer."""

    def __init__(self, status: int) -> None:
        super().__init__(REASONS[status])
        self.status = status


class Request(NamedTuple):
    method: str
    path: str
    keep_alive: bool


class Response(NamedTuple):
    status: int
    body: bytes
    content_type: str = PLAIN


def text(status: int, message: str) -> Response:
    return Response(status, f"{message}\n".encode())


def parse_head(head: bytes) -> Request:
    """The request line and the two headers that matter, of a head that ended with an empty line."""
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1.") or not words[1].startswith("/"):
        raise BadRequest(400)
    method, target, version = words
    keep_alive = version != "HTTP/1.0"
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon or name != name.strip():
            raise BadRequest(400)
        name, value = name.lower(), value.strip().lower()
        if name == "connection":
            keep_alive = value == "keep-alive" or (keep_alive and value != "close")
        elif (name == "content-length" and value != "0") or name == "transfer-encoding":
            raise BadRequest(413)
    return Request(method, target.partition("?")[0], keep_alive)


def encode(response: Response, *, keep_alive: bool, body: bool = True) -> bytes:
    """The whole answer; a HEAD request gets it without the body."""
    head = (
        f"HTTP/1.1 {response.status} {REASONS[response.status]}\r\n"
        f"Content-Type: {response.content_type}\r\n"
        f"Content-Length: {len(response.body)}\r\n"
        f"Connection: {'keep-alive' if keep_alive else 'close'}\r\n\r\n"
    )
    return head.encode("latin-1") + (response.body if body else b"")
