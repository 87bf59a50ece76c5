# SPDX-License-Identifier: Apache-2.0
"""origin.py - the lab's servers, on every address of the internet namespace.

port   speaks
80     HTTP/1.1, and WebSocket at /ws
8080   HTTP/1.1
443    HTTPS with the lab's certificate, and WebSocket at /ws
8443   HTTPS
7      echo, half-close kept: the FIN is answered after the last byte
22     server first: a banner, then echo
5432   server first, a second after the connection
9      reads everything and says how much when the peer has finished
19     sends "N\\n" worth of zeros as asked by the first line, then closes

Each connection, and each HTTP request, is written to a log as one JSON line
with the address that it came in for.
"""
import argparse
import asyncio
import base64
import hashlib
import json
import os
import ssl
import sys

LOG = None
WWW = None
RELEASE = asyncio.Event()


def note(**what):
    LOG.write(json.dumps(what) + "\n")
    LOG.flush()


def where(writer):
    sock = writer.get_extra_info("sockname")
    tls = writer.get_extra_info("ssl_object")
    return {"addr": sock[0], "port": sock[1],
            "sni": getattr(tls, "lab_sni", None) if tls else None}


async def read_head(reader):
    raw = await reader.readuntil(b"\r\n\r\n")
    lines = raw.decode("latin-1").split("\r\n")
    fields = [line.split(":", 1) for line in lines[1:] if line]
    return lines[0], [(k, v.strip()) for k, v in fields], raw


def field(fields, name):
    for key, value in fields:
        if key.lower() == name:
            return value
    return None


async def read_body(reader, fields):
    length = field(fields, "content-length")
    if length is not None:
        return await reader.readexactly(int(length))
    body = b""
    if (field(fields, "transfer-encoding") or "").lower() == "chunked":
        while True:
            size = int((await reader.readline()).split(b";")[0], 16)
            chunk = await reader.readexactly(size)
            await reader.readline() if size else None
            if size == 0:
                while (await reader.readline()).strip():
                    pass
                return body
            body += chunk
    return body


def plain(status, body, extra=(), close=False):
    head = ["HTTP/1.1 " + status, "Content-Type: text/plain",
            "Content-Length: %d" % len(body)]
    head += ["%s: %s" % pair for pair in extra]
    if close:
        head.append("Connection: close")
    return ("\r\n".join(head) + "\r\n\r\n").encode("latin-1") + body


async def websocket(reader, writer, fields):
    key = field(fields, "sec-websocket-key") or ""
    accept = base64.b64encode(hashlib.sha1(
        (key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest())
    writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                 b"Connection: Upgrade\r\nSec-WebSocket-Accept: " + accept
                 + b"\r\n\r\n\x81\x05hello")   # a frame in the same segment
    while True:
        head = await reader.readexactly(2)
        size = head[1] & 127
        mask = await reader.readexactly(4)
        data = bytes(b ^ mask[i % 4]
                     for i, b in enumerate(await reader.readexactly(size)))
        writer.write(bytes([head[0], size]) + data)
        await writer.drain()
        if head[0] & 15 == 8:
            return


def static(path):
    """A file below the lab's www directory, or None."""
    name = os.path.realpath(os.path.join(WWW, path.lstrip("/")))
    if not name.startswith(WWW + "/") or not os.path.isfile(name):
        return None
    with open(name, "rb") as found:
        return found.read()


async def answer(path, method, fields, body, reader, writer, raw):
    """One HTTP answer; False to close behind it."""
    if path.startswith("/files/"):
        data = static(path[7:])
        if data is None:
            writer.write(plain("404 Not Found", b"no such file\n"))
        else:
            writer.write(plain("200 OK", b"" if method == "HEAD" else data))
    elif path == "/ws":
        await websocket(reader, writer, fields)
        return False
    elif path == "/redirect-metadata":
        writer.write(plain("302 Found", b"", [
            ("Location", "http://169.254.169.254/latest/meta-data/")]))
    elif path == "/redirect-denied":
        writer.write(plain("302 Found", b"", [
            ("Location", "http://denied.example.net/")]))
    elif path == "/head":
        writer.write(plain("200 OK", raw))
    elif path == "/unasked-101":
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n"
                     b"Connection: Upgrade\r\n\r\nopaque")
        return False
    elif path == "/truncated":
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + b"x" * 50)
        return False
    elif path == "/until-close":
        writer.write(b"HTTP/1.0 200 OK\r\n\r\nto the end")
        return False
    elif path == "/chunked":
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                     b"5\r\nhello\r\n0\r\nX-Trailer: yes\r\n\r\n")
    elif path == "/events":
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                     b"Transfer-Encoding: chunked\r\n\r\n")
        for i in range(3):
            writer.write(b"8\r\ndata: %d\n\r\n" % i)
            await writer.drain()
            # The reader says when it has seen the event: no clock needed.
            if await reader.read(1) == b"":
                return False
        writer.write(b"0\r\n\r\n")
        return False
    elif path == "/held":
        # The rest comes once somebody has asked for /release.
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                     b"5\r\nfirst\r\n")
        await writer.drain()
        await RELEASE.wait()
        RELEASE.clear()
        writer.write(b"4\r\nlast\r\n0\r\n\r\n")
    elif path == "/mute":
        await reader.read()     # no answer, until the other side leaves
        return False
    elif path == "/release":
        RELEASE.set()
        writer.write(plain("200 OK", b"released\n"))
    elif path.startswith("/bytes/"):
        size = int(path.split("/")[2])
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        if method != "HEAD":
            block = b"\0" * 65536
            while size > 0:
                writer.write(block[:min(size, 65536)])
                size -= 65536
                await writer.drain()
    elif path == "/204":
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
    elif path == "/304":
        writer.write(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n")
    elif path == "/sha256":
        writer.write(plain("200 OK", hashlib.sha256(body).hexdigest().encode()))
    elif path == "/early-413":
        writer.write(plain("413 Content Too Large", b"too large\n", close=True))
        return False
    else:
        text = b"lab %s %s host=%s\n" % (
            method.encode(), path.encode(), (field(fields, "host") or "").encode())
        writer.write(plain("200 OK", b"" if method == "HEAD" else text))
    return (field(fields, "connection") or "").lower() != "close"


async def http(reader, writer):
    try:
        while True:
            line, fields, raw = await read_head(reader)
            method, target, version = line.split(" ", 2)
            note(event="request", line=line, fields=fields, **where(writer))
            if (field(fields, "expect") or "").lower() == "100-continue":
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            body = b""
            if target != "/early-413":
                body = await read_body(reader, fields)
            path = target.split("?")[0]
            keep = await answer(path, method, fields, body, reader, writer, raw)
            await writer.drain()
            if not keep or version == "HTTP/1.0":   # which waits for the end
                return
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        pass


async def echo(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


async def banner(reader, writer):
    writer.write(b"SSH-2.0-lab\r\n")
    await echo(reader, writer)


async def late_banner(reader, writer):
    await asyncio.sleep(1)
    await banner(reader, writer)


async def count(reader, writer):
    total = 0
    while data := await reader.read(65536):
        total += len(data)
    writer.write(b"%d\n" % total)


async def zeros(reader, writer):
    size = int(await reader.readline())
    block = b"\0" * 65536
    while size > 0:
        writer.write(block[:min(size, 65536)])
        size -= 65536
        await writer.drain()


def served(handler):
    async def run(reader, writer):
        note(event="connection", **where(writer))
        try:
            await handler(reader, writer)
        except (ConnectionError, ValueError):
            pass
        finally:
            writer.close()
    return run


async def main():
    global LOG, WWW
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--log", required=True)
    parser.add_argument("--www", required=True)
    parser.add_argument("--cert", required=True)
    parser.add_argument("--key", required=True)
    args = parser.parse_args()
    LOG = open(args.log, "a", encoding="ascii")
    WWW = os.path.realpath(args.www)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(args.cert, args.key)

    def seen(sslobj, name, _context):
        sslobj.lab_sni = name
    tls.sni_callback = seen
    for port, handler, context in [
            (80, http, None), (8080, http, None), (443, http, tls),
            (8443, http, tls), (7, echo, None), (22, banner, None),
            (5432, late_banner, None), (9, count, None), (19, zeros, None)]:
        await asyncio.start_server(served(handler), ["0.0.0.0", "::"], port,
                                   ssl=context, backlog=4096)
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
