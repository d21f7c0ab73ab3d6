#!/usr/bin/env python3
"""Takes pictures of every page of the dashboard in light and dark: `dashboard.py STINT FOLDER`; those of docs: `… docs/pictures`

Starts a daemon with some agents and runs in a folder of its own, among them a run in doubt, and opens its pages in Chromium.
"""
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/browser"), str(ROOT / "tests/integration")]

import chromium  # noqa: E402
import daemon_support  # noqa: E402
from host_support import wait_for  # noqa: E402


HEIGHT_MAX = 1400  # what fits on a page of docs
SCALE = 0.75


class Scene(daemon_support.Case):
    """A fleet at work."""

    settings = "[pool]\nmin = 4\nmax = 8\n[budget]\ncost_per_day = 20\n"

    def runTest(self):  # noqa: N802  the name that the library calls
        pass

    def begin(self):
        self.agent("review", 'max_concurrency: 2\ncommand: [sh, -c, "for i in $(seq 1 900); do echo reading file $i of $0; sleep 0.3; done", "{{module}}"]\n'
                   "args:\n  - {name: module, required: true}\n  - {name: depth, default: \"1\"}\ntitle: Review {{module}}\n")
        self.agent("publish", 'command: [sleep, "600"]\ntitle: Publish the release\n', on_crash="doubt")
        self.agent("translate", 'command: [sh, -c, "echo no such branch >&2; exit 3"]\ntitle: Translate the manual\n')
        first = self.serve()
        doubtful = first.submit("publish")
        wait_for(lambda: first.run(doubtful)["state"] == "running", 10, "the run")
        first.process.kill()  # what it did until then is unknown
        first.process.wait()
        d = daemon_support.Daemon(self.b, self.project)
        self.addCleanup(d.close)
        runs = [d.submit("review", args={"module": name}) for name in ("parser", "scheduler", "store", "protocol", "console")]
        for _ in range(3):
            d.submit("quick", args={"what": "hello"})
        d.submit("translate")
        d.submit("slow", session="release")
        d.submit("slow", session="release")
        wait_for(lambda: d.run(doubtful)["state"] == "in_doubt", 20, "the doubt")
        return d, {"fleet": "/", "runs": "/runs", "run-live": f"/run/{runs[0]}", "run-waiting": f"/run/{runs[-1]}", "run-in-doubt": f"/run/{doubtful}",
                   "limits": "/limits", "agents": "/agents/review", "playground": "/playground/large-request?guess=1&step=129",
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
                page = browser.open(f"http://{d.host}:{d.port}/#token={d.token}", width=1180, dark=theme == "dark")
                page.wait("document.querySelector('.connection.live')")
                for name, fragment in pages.items():
                    page.evaluate(f"location.hash = '#{fragment}'")
                    page.wait("document.querySelector('h1') && !document.querySelector('.loading')")
                    time.sleep(1.5)  # output and holders arrive
                    picture = folder / f"dashboard-{name}-{theme}.webp"
                    page.screenshot(picture, height_max=HEIGHT_MAX, scale=SCALE)
                    print(picture, picture.stat().st_size)
    finally:
        scene.doCleanups()


if __name__ == "__main__":
    main()
