#!/usr/bin/env python3
"""Draws docs/pictures/layers.svg (from LAYERS in tools/tidy.py and the folders that exist) and docs/pictures/stop.svg.

    docs/pictures/architecture.py            writes them
    docs/pictures/architecture.py --check    only says whether they are up to date
"""
import html
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True
import tidy  # noqa: E402

FONT = "system-ui, 'DejaVu Sans', sans-serif"
PAPER, INK, FAINT = "#ffffff", "#1b1f27", "#8a92a3"
BLUE, GREEN, RED, SAND = "#dbe7fb", "#dcf3e0", "#fbdcdc", "#fff4d6"

WORDS = {
    "core": "the library: task, scope, cancel, semaphore, retry, pools",
    "domain": "words and rules",
    "agent": "agent files",
    "os": "system calls",
    "net": "requests we make",
    "playground": "semaphores, to learn",
    "project": "what a checkout says",
    "queue": "which run next",
    "limit": "may it run now",
    "driver": "do the work",
    "store": "what is true",
    "events": "numbered",
    "pool": "workers, health, autoscaling, drain",
    "engine": "joins the stages",
    "tape": "record, replay",
    "wire": "JSON shapes",
    "fleet": "the fleet as commands see it",
    "http": "API, SSE",
    "cli": "commands",
    "loop": "worktrees",
    "model": "model calls",
    "provider": "simulated model",
    "app": "wires everything, owns main()",
}


class Picture:
    def __init__(self, width, height, title):
        self.out = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
            f"<title>{html.escape(title)}</title>",
            '<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse">'
            f'<path d="M0 0 L10 5 L0 10 z" fill="{INK}"/></marker></defs>',
            f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>',
            f'<g font-family="{FONT}" font-size="13" fill="{INK}">',
        ]

    def box(self, x, y, width, height, fill, dashed=False):
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        stroke = FAINT if dashed else INK
        self.out.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{fill}" stroke="{stroke}"{dash}/>')

    def text(self, x, y, words, bold=False, colour=INK, anchor="middle", size=13):
        weight = ' font-weight="bold"' if bold else ""
        self.out.append(f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}" fill="{colour}"{weight}>{html.escape(words)}</text>')

    def arrow(self, *points, colour=INK, dashed=False):
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        path = " L".join(f"{x} {y}" for x, y in points)
        self.out.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.6"{dash} marker-end="url(#arrow)"/>')

    def svg(self):
        return "\n".join([*self.out, "</g>", "</svg>", ""])


def exists(folder):
    return (ROOT / ("core" if folder == "core" else f"src/{folder}")).is_dir()


def layers():
    """From the top down; a folder includes only what stands below it."""
    width, row_height, gap, margin = 860, 50, 10, 20
    rows = list(reversed(tidy.LAYERS))
    picture = Picture(width, margin * 2 + len(rows) * (row_height + gap) + 22, "The layers of Stint: what exists and what is planned")
    order = list(WORDS)
    for number, row in enumerate(rows):
        y = margin + number * (row_height + gap)
        folders = sorted(row, key=order.index)
        each = (width - 2 * margin - (len(folders) - 1) * gap) / len(folders)
        for place, folder in enumerate(folders):
            x = margin + place * (each + gap)
            there = exists(folder)
            picture.box(round(x), y, round(each), row_height, (GREEN if folder == "core" else BLUE) if there else PAPER, dashed=not there)
            colour = INK if there else FAINT
            picture.text(round(x + each / 2), y + 21, folder, bold=True, colour=colour)
            picture.text(round(x + each / 2), y + 38, WORDS[folder], colour=colour, size=12)
    y = margin + len(rows) * (row_height + gap) + 14
    picture.text(margin, y, "filled: exists today · dashed: planned · a folder includes only folders below it", anchor="start", colour=FAINT, size=12)
    return picture.svg()


def stop():
    """How a cancel travels."""
    picture = Picture(860, 408, "How a stop travels: token, chain, leaf, catcher")
    # The token.
    picture.box(24, 40, 190, 74, SAND)
    picture.text(119, 66, "token", bold=True)
    picture.text(119, 86, "a node of the cancel tree;", size=12)
    picture.text(119, 102, "knows the chains that obey it", size=12)
    # The chain.
    picture.text(455, 28, "a chain: frames that await one another", bold=True)
    names = [("catcher", "with_scope, race, with_deadline …", GREEN), ("root frame", "the task it started", BLUE), ("frame", "awaited by the root", BLUE), ("leaf", "acquire(), sleep_for(), a socket", RED)]
    for i, (name, words, fill) in enumerate(names):
        y = 40 + i * 86
        picture.box(330, y, 250, 58, fill)
        picture.text(455, y + 25, name, bold=True)
        picture.text(455, y + 44, words, size=12)
        if i:
            picture.arrow((455, y - 28), (455, y))
    picture.text(467, 113, "starts", anchor="start", colour=FAINT, size=12)
    picture.text(467, 199, "awaits", anchor="start", colour=FAINT, size=12)
    picture.text(467, 285, "awaits", anchor="start", colour=FAINT, size=12)
    # The primitive.
    picture.box(660, 298, 176, 58, SAND)
    picture.text(748, 323, "semaphore", bold=True)
    picture.text(748, 342, "the leaf stands in its line", size=12)
    picture.arrow((580, 342), (660, 342))
    # The way of a stop.
    picture.arrow((119, 114), (119, 327), (330, 327))
    for i, words in enumerate(("1  cancel marks the tokens", "of the subtree and tells", "each parked leaf")):
        picture.text(130, 200 + 16 * i, words, anchor="start", size=12)
    for i, words in enumerate(("2  the leaf leaves the line (a socket waits", "until its handler has run) and posts itself")):
        picture.text(590, 376 + 16 * i, words, anchor="start", size=12)
    picture.arrow((580, 312), (612, 312), (612, 69), (580, 69))
    for i, words in enumerate(("3  the run loop hands `stopped`", "to the catcher, with no frame", "of the chain on the stack")):
        picture.text(622, 180 + 16 * i, words, anchor="start", size=12)
    for i, words in enumerate(("4  the catcher destroys the", "frames, leaf first: destructors", "run, permits come home")):
        picture.text(622, 62 + 16 * i, words, anchor="start", size=12)
    return picture.svg()


def main():
    stale = []
    for name, draw in (("layers.svg", layers), ("stop.svg", stop)):
        path, wanted = HERE / name, draw()
        if path.is_file() and path.read_text(encoding="utf-8") == wanted:
            continue
        stale.append(name)
        if "--check" not in sys.argv:
            path.write_text(wanted, encoding="utf-8")
            print(f"wrote docs/pictures/{name}")
    if "--check" in sys.argv and stale:
        print(f"{', '.join(stale)}: out of date. Run docs/pictures/architecture.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
