"""Starts an HTTP server, puts wrk before it, and says what came of it.

    http_peer.py requests seconds=S connections=N path=/ [method=POST body=BYTES]

The server is the command in STINT_BENCH_SERVER, which prints its port and ends with its input; or nginx, with one worker
and its fastest settings, if that says `nginx`. One JSON line per sample, as all peers print them. The processor time is
the server's alone, with its children's.
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time

UNITS = {"us": 1.0, "ms": 1000.0, "s": 1e6}
STARTED_S_MAX = 5
NGINX = """
worker_processes 1; daemon off; pid {folder}/pid; error_log stderr crit;
events {{ worker_connections 4096; }}
http {{
  access_log off; keepalive_requests 1000000000; open_file_cache max=100; sendfile on; tcp_nopush on;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
  types {{ text/plain txt; }}
  server {{ listen 127.0.0.1:{port}; root {folder}; location = / {{ return 200 "hello, world\\n"; }} }}
}}
"""


def start_nginx(folder):
    (folder / "hello.txt").write_text("hello, world\n")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port))
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    server = subprocess.Popen([program, "-c", str(folder / "nginx.conf"), "-p", str(folder)])
    for _ in range(STARTED_S_MAX * 100):
        with socket.socket() as attempt:
            if attempt.connect_ex(("127.0.0.1", port)) == 0:
                return server, port
        time.sleep(0.01)
    server.terminate()
    sys.exit("nginx did not start")


def start(folder):
    command = os.environ["STINT_BENCH_SERVER"]
    if command == "nginx":
        return start_nginx(folder)
    server = subprocess.Popen(shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return server, int(server.stdout.readline())


def cpu_seconds(pid):
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    total = 0
    for one in [pid, *children]:
        try:
            fields = pathlib.Path(f"/proc/{one}/stat").read_text().rsplit(")", 1)[1].split()
        except FileNotFoundError:
            if one == pid:
                raise
            continue  # a child that has ended meanwhile
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


# Each request with the next number in its path: one of so many that no two of the same are under way.
NUMBERED = """
local all, at = {{}}, 0
function init()
  for i = 1, {numbers} do all[i] = wrk.format(nil, (string.gsub("{path}", "{{n}}", i))) end
end
function request()
  at = at % {numbers} + 1
  return all[at]
end
"""
NUMBERS = 4096


def load(port, values, folder, text=None):
    """`text`: what is posted; else `body` bytes of it, or a GET if there is no `body`. `{n}` in the path is a number."""
    command = ["wrk", "-t1", f"-c{values['connections']}", f"-d{values['seconds']}s", "--latency"]
    if text is None and "body" in values:
        text = "x" * int(values["body"])
    if text is not None:
        script = folder / "post.lua"
        numbered = NUMBERED.format(path=values["path"], numbers=NUMBERS) if "{n}" in values["path"] else ""
        script.write_text(f'wrk.method = "POST"\nwrk.body = {json.dumps(text)}\n{numbered}')
        command += ["-s", str(script)]
    done = subprocess.run(command + [f"http://127.0.0.1:{port}{values['path'].replace('{n}', '0')}"], capture_output=True, text=True)
    seen = done.stdout
    if done.returncode or "Non-2xx" in seen or "Socket errors" in seen:
        sys.exit(f"wrk: {seen.strip()} {done.stderr.strip()}")
    return seen


def requests_in(text):
    return int(re.search(r"(\d+) requests in", text)[1])


def percentile_us(text, percent):
    number, unit = re.search(rf"{percent}%\s+([\d.]+)(us|ms|s)", text).groups()
    return float(number) * UNITS[unit]


def figures(text, spent):
    """What wrk has seen, and the processor seconds that the server has spent."""
    return (("rate", float(re.search(r"Requests/sec:\s*([\d.]+)", text)[1]), "req/s"),
            ("cpu", spent / requests_in(text) * 1e6, "us"), ("p99", percentile_us(text, 99), "us"))


def emit(bench, value, unit, values, peer="http"):
    print(json.dumps({"bench": bench, "peer": peer, "value": value, "unit": unit, "params": values}), flush=True)


def main():
    values = dict(word.split("=", 1) for word in sys.argv[2:])
    with tempfile.TemporaryDirectory(prefix="stint-bench-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)  # nginx' worker is another user
        server, port = start(folder)
        try:
            load(port, values | {"seconds": "1"}, folder)  # a warm-up
            before = cpu_seconds(server.pid)
            text = load(port, values, folder)
            spent = cpu_seconds(server.pid) - before
        finally:
            if server.stdin:
                server.stdin.close()
            else:
                server.terminate()
            server.wait()
    for name, value, unit in figures(text, spent):
        emit(f"requests.{name}", value, unit, values)


if __name__ == "__main__":
    main()
