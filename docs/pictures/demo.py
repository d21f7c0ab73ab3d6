#!/usr/bin/env python3
"""Draws docs/pictures/demo.svg: one moment of `stint demo`, as it stands on a terminal.

    docs/pictures/demo.py [PATH-TO-STINT] [--at SECONDS] [--columns N] [--rows N]

Runs the demo on a terminal of its own, takes the last picture before that moment, and ends it with Ctrl-C.
"""
import argparse
import fcntl
import html
import os
import pathlib
import pty
import re
import struct
import termios
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent

CELL_WIDTH, CELL_HEIGHT, MARGIN = 8.43, 18, 16
FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
BACKGROUND, TEXT = "#1b1f27", "#d6dae3"
STYLES = {
    "1": ("#ffffff", True),
    "2": ("#7b8394", False),
    "1;31": ("#ff6b6b", True),
    "32": ("#7fd48a", False),
    "33": ("#e8c468", False),
    "34": ("#6fa8ff", False),
    "35": ("#d08bf0", False),
    "36": ("#5fd0d6", False),
}


def record(program, columns, rows, seconds):
    """What the program wrote within the time."""
    pid, descriptor = pty.fork()
    if pid == 0:
        os.environ.update({"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "NO_COLOR": ""})
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.execv(program, [program, "demo"])
    output = b""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        output += os.read(descriptor, 65536)
    os.write(descriptor, b"\x03")
    try:
        while os.read(descriptor, 65536):
            pass
    except OSError:  # the other side is gone
        pass
    os.waitpid(pid, 0)
    return output.decode()


def last_picture(output):
    """Pictures are drawn one over the other; each begins by going up and ends by clearing what is below."""
    pictures = re.split(r"\033\[\d+A\r|\033\[\?25l", output)
    whole = [picture for picture in pictures if picture.endswith("\033[J")]
    return [line.replace("\033[K", "").rstrip("\r") for line in whole[-1].removesuffix("\033[J").split("\n")]


def spans(line):
    """(column, text, style code) of each piece."""
    column, style = 0, ""
    for piece in re.split(r"(\033\[[0-9;]*m)", line):
        if piece.startswith("\033["):
            style = piece[2:-1].removeprefix("0")
        elif piece:
            yield column, piece, style
            column += len(piece)


def svg(lines, columns):
    width = columns * CELL_WIDTH + 2 * MARGIN
    height = len(lines) * CELL_HEIGHT + 2 * MARGIN
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}" role="img">',
        "<title>stint demo: a semaphore as a garage, its spaces, the line outside and what happened</title>",
        f'<rect width="100%" height="100%" rx="10" fill="{BACKGROUND}"/>',
        f'<g font-family="{FONT}" font-size="14" fill="{TEXT}" xml:space="preserve">',
    ]
    for row, line in enumerate(lines):
        y = MARGIN + (row + 1) * CELL_HEIGHT - 4
        for column, text, style in spans(line):
            if not text.strip():
                continue
            column += len(text) - len(text.lstrip())
            text = text.strip()
            colour, bold = STYLES.get(style, (TEXT, False))
            # textLength keeps the columns in line whatever font there is.
            out.append(
                f'<text x="{MARGIN + column * CELL_WIDTH:.1f}" y="{y}" textLength="{len(text) * CELL_WIDTH:.1f}" '
                f'lengthAdjust="spacingAndGlyphs" fill="{colour}"{" font-weight=" + chr(34) + "bold" + chr(34) if bold else ""}>{html.escape(text)}</text>'
            )
    return "\n".join([*out, "</g>", "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", nargs="?", default=str(ROOT / "build/release/stint"))
    parser.add_argument("--at", type=float, default=12.0)
    parser.add_argument("--columns", type=int, default=80)
    parser.add_argument("--rows", type=int, default=24)
    options = parser.parse_args()
    lines = last_picture(record(options.program, options.columns, options.rows, options.at))
    while lines and not lines[-1].strip():
        lines.pop()
    (HERE / "demo.svg").write_text(svg(lines, options.columns), encoding="utf-8")
    print(f"wrote {HERE / 'demo.svg'}: {len(lines)} lines")


if __name__ == "__main__":
    main()
