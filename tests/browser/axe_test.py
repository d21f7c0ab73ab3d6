#!/usr/bin/env python3
"""axe-core finds nothing serious on any page, in any state, in both themes, wide and narrow: `axe_test.py STINT WORK`"""
import playwright_support
import scripted_server
from host_support import wait_for

LOOKS = [{"dark": dark, "width": width, "height": height} for dark in (False, True) for width, height in ((1280, 900), (360, 740))]


class Axe(playwright_support.Case):
    settings = "[pool]\nmin = 3\nmax = 6\n[budget]\ncost_per_day = 20\n"

    def assert_clean(self, page, where, look):
        with self.subTest(where, **look):
            self.until(page, "document.querySelector('h1') && !document.querySelector('.loading')")
            self.assertEqual(self.findings(page), [])

    def fleet(self):
        """A daemon with a run in every state that a page shows in its own way."""
        self.agent("review", 'max_concurrency: 1\ncommand: [sh, -c, "for i in $(seq 1 900); do echo reading $i of $0; sleep 0.3; done", "{{module}}"]\n'
                   "args:\n  - {name: module, required: true}\n  - {name: depth, default: \"1\"}\ntitle: Review {{module}}\n")
        self.agent("publish", 'command: [sleep, "600"]\ntitle: Publish\n', on_crash="doubt")
        self.agent("broken", 'command: [sh, -c, "echo no such branch >&2; exit 3"]\ntitle: Translate\n')
        first = self.serve()
        doubtful = first.submit("publish")
        wait_for(lambda: first.run(doubtful)["state"] == "running", 10, "the run")
        first.process.kill()
        first.process.wait()
        d = playwright_support.daemon_support.Daemon(self.b, self.project)
        self.addCleanup(d.close)
        live, waiting = (d.submit("review", args={"module": name}) for name in ("parser", "store"))
        done, failed, cancelled = d.submit("quick"), d.submit("broken"), d.submit("slow")
        d.ask("POST", f"/v1/runs/{cancelled}/cancel")
        for run in (done, failed, cancelled):
            d.wait(run)
        wait_for(lambda: d.run(doubtful)["state"] == "in_doubt" and d.run(live)["state"] == "running", 20, "the doubt and the live run")
        return d, {"live": live, "waiting": waiting, "in doubt": doubtful, "done": done, "failed": failed, "cancelled": cancelled}

    def test_every_page_of_a_fleet_at_work(self):
        d, runs = self.fleet()
        places = {"fleet": "/", "runs": "/runs", "runs, filtered": "/runs?state=failed", "runs, no match": "/runs?agent=nothing", "limits": "/limits", "agents": "/agents",
                  "an agent": "/agents/review", "no such run": "/run/aaaaaaaaaaaa", "no such page": "/nowhere", **{f"run {name}": f"/run/{run}" for name, run in runs.items()}}
        for look in LOOKS:
            page = self.opened(d, axe=True, **look)
            for where, fragment in places.items():
                page.evaluate(f"location.hash = '#{fragment}'")
                page.wait_for_timeout(700)  # output, holders and reasons arrive
                self.assert_clean(page, where, look)
            page.context.close()

    def test_the_playground(self):
        d = self.serve()
        places = {"asks": "/playground", "halfway": "/playground/cancelled-head?guess=1&step=12", "over": "/playground/priority-inversion?guess=1&step=2000",
                  "debt": "/playground/resize-with-debt?guess=1&step=22", "tokens": "/playground/owned-timeout?guess=0&step=80", "pools": "/playground/limit-or-reuse?guess=1&step=60&seed=3",
                  "by hand": "/playground/own", "no such lesson": "/playground/nothing"}
        for look in LOOKS:
            page = self.opened(d, axe=True, **look)
            for where, fragment in places.items():
                page.evaluate(f"location.hash = '#{fragment}'")
                page.wait_for_selector(".empty" if where == "no such lesson" else ".stage")
                page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
                self.assert_clean(page, where, look)
            page.context.close()

    def test_dialogs(self):
        d, runs = self.fleet()
        for look in LOOKS:
            page = self.opened(d, f"/run/{runs['live']}", axe=True, **look)
            page.wait_for_selector(".headline")
            for key in ("?", "c"):
                page.keyboard.press(key)
                page.wait_for_selector("dialog[open]")
                self.assert_clean(page, f"dialog of {key}", look)
                page.keyboard.press("Escape")
                page.wait_for_selector("dialog[open]", state="detached")
            page.context.close()

    def test_pages_without_data(self):
        d = self.serve()
        pages = ("/", "/runs", "/limits", "/agents", "/playground")
        for look in LOOKS:
            page = self.opened(d, axe=True, **look)
            for fragment in pages:
                page.evaluate(f"location.hash = '#{fragment}'")
                page.wait_for_timeout(300)
                self.assert_clean(page, f"{fragment}, empty", look)
            page = self.blank(axe=True, **look)
            page.goto(f"http://{d.host}:{d.port}/#token=wrong")
            page.wait_for_selector(".lock-page")
            self.assert_clean(page, "locked", look)
            page.context.close()

    def test_a_store_that_fails(self):
        server = scripted_server.Server()
        self.addCleanup(server.close)
        for path in list(server.answers):
            server.answers[path] = (503, None)
        for look in LOOKS:
            page = self.blank(axe=True, **look)
            page.goto(f"{server.url}/#token=x")
            page.wait_for_selector(".banner")
            for fragment in ("/", "/runs", "/run/aaaaaaaaaaaa", "/limits", "/agents", "/playground"):
                page.evaluate(f"location.hash = '#{fragment}'")
                page.wait_for_selector(".trouble")
                self.assert_clean(page, f"{fragment}, failing", look)
            page.context.close()

    def test_a_daemon_that_is_gone(self):
        d, runs = self.fleet()
        pages = [(look, self.opened(d, f"/run/{runs['live']}", axe=True, **look)) for look in LOOKS]
        for _, page in pages:
            page.wait_for_selector(".headline")
        d.process.kill()
        d.process.wait()
        for look, page in pages:
            page.wait_for_selector(".connection.lost")
            self.assert_clean(page, "disconnected", look)


if __name__ == "__main__":
    playwright_support.main()
