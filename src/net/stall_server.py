"""A model provider that stalls on demand, for the tests and benches of the HTTP client: HTTP/1.1 and HTTP/2, cleartext and TLS.

    stall_server.py FOLDER      makes a certificate for localhost in FOLDER; ends with its standard input

The first word of a request's body says what happens to it: `ok` is answered, `first` never is, `stream` gets a head and one event,
`drip N` an event every N ms, `upload` is not read further (HTTP/2: gets no more window), `choke` leaves the whole connection
unread, `drop` closes the connection, `refuse` resets the stream as not processed, `goaway` is answered and the connection given up,
`flood N` gets N MB. Two ports never speak: `mute` accepts, the backlog of `full` is full. `proxy` is an HTTP proxy for CONNECT.

Standard output: `NAME PORT` for every port, then `NANOSECONDS CONNECTION STREAM EVENT`, on the clock that C++ calls steady. The
events: open, request, read N (bytes of a body), reset CODE (RST_STREAM), goaway, close. STREAM is 0 for HTTP/1.1.
"""
import asyncio
import itertools
import socket
import ssl
import struct
import subprocess
import sys
import time

DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW = 0, 1, 3, 4, 6, 7, 8
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
CLOSE, CLOSE_WAIT = 7, 8  # states of TCP: what a peer's reset and a peer's close lead to
EVENT = b'event: token\ndata: {"text":"a token of a model"}\n\n'
NUMBERS = itertools.count(1)


def say(*words):
    print(*words, flush=True)


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


class Connection(asyncio.Protocol):
    def connection_made(self, transport):
        self.number, self.transport, self.buffer, self.version = next(NUMBERS), transport, b"", 0
        self.bodies, self.tasks, self.length, self.closed = {}, {}, 0, False
        transport.set_write_buffer_limits(high=1 << 26)
        self.tell(0, "open")

    def tell(self, stream, *words):
        if not self.closed or words[0] != "close":
            say(time.monotonic_ns(), self.number, stream, *words)
        self.closed = self.closed or words[0] == "close"

    def connection_lost(self, _):
        self.tell(0, "close")
        for task in self.tasks.values():
            task.cancel()

    def data_received(self, data):
        self.buffer += data
        if self.version == 0 and (len(self.buffer) >= len(PREFACE) or not PREFACE.startswith(self.buffer)):
            self.version = 2 if self.buffer.startswith(PREFACE) else 1
            if self.version == 2:
                self.buffer = self.buffer[len(PREFACE) :]
                self.transport.write(frame(SETTINGS, 0, 0, struct.pack(">HI", 3, 128)) + frame(WINDOW, 0, 0, struct.pack(">I", 1 << 30)))
        (self.read1 if self.version == 1 else self.read2)()

    # ---- HTTP/1.1
    def read1(self):
        while True:
            if 0 not in self.bodies:
                head, mark, rest = self.buffer.partition(b"\r\n\r\n")
                if not mark:
                    return
                lengths = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
                self.bodies[0], self.length, self.buffer = b"", int(lengths[0]) if lengths else 0, rest
                self.tell(0, "request")
            need = self.length - len(self.bodies[0])
            if not self.buffer and need > 0:
                return
            self.bodies[0], self.buffer = self.bodies[0] + self.buffer[:need], self.buffer[need:]
            self.body(0, done=len(self.bodies[0]) == self.length)
            if len(self.bodies.get(0, b"")) == self.length:
                self.bodies.pop(0, None)

    # ---- HTTP/2: frames only; the heads of requests are not decoded
    def read2(self):
        while len(self.buffer) >= 9:
            length = int.from_bytes(self.buffer[:3], "big")
            kind, flags, stream = struct.unpack(">BBI", self.buffer[3:9])
            if len(self.buffer) < 9 + length:
                return
            payload, self.buffer = self.buffer[9 : 9 + length], self.buffer[9 + length :]
            self.frame2(kind, flags, stream & 0x7FFFFFFF, payload)

    def frame2(self, kind, flags, stream, payload):
        if kind == SETTINGS and not flags & 1:
            self.transport.write(frame(SETTINGS, 1, 0))
        elif kind == PING and not flags & 1:
            self.transport.write(frame(PING, 1, 0, payload))
        elif kind == HEADERS:
            self.bodies[stream] = b""
            self.tell(stream, "request")
            if flags & 1:
                self.body(stream, done=True)
        elif kind == DATA and stream in self.bodies:
            self.bodies[stream] += payload
            self.body(stream, done=bool(flags & 1))
            if payload and stream in self.bodies and not self.bodies[stream].startswith(b"upload"):
                self.transport.write(frame(WINDOW, 0, stream, struct.pack(">I", len(payload))))
        elif kind == RESET:
            self.tell(stream, "reset", int.from_bytes(payload, "big"))
            self.forget(stream)
        elif kind == GOAWAY:
            self.tell(stream, "goaway")

    # ---- both
    def forget(self, stream):
        self.bodies.pop(stream, None)
        task = self.tasks.pop(stream, None)
        if task:
            task.cancel()

    def head(self, stream):
        if stream:
            return self.transport.write(frame(HEADERS, 4, stream, b"\x88\x0f\x10\x11text/event-stream"))
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")

    def piece(self, stream, data):
        if stream:
            for at in range(0, len(data), 16384):
                self.transport.write(frame(DATA, 0, stream, data[at : at + 16384]))
        elif data:
            self.transport.write(b"%x\r\n%s\r\n" % (len(data), data))

    def end(self, stream):
        self.transport.write(frame(DATA, 1, stream) if stream else b"0\r\n\r\n")
        self.bodies.pop(stream, None)

    def body(self, stream, done):
        text = self.bodies[stream]
        word, _, rest = text[:32].partition(b"\n")[0].decode().partition(" ")
        word = word or "ok"
        if word in ("upload", "choke"):
            self.tell(stream, "read", len(text))
            if stream == 0 or word == "choke":
                self.choke()
        if done:
            self.answer(stream, word, rest)

    def choke(self):
        self.transport.pause_reading()
        self.tasks["watch"] = asyncio.ensure_future(self.watch())

    async def watch(self):
        """Detects the end of a connection that is not read."""
        raw = self.transport.get_extra_info("socket")
        while raw.fileno() >= 0 and raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] not in (CLOSE, CLOSE_WAIT):
            await asyncio.sleep(0.0005)
        self.tell(0, "close")
        self.transport.abort()

    def answer(self, stream, word, rest):
        if word == "drop":
            return self.transport.abort()
        if word == "refuse":
            return self.transport.write(frame(RESET, 0, stream, struct.pack(">I", 7)))
        if word in ("first", "upload", "choke"):
            return None
        self.head(stream)
        if word == "drip":
            self.tasks[stream] = asyncio.ensure_future(self.drip(stream, float(rest or 10) / 1000))
        elif word == "flood":
            self.piece(stream, b"f" * (int(rest) << 20))
            self.end(stream)
        elif word == "stream":
            self.piece(stream, EVENT)
        else:
            self.piece(stream, b"ok %d %d" % (self.number, len(self.bodies[stream])))
            self.end(stream)
            if word == "goaway":
                self.transport.write(frame(GOAWAY, 0, 0, struct.pack(">II", stream, 0)))
        return None

    async def drip(self, stream, seconds):
        while True:
            self.piece(stream, EVENT)
            await asyncio.sleep(seconds)


class Mute(Connection):
    def data_received(self, data):
        self.tell(0, "read", len(data))


class Proxy(Connection):
    """CONNECT to a port of this machine, whatever the name."""

    def data_received(self, data):
        self.buffer += data
        if self.bodies.get("to"):
            self.bodies["to"].write(data)
        elif self.buffer.endswith(b"\r\n\r\n"):
            self.tell(0, "request", self.buffer.decode().partition(" HTTP/")[0])
            asyncio.ensure_future(self.pump(int(self.buffer.split()[1].rsplit(b":")[1])))

    async def pump(self, port):
        reader, self.bodies["to"] = await asyncio.open_connection("127.0.0.1", port)
        self.transport.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        while data := await reader.read(65536):
            self.transport.write(data)
        self.transport.close()


def certificate(folder):
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=localhost".split()
    names = ["-addext", "subjectAltName=DNS:localhost,DNS:model.test,IP:127.0.0.1"]
    subprocess.run(command + names + ["-keyout", f"{folder}/key.pem", "-out", f"{folder}/ca.pem"], check=True, stderr=subprocess.PIPE)
    contexts = []
    for protocols in (["h2", "http/1.1"], ["http/1.1"]):
        contexts.append(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        contexts[-1].load_cert_chain(f"{folder}/ca.pem", f"{folder}/key.pem")
        contexts[-1].set_alpn_protocols(protocols)
    return contexts


async def main(folder):
    loop = asyncio.get_running_loop()
    both, only1 = certificate(folder)
    for name, kind, context in (("plain", Connection, None), ("tls", Connection, both), ("tls1", Connection, only1), ("mute", Mute, None), ("proxy", Proxy, None)):
        server = await loop.create_server(kind, "127.0.0.1", 0, ssl=context, backlog=4096)
        say(name, server.sockets[0].getsockname()[1])
    full = socket.create_server(("127.0.0.1", 0), backlog=1)
    fillers = [socket.socket() for _ in range(4)]
    for filler in fillers:
        filler.setblocking(False)
        filler.connect_ex(full.getsockname())
    say("full", full.getsockname()[1])
    await loop.run_in_executor(None, sys.stdin.read)


asyncio.run(main(sys.argv[1]))
