#!/usr/bin/env python3
"""The playground of a real daemon: its presets, its bounds, and that a heavy sandbox holds up no other request."""
import concurrent.futures
import os
import re
import sys
import time
import unittest

import daemon_support


class Playground(daemon_support.Case):
    def setUp(self):
        super().setUp()
        self.d = self.serve()

    def open(self, body):
        status, sandbox, headers = self.d.ask("POST", "/v1/playground", body)
        self.assertEqual((status, headers["Location"]), (201, f"/v1/playground/{sandbox['id']}"), sandbox)
        return headers["Location"], sandbox

    def change(self, path, body=None):
        status, sandbox, _ = self.d.ask("POST", path, body)
        self.assertEqual(status, 200, (path, body, sandbox))
        return sandbox

    def test_each_preset_plays_to_its_end_the_same_by_seed(self):
        presets = self.d.get("/v1/playground")["presets"]
        self.assertEqual(len(presets), 8)
        for preset in presets:
            for order in ("fifo", "seeded"):
                ends = []
                for _ in range(2):
                    path, _ = self.open({"preset": preset["name"], "seed": 7, "order": order})
                    ends.append(self.change(f"{path}/play"))
                    self.assertEqual(self.d.ask("DELETE", path)[0], 204)
                self.assertTrue(ends[0]["done"], preset["name"])
                self.assertEqual(ends[0]["events"], ends[1]["events"], preset["name"])

    def test_a_sandbox_is_played_by_hand_and_made_anew(self):
        resources = [{"name": "garage", "kind": "semaphore", "capacity": 1}]
        path, _ = self.open({"resources": resources})
        for body in ({"do": "acquire", "task": "a", "resource": "garage"}, {"do": "acquire", "task": "b", "resource": "garage", "timeout_ms": 500},
                     {"do": "advance", "ms": 1000}, {"do": "release", "task": "a", "resource": "garage"}):
            sandbox = self.change(f"{path}/act", body)
        self.assertEqual([(event["kind"], event["task"], event["at_ms"]) for event in sandbox["events"]],
                         [("granted", "a", 0), ("waits", "b", 0), ("left", "b", 500), ("released", "a", 1000)])
        self.assertEqual(self.d.get(path), sandbox)
        _, again = self.open({"resources": resources, "actions": sandbox["actions"], "step": sandbox["step"]})
        self.assertEqual({**again, "id": 0}, {**sandbox, "id": 0})
        back = self.change(f"{path}/back", {"steps": sandbox["step"]})
        self.assertEqual((back["step"], back["actions"], back["events"], back["now_ms"]), (0, [], [], 0))

    def test_sandboxes_are_bounded(self):
        first, _ = self.open({})
        for _ in range(20):
            self.open({"resources": [{"name": "garage", "kind": "semaphore", "capacity": 1}]})
        self.assertEqual(self.d.ask("GET", first)[0], 404)
        self.assertEqual(re.search(r"^stint_playground_sandboxes (\d+)", self.d.get("/metrics"), re.M).group(1), "16")
        self.assertEqual(self.d.ask("POST", "/v1/playground", {"actions": [{"do": "advance", "ms": 0}] * 2001})[0], 422)

    def test_heavy_replays_hold_up_no_other_request(self):
        """As heavy as the bounds allow. Whether each is cut depends on the machine; the daemon answers others meanwhile."""
        heavy = {"resources": [{"name": name, "kind": "semaphore", "capacity": 1} for name in "abcd"],
                 "actions": [{"do": "acquire", "task": f"t{i}", "resource": "abcd"[i % 4]} for i in range(60)]
                 + [{"do": "stream", "task": "meter", "units": 100, "ms": 1}] * 190}
        paths = [self.open(heavy)[0] for _ in range(4)]
        with concurrent.futures.ThreadPoolExecutor(16) as threads:
            asked = [threads.submit(self.d.ask, "POST", f"{path}/play") for path in paths * 8]
            answered = 0
            while not all(each.done() for each in asked):
                self.assertEqual(self.d.ask("GET", "/healthz")[0], 200)
                answered += 1
                time.sleep(0.001)
            statuses = {each.result()[0] for each in asked}
        self.assertLessEqual(statuses, {200, 409, 503})  # 409: another request has changed it meanwhile
        self.assertGreater(answered, len(asked) // 8, "the probes were answered between the replays")


if __name__ == "__main__":
    daemon_support.STINT = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
