"""The case that browser tests share: a daemon of their own, a browser, and pages of its dashboard."""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))

import chromium  # noqa: E402
import daemon_support  # noqa: E402


class Case(daemon_support.Case):
    """`opened` is a page of a daemon's dashboard."""

    @classmethod
    def setUpClass(cls):
        cls.browser = chromium.Browser()
        cls.addClassCleanup(cls.browser.close)

    def opened(self, d, fragment="", **options):
        page = self.browser.open(f"http://{d.host}:{d.port}/#{fragment}{'?' if fragment else ''}token={d.token}", **options)
        page.wait("document.querySelector('.connection.live')")
        return page

    def assert_no_faults(self, page):
        self.assertEqual(page.faults(), [], "the policy refused something, or a script threw")
