#!/usr/bin/env python3
"""A scripted MCP server that misbehaves on request, over stdin and stdout or over HTTP.

    mcp_stand_in.py stdio|http [OPTION…]

Options: silent (never answers `initialize`), garbage (noise before and between messages), pages (tools on two pages),
stubborn (ignores SIGTERM and the end of stdin), children (leaves processes that ignore SIGTERM), stateless (HTTP without
sessions), json (HTTP answers as JSON, not as events), lingers (HTTP streams stay open after the answer), log=FILE (the
methods it received). Over HTTP it prints its port. Tools: echo, slow, die, fail, wrong, huge, ask, once, args.
"""
import http.server
import json
import os
import signal
import sys
import threading
import time

OPTIONS = sys.argv[2:]
LOG = next((option[4:] for option in OPTIONS if option.startswith("log=")), None)
LOCK = threading.Lock()
CANCELLED = set()


def log(text):
    if LOG:
        with LOCK, open(LOG, "a", encoding="utf-8") as file:
            file.write(text + "\n")


def tool(name, **annotations):
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return {"name": name, "description": f"the tool {name}", "inputSchema": schema, "annotations": annotations}


TOOLS = [tool("echo", readOnlyHint=True), tool("slow"), tool("die"), tool("fail"), tool("wrong"), tool("huge"), tool("ask"),
         tool("once"), tool("again", idempotentHint=True)]


def text_result(text, is_error=False):
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def call(message, send):
    """The answer to tools/call; `send` sends other messages before it."""
    name, arguments = message["params"]["name"], message["params"]["arguments"]
    log("run " + name)
    if name == "die":
        os._exit(7)
    if name == "again" and not os.path.exists(LOG + ".died"):
        open(LOG + ".died", "w", encoding="utf-8").close()
        os._exit(8)
    if name == "slow":
        for _ in range(600):
            send({"jsonrpc": "2.0", "method": "notifications/progress",
                  "params": {"progressToken": message["params"]["_meta"]["progressToken"], "progress": 1}})
            time.sleep(0.05)
    if name == "fail":
        return text_result("it failed", True)
    if name == "wrong":
        send({"jsonrpc": "2.0", "id": 987654, "result": text_result("not yours")})
    if name == "huge":
        return text_result("x" * (9 << 20))
    if name == "ask":
        send({"jsonrpc": "2.0", "id": "s1", "method": "sampling/createMessage", "params": {}})
    return text_result(name + ": " + str(arguments.get("text")))


def answer(message, send):
    """The answer to a request; None: it is a notification or gets none."""
    method, result = message.get("method"), None
    log(str(method or "reply " + json.dumps(message.get("error", message.get("result")))))
    if method == "notifications/cancelled":
        CANCELLED.add(message["params"]["requestId"])
    if "id" not in message or method is None or ("silent" in OPTIONS and method == "initialize"):
        return None
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "stand-in"}}
    elif method == "tools/list":
        result = {"tools": TOOLS}
        if "pages" in OPTIONS:
            second = "cursor" in message["params"]
            result = {"tools": TOOLS[5:]} if second else {"tools": TOOLS[:5], "nextCursor": "second"}
    elif method == "tools/call":
        result = call(message, send)
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def stdio():
    def send(message):
        with LOCK:
            if "garbage" in OPTIONS:
                sys.stdout.write("listening on nothing at all\n{\"half\": \n")
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()

    def work(message):
        reply = answer(message, send)
        if reply is not None:
            send(reply)

    if "stubborn" in OPTIONS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "children" in OPTIONS:
        for _ in range(2):
            if os.fork() == 0:
                os.setsid()
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                time.sleep(600)
                os._exit(0)
    for line in sys.stdin:
        threading.Thread(target=work, args=(json.loads(line),), daemon=True).start()
    log("eof")
    if "stubborn" in OPTIONS:
        time.sleep(600)
    os._exit(0)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, headers=(), body=b""):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_DELETE(self):
        log("DELETE " + str(self.headers.get("Mcp-Session-Id")))
        self.reply(200)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/tool":
            log(f"tool {self.headers.get('Idempotency-Key')} {self.headers.get('X-Mode')} {body.decode()}")
            mode = self.headers.get("X-Mode")
            if mode == "slow":
                time.sleep(30)
            return self.reply({"busy": 503, "broken": 502, "bad": 422}.get(mode, 200), body=b"served")
        message = json.loads(body)
        session = None if "stateless" in OPTIONS else "session-1"
        if message.get("method") != "initialize":
            if self.headers.get("Mcp-Session-Id") != session:
                return self.reply(400)
            if self.headers.get("MCP-Protocol-Version") != "2025-06-18":
                return self.reply(400)
        if "text/event-stream" not in self.headers["Accept"]:
            return self.reply(406)
        given = [("Mcp-Session-Id", session)] if session and message.get("method") == "initialize" else []
        if message.get("method") is None or "id" not in message:
            answer(message, None)
            return self.reply(202)
        if "json" in OPTIONS:
            reply = answer(message, lambda _: None)
            return self.reply(200, [("Content-Type", "application/json"), *given], json.dumps(reply).encode())
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        for name, value in given:
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

        def send(event):
            self.wfile.write(b": comment\r\nevent: message\r\ndata: " + json.dumps(event).encode() + b"\r\n\r\n")
            self.wfile.flush()

        try:
            reply = answer(message, send)
            if reply is not None:
                send(reply)
            if "lingers" in OPTIONS:
                time.sleep(30)
        except OSError:
            log("client gone")


def serve():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    (stdio if sys.argv[1] == "stdio" else serve)()
