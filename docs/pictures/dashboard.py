#!/usr/bin/env python3
"""Takes pictures of every page of the dashboard in light and dark: `dashboard.py STINT FOLDER`; those of docs: `… docs/pictures`

Starts a daemon with some agents and runs in a folder of its own, among them a run in doubt, and opens its pages in Chromium.
"""
import contextlib
import math
import os
import pathlib
import sqlite3
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/browser"), str(ROOT / "tests/integration")]

import chromium  # noqa: E402
import daemon_support  # noqa: E402
import history_support  # noqa: E402
from host_support import wait_for  # noqa: E402


WIDTH, HEIGHT = 1180, 600  # of the window; a page is at least as high
HEIGHT_MAX = 1320  # what fits on a page of docs
SCALE, QUALITY = 0.75, 42


class Scene(daemon_support.Case):
    """A fleet at work."""

    settings = "[pool]\nmin = 4\nmax = 8\n[budget]\ncost_per_day = 20\n"

    def runTest(self):  # noqa: N802  the name that the library calls
        pass

    def import_fix(self):
        """A run of an agent that uses tools; it ended a minute ago. Returns its id."""
        self.agent("fix", 'command: [sh, -c, "true"]\ntitle: Fix the flaky test\n')
        said = ["I run the test until it fails.\n", "It fails about once in forty. The socket is read before the server has bound it.\n",
                "I wait for the line that the server prints, instead of for 100 ms.\n", "It passes 200 times. The wait is in tests/serve_test.py, line 41.\n"]
        at = [len("".join(said[:count])) for count in range(5)]
        usage = {"fresh_in": 3, "cache_read": 21_000, "cache_write": 900, "out": 412, "reasoning": 0, "tokens": 22_315, "cost_micros": 41_000, "estimated": False}
        span, note = history_support.span, history_support.note
        events = [
            span("model_call", "opus", 2600, 2500, output_at=at[1], usage=usage), note("tool", 2700, "Bash ./repeat 40 serve_test", at[1]),
            span("tool", "Bash", 19_800, 17_000, text="38 passed, 2 failed: connection refused", output_at=at[1]),
            span("model_call", "opus", 24_000, 4100, output_at=at[2], usage=usage), note("tool", 24_100, "Edit tests/serve_test.py", at[3]),
            span("tool", "Edit", 24_400, 260, text="1 replacement", output_at=at[3]), note("tool", 24_500, "Bash ./repeat 200 serve_test", at[3]),
            span("tool", "Bash", 49_000, 24_400, text="200 passed", output_at=at[3]), span("model_call", "opus", 52_000, 2700, output_at=at[4], usage=usage)]
        run = "fxqk2vd7hm3a"
        history_support.write_export(f"{self.b.home}/export.json", run, int(time.time() * 1000) - 120_000, events, agent="fix", output="".join(said), text=said[-1],
                                     usage={name: count if name == "estimated" else 3 * count for name, count in usage.items()})
        self.stint("trust")
        self.stint("store", "import", f"{self.b.home}/export.json")
        return run

    def write_hour(self):
        """An hour of samples, as a fleet that takes up work and finishes it leaves them. The gap is a daemon that was deployed."""
        step, end, spent = 10_000, int(time.time()) // 10 * 10_000, 0
        with contextlib.closing(sqlite3.connect(f"{self.project}/.git/stint/stint.db", timeout=30)) as store, store:
            for number in range(1, 350):
                if 120 < number < 132:
                    continue
                load = 3.5 + 3 * math.sin(number / 40) + math.sin(number / 7)
                busy, held, ended = min(8, max(0, round(load))), max(0, round(2 * load - 8)), int(number % 4 == 0)
                spent += busy
                store.execute("INSERT OR IGNORE INTO series_point VALUES (10, ?, ?, ?, ?, ?, 8, 1, ?, ?, ?, 0, 0, 0, ?, ?)",
                              (end - number * step, max(0, round(load - 6)), held, busy, busy, ended, ended * busy, int(number % 50 == 0), 900 * busy, 3000 * busy))
            store.execute("INSERT INTO spent SELECT ?, agent_id, 87, ?, ? FROM agent WHERE name = 'fix'", (end // 3_600_000, 900 * spent, 3000 * spent))
            store.execute("DELETE FROM series_head")  # the next sample counts from here

    def begin(self):
        fixed = self.import_fix()
        self.agent("review", 'max_concurrency: 2\ncommand: [sh, -c, "for i in $(seq 1 900); do echo reading file $i of $0; sleep 0.3; done", "{{module}}"]\n'
                   "args:\n  - {name: module, required: true}\n  - {name: depth, default: \"1\"}\ntitle: Review {{module}}\n")
        self.agent("publish", 'command: [sleep, "600"]\ntitle: Publish the release\n', on_crash="doubt")
        self.agent("translate", 'command: [sh, -c, "echo no such branch >&2; exit 3"]\ntitle: Translate the manual\n')
        self.agent("summarize", 'command: [sh, -c, "test $0 != appendix || exit 3; echo $0: nothing new", "{{chapter}}"]\n'
                   "args:\n  - {name: chapter, description: its name, required: true}\n  - {name: words, default: \"200\"}\ntitle: Summarize {{chapter}}\n")
        first = self.serve()
        doubtful = first.submit("publish")
        wait_for(lambda: first.run(doubtful)["state"] == "running", 10, "the run")
        first.process.kill()  # what it did until then is unknown
        first.process.wait()
        self.write_hour()
        d = daemon_support.Daemon(self.b, self.project)
        self.addCleanup(d.close)
        runs = [d.submit("review", args={"module": name}) for name in ("parser", "scheduler", "store", "protocol", "console")]
        for chapter in ("preface", "streams", "limits", "appendix"):
            d.submit("summarize", args={"chapter": chapter})
        d.submit("translate")
        d.submit("slow", session="release")
        d.submit("slow", session="release")
        wait_for(lambda: d.run(doubtful)["state"] == "in_doubt", 20, "the doubt")
        wait_for(lambda: d.get("/v1/series?span_s=3600")["series"]["held"][-1], 60, "charts that end with the present")
        return d, {"fleet": "/", "runs": "/runs", "run-live": f"/run/{runs[0]}", "run-tools": f"/run/{fixed}", "run-waiting": f"/run/{runs[-1]}", "run-in-doubt": f"/run/{doubtful}",
                   "limits": "/limits", "agents": "/agents", "agent": "/agents/summarize", "playground": "/playground/large-request?guess=1&step=129",
                   "playground-asks": "/playground"}


def main():
    daemon_support.STINT, folder = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    scene = Scene()
    try:
        scene.setUp()
        d, pages = scene.begin()
        with chromium.Browser() as browser:
            for theme in ("light", "dark"):
                page = browser.open(f"http://{d.host}:{d.port}/#token={d.token}", width=WIDTH, height=HEIGHT, dark=theme == "dark")
                page.wait("document.querySelector('.connection.live')")
                page.evaluate("document.querySelector('footer').hidden = true")  # it names the folder of the store
                for name, fragment in pages.items():
                    page.evaluate(f"location.hash = '#{fragment}'")
                    page.wait("document.querySelector('h1') && !document.querySelector('.loading')")
                    time.sleep(1.5)  # output and holders arrive
                    page.wait("[...document.querySelectorAll('.plot svg')].every((svg) => svg.clientWidth === svg.parentElement.clientWidth)")
                    picture = folder / f"dashboard-{name}-{theme}.webp"
                    page.screenshot(picture, height_max=HEIGHT_MAX, scale=SCALE, quality=QUALITY)
                    print(picture, picture.stat().st_size)
    finally:
        scene.doCleanups()


if __name__ == "__main__":
    main()
