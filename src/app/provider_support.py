"""A `stint provider` under test, a client of it, and the case that its tests share."""
import http.client
import json
import signal
import socket
import subprocess
import sys
import time
import unittest

STINT = sys.argv.pop(1)
SLOW = 6 if "asan" in STINT else 1  # sanitizers: how much longer things may take
STREAMS = 200


class Provider:
    """A running provider."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([STINT, "provider", "--json", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(self.process.stderr.read())
        self.listening = json.loads(line)
        host, port = self.listening["address"].rsplit(":", 1)
        self.address = (host, int(port))

    def close(self, by=signal.SIGTERM):
        self.process.send_signal(by)
        rest, errors = self.process.communicate(timeout=20 * SLOW)
        return self.process.returncode, rest, errors

    def call(self, method, path, body=None, headers=None):
        """(status, headers, body) of one request on a connection of its own."""
        connection = http.client.HTTPConnection(*self.address, timeout=20 * SLOW)
        try:
            connection.request(method, path, body if isinstance(body, (str, bytes, type(None))) else json.dumps(body), headers or {})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def stats(self):
        return json.loads(self.call("GET", "/_/stats")[2])

    def records(self):
        return [json.loads(line) for line in self.call("GET", "/_/requests")[2].decode().splitlines()]

    def stats_when(self, wanted, seconds=10):
        end = time.monotonic() + seconds * SLOW
        while True:
            stats = self.stats()
            if wanted(stats):
                return stats
            if time.monotonic() > end:
                raise AssertionError(f"not seen within {seconds} s: {stats}")
            time.sleep(0.005)

    def script(self, text):
        status, _, body = self.call("POST", "/_/script", text.encode())
        assert status == 200, body


def message(prompt, stream=True, **more):
    return {"model": "simulated", "max_tokens": 100_000, "stream": stream, "messages": [{"role": "user", "content": prompt}], **more}


def events(body):
    """The (name, data) pairs of a stream."""
    found = []
    for part in body.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in part.splitlines() if ": " in line)
        if fields:
            found.append((fields.get("event", ""), fields["data"]))
    return found


def raw_request(path, body):
    text = json.dumps(body).encode()
    return f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(text)}\r\n\r\n".encode() + text


def open_stream(provider, prompt, path="/v1/messages"):
    """A socket that has sent its request and read the first bytes of the stream."""
    client = socket.create_connection(provider.address, timeout=20 * SLOW)
    client.sendall(raw_request(path, message(prompt)))
    got = b""
    while b"\r\n\r\n" not in got or b"data:" not in got:
        piece = client.recv(4096)
        assert piece, got
        got += piece
    return client


def read_to_end(client):
    """(bytes, how it ended: "closed" or "reset")"""
    got = b""
    while True:
        try:
            piece = client.recv(65536)
        except ConnectionResetError:
            return got, "reset"
        if not piece:
            return got, "closed"
        got += piece


class WithProvider(unittest.TestCase):
    def setUp(self):
        self.provider = Provider()

    def tearDown(self):
        code, _, errors = self.provider.close()
        self.assertEqual(code, 0, errors)
        self.assertEqual(errors, "")

    def ask(self, prompt, path="/v1/messages", **more):
        return self.provider.call("POST", path, message(prompt, **more))
