#!/usr/bin/env python3
"""The dashboard without a mouse and with a screen reader: reach, focus, dialogs, announcements: `keyboard_test.py STINT WORK`"""
import playwright_support
from host_support import wait_for

# What Tab must reach: everything that can be operated and is drawn.
MARK = """() => {
  const wanted = [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
    .filter((each) => !each.disabled && each.checkVisibility({visibilityProperty: true}) && !each.closest('details:not([open]) > :not(summary)'));
  wanted.forEach((each, at) => (each.dataset.reach = at));
  return wanted.map((each) => `${each.tagName} ${each.innerText || each.getAttribute('aria-label') || each.name || each.className}`);
}"""
FOCUSED = """() => {
  const at = document.activeElement, style = getComputedStyle(at), box = at.getBoundingClientRect();
  return {reach: at.dataset.reach ?? null, name: at === document.body ? 'BODY' : at.innerText || at.getAttribute('aria-label') || at.tagName, outline: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
          seen: box.width > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth};
}"""
HEAR = """() => {
  window.heard = [];
  const live = '[aria-live]:not([aria-live=off]), [role=status], [role=alert]';
  new MutationObserver((changes) => {
    for (const change of changes) {
      const node = change.target.nodeType === 1 ? change.target : change.target.parentElement;
      const added = [...change.addedNodes].filter((each) => each.nodeType === 1 && (each.matches('[role=alert]') || each.querySelector('[role=alert]')));
      if (node?.closest(live) || added.length) heard.push((node?.closest(live) ?? added[0]).innerText);
    }
  }).observe(document.body, {subtree: true, childList: true, characterData: true});
}"""


class Keyboard(playwright_support.Case):
    def fleet(self):
        self.agent("review", 'max_concurrency: 1\ncommand: [sh, -c, "while :; do echo reading; sleep 0.5; done"]\ntitle: Review\n')
        d = self.serve()
        live, _ = d.submit("review"), d.submit("review")
        d.wait(d.submit("quick"))
        wait_for(lambda: d.run(live)["state"] == "running", 10, "the run")
        return d, live

    def test_tab_reaches_everything_and_its_focus_is_seen(self):
        d, live = self.fleet()
        for fragment in ("/", "/runs", f"/run/{live}", "/limits", "/agents/review", "/playground", "/playground/own"):
            with self.subTest(fragment):
                page = self.opened(d, fragment)
                self.until(page, "document.querySelector('h1') && !document.querySelector('.loading')")
                page.wait_for_timeout(700)
                wanted = page.evaluate(MARK)
                reached, unseen = set(), []
                for _ in range(len(wanted) + 30):  # some more: a live page adds and removes rows
                    page.keyboard.press("Tab")
                    focus = page.evaluate(FOCUSED)
                    reached.add(focus["reach"])
                    if focus["name"] != "BODY" and not (focus["outline"] and focus["seen"]):
                        unseen.append(focus)
                gone = set(page.evaluate("[...Array(1000).keys()].filter((at) => !document.querySelector(`[data-reach='${at}']`)).map(String)"))
                self.assertEqual([wanted[at] for at in range(len(wanted)) if str(at) not in reached | gone], [], "out of reach")
                self.assertEqual(unseen, [])
                page.context.close()

    def test_the_skip_link_leads_to_the_content(self):
        d, _ = self.fleet()
        page = self.opened(d, "/runs")
        page.keyboard.press("Tab")
        self.assertEqual(page.evaluate("document.activeElement.className"), "skip")
        self.assertTrue(page.evaluate("document.activeElement.getBoundingClientRect().left >= 0"), "it is seen while it has the focus")
        page.keyboard.press("Enter")
        self.assertEqual(page.evaluate("document.activeElement.id"), "main")
        self.assertTrue(page.url.endswith("#/runs"))

    def test_the_focus_stays_while_the_fleet_changes(self):
        d, live = self.fleet()
        for fragment, target in (("/", "main a, main button"), ("/runs", "[data-search], .filter input"), (f"/run/{live}", "main button"), ("/limits", "main button")):
            with self.subTest(fragment):
                page = self.opened(d, fragment)
                page.wait_for_selector(target)
                page.wait_for_timeout(500)
                page.evaluate("(target) => { const at = document.querySelector(target); at.focus(); at.dataset.kept = 1; }", target)
                for _ in range(3):
                    d.wait(d.submit("quick"))
                page.wait_for_timeout(2500)  # two reads of the fleet
                self.assertEqual(page.evaluate("document.activeElement.dataset.kept"), "1")
                page.context.close()

    def test_a_dialog_keeps_the_focus_and_gives_it_back(self):
        d, live = self.fleet()
        page = self.opened(d, f"/run/{live}")
        opener = page.get_by_role("button", name="Cancel…")
        opener.focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("dialog[open]")
        for _ in range(6):
            page.keyboard.press("Tab")
            self.assertTrue(page.evaluate("document.activeElement === document.body || !!document.activeElement.closest('dialog')"))
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog[open]", state="detached")
        self.assertTrue(opener.evaluate("(each) => each === document.activeElement"))
        self.assertEqual(d.run(live)["state"], "running")

    def test_a_lost_connection_is_announced_once(self):
        d, _ = self.fleet()
        page = self.opened(d)
        page.wait_for_timeout(1500)
        page.evaluate(HEAR)
        d.wait(d.submit("quick"))
        page.wait_for_timeout(2500)
        self.assertEqual(page.evaluate("heard"), [], "a page that is live says nothing by itself")
        d.process.kill()
        d.process.wait()
        page.wait_for_selector(".connection.lost")
        page.wait_for_timeout(4500)
        heard = page.evaluate("heard")
        self.assertEqual(heard, ["Disconnected from the daemon. This page shows old data."])

    def test_a_lesson_by_keyboard(self):
        page = self.opened(self.serve(), "/playground")
        page.get_by_role("button", name="After one second").focus()
        page.keyboard.press("Enter")
        self.until(page, "document.activeElement.innerText === 'Play'")
        page.evaluate(HEAR)
        page.keyboard.press("n")
        self.until(page, "document.querySelectorAll('[data-event]').length === 1")
        self.assertIn("a enters garage.", page.evaluate("heard.join()"))
        page.keyboard.press("b")
        self.until(page, "document.querySelectorAll('[data-event]').length === 0")
        page.get_by_label("Speed").select_option("8")
        page.keyboard.press("Escape")
        page.evaluate("heard = []")
        page.keyboard.press("p")
        page.wait_for_selector(".prediction.right")
        page.wait_for_timeout(300)
        self.assertLessEqual(len(page.evaluate("heard")), 6, "it does not read every event aloud while it plays")


if __name__ == "__main__":
    playwright_support.main()
