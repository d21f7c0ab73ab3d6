#!/usr/bin/env python3
"""Stands in for an agent CLI in tests of processes: plays a recorded stream and misbehaves as configured.

It accepts any arguments, as the CLI would. The environment variable STAND_IN configures it, a JSON object:

    stream        file of lines to write; or `lines`, a list of them
    delay         seconds before each line (0)
    stdin         "line" (default): first read one line; "all": read to the end; "none": do not read it
    hang_after    write this many lines, then stay silent forever
    busy_after    the same, but use CPU time
    interrupt     "obey" (default): end as Claude Code does when a line asks for it; "ignore"
    ignore        signals to ignore, like ["TERM", "INT"]
    children      number of child processes that sleep and ignore the same signals
    escapees      number of processes that leave the session and the process group, hold stdout open and ignore TERM
    linger        seconds to stay after the last line
    flood         bytes to write, in lines of 1000, before the rest; `long_line`: bytes of one line
    stderr        text for stderr
    exit          exit status (0), or `signal`: a signal to die of
    report        file for a JSON line: arguments, the environment's STINT_*, and all pids, written before the first line
    once          file that the first run creates; from the second on `again` replaces these settings
"""
import json
import os
import select
import signal
import sys
import time


def sleeper(ignored):
    for name in ignored:
        signal.signal(getattr(signal, f"SIG{name}"), signal.SIG_IGN)
    while True:
        time.sleep(3600)


def fork_child(ignored):
    pid = os.fork()
    if pid == 0:
        sleeper(ignored)
    return pid


def fork_escapee():
    """Forks a grandchild in its own session, whose parent has exited; returns its pid."""
    reader, writer = os.pipe()
    middle = os.fork()
    if middle == 0:
        os.setsid()
        inner = os.fork()
        if inner == 0:
            os.close(reader)
            os.close(writer)
            sleeper(["TERM", "HUP", "INT"])
        os.write(writer, str(inner).encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(middle, 0)
    pid = int(os.read(reader, 32))
    os.close(reader)
    return pid


class StandIn:
    def __init__(self, settings):
        self.settings = settings
        self.pending = b""
        self.stdin_open = True

    def get(self, name, otherwise=None):
        return self.settings.get(name, otherwise)

    def write(self, text):
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    def pause(self, seconds):
        """Waits, and handles an interrupt meanwhile."""
        end = time.monotonic() + seconds
        while True:
            left = end - time.monotonic()
            if left <= 0:
                return
            if not self.stdin_open or self.get("interrupt", "obey") != "obey" or self.get("stdin") == "none":
                time.sleep(left)
                return
            if select.select([0], [], [], left)[0]:
                piece = os.read(0, 65536)
                self.stdin_open = bool(piece)
                self.pending += piece
                if b'"interrupt"' in self.pending:
                    self.interrupted()

    def interrupted(self):
        self.write('{"type":"control_response","response":{"subtype":"success","request_id":"stint-end"}}')
        self.write('{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_streaming"}')
        sys.exit(1)

    def read_stdin(self):
        how = self.get("stdin", "line")
        while self.stdin_open and (how == "all" or (how == "line" and b"\n" not in self.pending)):
            piece = os.read(0, 65536)
            self.stdin_open = bool(piece)
            self.pending += piece
        if how == "line":
            self.pending = self.pending.partition(b"\n")[2]

    def report(self, pids):
        marks = {name: value for name, value in os.environ.items() if name.startswith("STINT_")}
        line = {"arguments": sys.argv[1:], "environment": marks, "pid": os.getpid(), "pids": pids, "directory": os.getcwd()}
        with open(self.get("report"), "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def lines(self):
        if self.get("lines") is not None:
            return self.get("lines")
        if self.get("stream"):
            with open(self.get("stream"), encoding="utf-8") as file:
                return file.read().splitlines()
        return []

    def play(self):
        for name in self.get("ignore", []):
            signal.signal(getattr(signal, f"SIG{name}"), signal.SIG_IGN)
        pids = [fork_child(self.get("ignore", [])) for _ in range(self.get("children", 0))]
        pids += [fork_escapee() for _ in range(self.get("escapees", 0))]
        if self.get("report"):
            self.report(pids)
        self.read_stdin()
        if self.get("stderr"):
            sys.stderr.write(self.get("stderr"))
            sys.stderr.flush()
        for _ in range(self.get("flood", 0) // 1000):
            self.write("x" * 999)
        if self.get("long_line"):
            self.write("x" * self.get("long_line"))
        for number, line in enumerate(self.lines()):
            self.stop_at(number)
            self.pause(self.get("delay", 0))
            self.write(line)
        self.stop_at(len(self.lines()))
        self.pause(self.get("linger", 0))
        if self.get("signal"):
            os.kill(os.getpid(), getattr(signal, f"SIG{self.get('signal')}"))
        return self.get("exit", 0)

    def stop_at(self, number):
        if self.get("hang_after") == number:
            while True:
                self.pause(3600)
        if self.get("busy_after") == number:
            while True:
                sum(range(10_000))


def main():
    settings = json.loads(os.environ.get("STAND_IN", "{}"))
    if "once" in settings:
        if os.path.exists(settings["once"]):
            settings = settings["again"]
        else:
            with open(settings["once"], "w", encoding="utf-8"):
                pass
    return StandIn(settings).play()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:
        os._exit(1)
