"""Starts a daemon, opens dashboards, makes events, and says what they cost: `web_peer.py dashboards ms= events= dashboards=`

The server is `daemon PROGRAM` in STINT_BENCH_SERVER, as for serve_peer.py. Ends by itself after `ms`, and ends the daemon.
"""
import asyncio
import json
import os
import pathlib
import signal
import sys
import tempfile
import time

from http_peer import cpu_seconds, emit
from serve_peer import daemon

READ_GAP_S = 1.0  # web/src/live.ts: between two reads that events ask for
QUEUED = 500
DELAY_MS = 3_600_000
SETTLE_S, LATE_S = 1.0, 2.0


async def ask(port, method, path, body=b""):
    """One request on a connection of its own, as a browser's short requests after a pause. → status and body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    answer = await reader.read()
    writer.close()
    head, _, rest = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), rest


class Dashboard:
    """One stream, and reads of the first screen. `seen`: when the event of each run arrived."""

    def __init__(self, port, screen):
        self.port, self.screen, self.seen, self.reads, self.due = port, screen, {}, 0, asyncio.Event()

    async def follow(self, opened):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)
        writer.write(b"GET /v1/events?after=now HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        opened.release()
        try:
            while line := await reader.readline():
                if line.startswith(b"data:") and b'"enqueued"' in line:
                    at = line.index(b'"id":"') + 6 if b'"id":"' in line else line.index(b'"run":"') + 7
                    self.seen[line[at:at + 12]] = time.monotonic()
                    self.due.set()
        finally:
            writer.close()

    async def read(self):
        while True:
            await self.due.wait()
            self.due.clear()
            began = time.monotonic()
            status, _ = await ask(self.port, "GET", self.screen)
            if status != 200:
                sys.exit(f"{self.screen} answered {status}")
            self.reads += 1
            await asyncio.sleep(max(0.0, READ_GAP_S - (time.monotonic() - began)))


async def submit(port):
    body = json.dumps({"agent": "quick", "delay_ms": DELAY_MS}).encode()
    began = time.monotonic()
    status, answer = await ask(port, "POST", "/v1/runs", body)
    if status != 201:
        sys.exit(f"a submission was answered {status}: {answer.decode()}")
    return json.loads(answer)["id"].encode(), began


async def drive(one, values):
    port, seconds = one.port, int(values["ms"]) / 1000
    for _ in range(QUEUED):
        await submit(port)
    screen = "/v1/fleet" if (await ask(port, "GET", "/v1/fleet"))[0] == 200 else "/v1/status"
    boards = [Dashboard(port, screen) for _ in range(int(values["dashboards"]))]
    opened = asyncio.Semaphore(0)
    tasks = [asyncio.create_task(work) for board in boards for work in (board.follow(opened), board.read())]
    for _ in boards:
        await opened.acquire()
    await asyncio.sleep(SETTLE_S)
    made, cpu, began = {}, cpu_seconds(one.process.pid), time.monotonic()
    for number in range(int(seconds * int(values["events"]))):
        run, at = await submit(port)
        made[run] = at
        await asyncio.sleep(max(0.0, began + (number + 1) / int(values["events"]) - time.monotonic()))
    passed = time.monotonic() - began
    share, memory, reads = 100 * (cpu_seconds(one.process.pid) - cpu) / passed, one.resident(), sum(board.reads for board in boards)
    await asyncio.sleep(LATE_S)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    late = sorted((board.seen[run] - at) * 1000 for board in boards for run, at in made.items() if run in board.seen)
    figures = {"cpu": (share, "%"), "memory": (memory / 1e6, "MB"), "events": (len(made) / passed, "/s")}
    if boards:
        figures |= {"reads": (reads / passed, "/s"), "missed": (len(boards) * len(made) - len(late), "")}
    if late:
        figures |= {"p50": (late[len(late) // 2], "ms"), "p99": (late[int(0.99 * (len(late) - 1))], "ms")}
    return figures


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    values = dict(word.split("=", 1) for word in sys.argv[2:])
    with tempfile.TemporaryDirectory(prefix="web-", dir=os.getcwd()) as name, daemon(pathlib.Path(name)) as one:
        for figure, (value, unit) in asyncio.run(drive(one, values)).items():
            emit(f"dashboards.{figure}", value, unit, values, "web")


main()
