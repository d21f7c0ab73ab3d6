"""Playwright on Debian's Chromium, and axe-core: for browser tests that are too long for the normal suite.

    class Lists(playwright_support.Case):
        def test_the_filter_keeps_its_focus(self):
            page = self.opened(self.serve(), "/runs")
            page.get_by_label("Agent").fill("quick")

    if __name__ == "__main__":
        playwright_support.main()  # NAME_test.py STINT WORK [CLASS …]

The packages come from PyPI (its wheel carries Playwright's driver) and npm, and are installed into WORK, which all such tests share. Without
TESTS_FROM_REGISTRIES=1, without Chromium or without the packages a test prints SKIPPED and the reason.
"""
import fcntl
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import time
import unittest

import browser_support  # noqa: F401  finds the helpers of the integration tests
import chromium
import daemon_support

PYPI = "playwright==1.*"
NPM = "axe-core@4"
INSTALL_SECONDS = 300
WAIT_MS = 20_000
WORK = pathlib.Path()


class Missing(Exception):
    """Something that the tests need can't be had here."""


def run(*words):
    if shutil.which(words[0]) is None:
        raise Missing(f"{words[0]} is not installed")
    try:
        done = subprocess.run(words, cwd=WORK, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    except (subprocess.TimeoutExpired, OSError) as error:
        raise Missing(str(error)) from None
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines()
        raise Missing(f"{' '.join(words)}: {said[-1] if said else done.returncode}")


def install():
    """Once per build folder; tests that start together wait for the first."""
    WORK.mkdir(parents=True, exist_ok=True)
    with open(WORK / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = WORK / f"installed-{sys.version_info.major}.{sys.version_info.minor}"
        if not done.exists():
            run(sys.executable, "-m", "venv", str(WORK / "venv"))  # Debian has it in a separate package
            run(str(WORK / "venv/bin/pip"), "install", "--quiet", PYPI)
            (WORK / "package.json").write_text('{"private": true}\n')
            run("npm", "install", "--no-audit", "--no-fund", "--loglevel=error", NPM)
            done.touch()
    sys.path.append(sysconfig.get_path("purelib", vars={"base": str(WORK / "venv")}))


def main():
    """The end of every script: installs what it needs, and runs its tests."""
    global WORK
    if os.environ.get("TESTS_FROM_REGISTRIES") != "1":
        print("SKIPPED: it installs packages from registries; `./dev test --full` runs it")
        return
    daemon_support.STINT, WORK = os.path.abspath(sys.argv.pop(1)), pathlib.Path(sys.argv.pop(1)).resolve()
    Case.work = WORK
    chromium.skip_without_chromium()
    try:
        install()
    except Missing as missing:
        print(f"SKIPPED: {missing}")
        return
    unittest.main(module="__main__", verbosity=2)


class Case(daemon_support.Case):
    """`opened` is a page of a daemon's dashboard, in a context of its own: nothing is kept from other pages."""

    work = WORK

    @classmethod
    def setUpClass(cls):
        from playwright.sync_api import sync_playwright  # installed by main()

        playwright = sync_playwright().start()
        cls.addClassCleanup(playwright.stop)
        cls.browser = playwright.chromium.launch(executable_path=chromium.PROGRAM, chromium_sandbox=os.geteuid() != 0)
        cls.addClassCleanup(cls.browser.close)

    def blank(self, width=1280, height=900, dark=False, motion=False, axe=False):
        """An empty page. `axe` lifts the content security policy, so that axe-core can be injected; other pages keep theirs."""
        context = self.browser.new_context(viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", bypass_csp=axe,
                                           reduced_motion="no-preference" if motion else "reduce", is_mobile=width < 600, has_touch=width < 600)
        context.set_default_timeout(WAIT_MS)
        self.addCleanup(context.close)
        page = context.new_page()
        page.add_init_script(chromium.WATCH)
        return page

    def opened(self, d, fragment="", **options):
        page = self.blank(**options)
        page.goto(f"http://{d.host}:{d.port}/#{fragment}{'&' if '?' in fragment else '?' if fragment else ''}token={d.token}")
        page.wait_for_selector(".connection.live")
        return page

    def until(self, page, script, seconds=WAIT_MS / 1000):
        """Until the script gives something true. (Playwright's own wait evaluates in the page, which the policy refuses.)"""
        end = time.monotonic() + seconds
        while not page.evaluate(f"!!({script})"):
            self.assertLess(time.monotonic(), end, f"not within {seconds} s: {script}")
            page.wait_for_timeout(50)

    def assert_no_faults(self, page):
        self.assertEqual(page.evaluate("window.__faults"), [], "the policy refused something, or a script threw")

    def findings(self, page, impacts=("serious", "critical")):
        """What axe-core finds on the page, one line each: rule, impact, and the first elements."""
        if not page.evaluate("'axe' in window"):
            page.add_script_tag(path=self.work / "node_modules/axe-core/axe.min.js")
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        return [f"{each['id']} ({each['impact']}): {each['help']}: " + "; ".join(f"{node['html'][:160]} {node['failureSummary'][:300]}" for node in each["nodes"][:4])
                for each in found if each["impact"] in impacts]
