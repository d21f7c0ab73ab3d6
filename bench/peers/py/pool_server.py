"""An asyncio worker pool behind uvicorn, with uvloop and httptools: the quickest that Debian has for Python.

    pool_server.py serve workers=N queue=N [framework=fastapi]

A bounded queue, N tasks that take from it, a future for each job; a job does nothing. POST /api/agent/run submits one and
waits for it, 503 if the queue is full; GET /healthz says ok. Without a framework the application is a bare ASGI callable:
the most that Python can do here. It prints its port and ends with its standard input.
"""
import asyncio
import json
import socket
import sys
import urllib.parse

import uvicorn


class Pool:
    def __init__(self, workers, capacity):
        self.queue = asyncio.Queue(capacity)
        self.tasks = [asyncio.create_task(self.work()) for _ in range(workers)]

    async def work(self):
        while True:
            query, future = await self.queue.get()
            try:
                if not future.done():
                    future.set_result(await self.answer(query))
            except Exception as error:
                future.set_exception(error)
            finally:
                self.queue.task_done()

    async def answer(self, query):
        return "done"

    async def run(self, query):
        """Raises QueueFull."""
        future = asyncio.get_running_loop().create_future()
        self.queue.put_nowait((query, future))
        return await future


class Bare:
    """ASGI, by hand."""

    json_type, text_type = (b"content-type", b"application/json"), (b"content-type", b"text/plain; charset=utf-8")

    def __init__(self, workers, capacity):
        self.workers, self.capacity, self.pool = workers, capacity, None

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return
        if self.pool is None:
            self.pool = Pool(self.workers, self.capacity)
        if scope["path"] == "/healthz":
            return await self.reply(send, 200, b"ok\n", self.text_type)
        values = dict(urllib.parse.parse_qsl(scope["query_string"]))
        if b"session_id" not in values or b"query" not in values:
            return await self.reply(send, 422, b"{}", self.json_type)
        try:
            result = await self.pool.run(values[b"query"].decode())
        except asyncio.QueueFull:
            return await self.reply(send, 503, b"{}", self.json_type, (b"retry-after", b"2"))
        await self.reply(send, 200, json.dumps({"status": "success", "result": result}).encode(), self.json_type)

    @staticmethod
    async def reply(send, status, body, *headers):
        length = (b"content-length", str(len(body)).encode())
        await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
        await send({"type": "http.response.body", "body": body})


def with_fastapi(workers, capacity):
    from fastapi import FastAPI
    from fastapi.responses import JSONResponse, PlainTextResponse

    app = FastAPI()

    @app.on_event("startup")
    async def begin():
        app.state.pool = Pool(workers, capacity)

    @app.post("/api/agent/run")
    async def run(session_id: str, query: str):
        try:
            return {"status": "success", "result": await app.state.pool.run(query)}
        except asyncio.QueueFull:
            return JSONResponse({}, 503, {"Retry-After": "2"})

    @app.get("/healthz")
    async def health():
        return PlainTextResponse("ok\n")

    return app


async def serve(values):
    make = with_fastapi if values.get("framework") == "fastapi" else Bare
    app = make(int(values["workers"]), int(values["queue"]))
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    server = uvicorn.Server(uvicorn.Config(app, loop="uvloop", http="httptools", ws="none", access_log=False, log_level="critical"))
    print(listener.getsockname()[1], flush=True)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin, lambda: sys.stdin.buffer.raw.read(64) or ended.set())
    serving = asyncio.create_task(server.serve([listener]))
    await asyncio.wait([serving, asyncio.create_task(ended.wait())], return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = server.force_exit = True
    await serving


def main():
    import uvloop

    uvloop.install()
    asyncio.run(serve(dict(word.split("=", 1) for word in sys.argv[2:])))


main()
