"""The HTTP heads that http/message.py takes and refuses."""

import pytest

from odradek.http.message import BadRequest, Request, Response, encode, parse_head


@pytest.mark.parametrize(
    ("head", "request_"),
    [
        (b"GET /metrics HTTP/1.1", Request("GET", "/metrics", True)),
        (b"GET /metrics?x=1 HTTP/1.1\r\nHost: a", Request("GET", "/metrics", True)),
        (b"GET / HTTP/1.0", Request("GET", "/", False)),
        (b"GET / HTTP/1.0\r\nConnection: Keep-Alive", Request("GET", "/", True)),
        (b"GET / HTTP/1.1\r\nconnection: close", Request("GET", "/", False)),
        (b"POST / HTTP/1.1\r\nContent-Length: 0", Request("POST", "/", True)),
    ],
)
def test_heads_are_understood(head, request_):
    assert parse_head(head) == request_


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"", 400),
        (b"GET /", 400),
        (b"GET / HTTP/2", 400),
        (b"GET http://other/ HTTP/1.1", 400),
        (b"GET / HTTP/1.1\r\nno colon", 400),
        (b"GET / HTTP/1.1\r\n folded: header", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 5", 413),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked", 413),
    ],
)
def test_what_is_no_request_is_refused(head, status):
    with pytest.raises(BadRequest) as refused:
        parse_head(head)
    assert refused.value.status == status


def test_an_answer_says_its_length_even_without_its_body():
    response = Response(200, b"four")
    assert encode(response, keep_alive=True).endswith(b"Connection: keep-alive\r\n\r\nfour")
    assert b"Content-Length: 4\r\n" in encode(response, keep_alive=False, body=False)
    assert encode(response, keep_alive=False, body=False).endswith(b"close\r\n\r\n")
