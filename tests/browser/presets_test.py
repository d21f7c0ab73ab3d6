#!/usr/bin/env python3
"""Each preset of the playground played to its end in a browser, the same by seed: `presets_test.py STINT WORK`"""
import playwright_support
from playground_support import ROWS, played, row

COUNT_DRIVES = """() => {
  window.driven = 0;
  const animate = Element.prototype.animate;
  Element.prototype.animate = function (...all) { ++window.driven; return animate.apply(this, all); };
}"""


class Presets(playwright_support.Case):
    def end_of(self, d, name, seed=None, predict=None):
        """Plays a lesson event by event as fast as it goes, and gives the events that the page shows."""
        page = self.opened(d, f"/playground/{name}" + (f"?seed={seed}" if seed is not None else ""))
        page.get_by_role("group", name="Predict first").get_by_role("button", name=predict or "Just show me", exact=True).click()
        page.get_by_label("Speed").select_option("8")
        page.get_by_role("button", name="Play", exact=True).click()
        page.wait_for_selector(".prediction.over", timeout=120_000)
        self.assert_no_faults(page)
        return page, page.evaluate(ROWS)

    def test_each_preset_shows_what_the_server_says(self):
        d = self.serve()
        for preset in d.get("/v1/playground")["presets"]:
            with self.subTest(preset["name"]):
                page, rows = self.end_of(d, preset["name"], predict=preset["choices"][preset["answer"]])
                end = played(d, preset=preset["name"])
                self.assertEqual(rows, [row(event) for event in end["events"]])
                verdict = page.locator(".prediction.right .verdict").inner_text()
                self.assertIn(f"As you predicted: {preset['choices'][preset['answer']]}", verdict)
                self.assertIn(preset["why"], page.locator(".prediction").inner_text())
                self.assertEqual(page.locator(".car").count(), 0, "every unit is back")
                self.assertIn(f"step={end['step']}", page.url)

    def test_the_same_seed_shows_the_same_and_another_may_differ(self):
        d = self.serve()
        seen = {}
        for seed in (1, 1, 2, 3, 4):
            _, rows = self.end_of(d, "three-at-two", seed=seed)
            self.assertEqual(rows, [row(event) for event in played(d, preset="three-at-two", order="seeded", seed=seed)["events"]])
            self.assertEqual(seen.setdefault(seed, rows), rows, f"seed {seed}")
        self.assertGreater(len(set(map(tuple, seen.values()))), 1, "some of four seeds differ")

    def test_leaked_tokens_are_metered(self):
        page, _ = self.end_of(self.serve(), "owned-timeout")
        self.assertEqual(page.locator(".meter dd").all_inner_texts(), ["60", "40"])

    def test_cars_drive_unless_less_motion_is_preferred(self):
        d = self.serve()
        for motion in (False, True):
            page = self.opened(d, "/playground/three-at-two?guess=0", motion=motion)
            page.evaluate(COUNT_DRIVES)
            page.get_by_role("button", name="To the end").click()
            page.wait_for_selector(".prediction.over")
            page.get_by_role("button", name="Back", exact=True).click()
            page.wait_for_selector(".car")
            self.assertEqual(page.evaluate("window.driven > 0"), motion)


if __name__ == "__main__":
    playwright_support.main()
