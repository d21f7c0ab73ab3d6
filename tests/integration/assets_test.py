#!/usr/bin/env python3
"""The dashboard as `stint serve` delivers it: without a token, with its headers, and with nothing that needs one: `assets_test.py STINT`"""
import gzip
import hashlib
import http.client
import json
import os
import pathlib
import re
import sys
import unittest

import daemon_support

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIST = ROOT / "web/dist"
BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8", "Accept-Encoding": "gzip, deflate, br"}


class Assets(daemon_support.Case):
    def fetch(self, d, path, headers, method="GET"):
        connection = http.client.HTTPConnection(d.host, int(d.port), timeout=20)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def test_every_file_of_the_bundle_is_delivered_without_a_token(self):
        d = self.serve()
        manifest = json.loads((DIST / "manifest.json").read_text(encoding="utf-8"))
        for name, expected in manifest["files"].items():
            status, headers, body = self.fetch(d, "/" if name == "index.html" else f"/assets/{name}", BROWSER)
            self.assertEqual(status, 200, name)
            self.assertEqual(hashlib.sha256(gzip.decompress(body)).hexdigest(), expected, name)
            self.assertEqual(headers["content-encoding"], "gzip")
            self.assertEqual(headers["x-content-type-options"], "nosniff")
            self.assertEqual(headers["referrer-policy"], "no-referrer")
            self.assertNotIn("unsafe", headers["content-security-policy"])
            self.assertIn("no-cache" if name == "index.html" else "immutable", headers["cache-control"])
            status, again, body = self.fetch(d, "/" if name == "index.html" else f"/assets/{name}", {**BROWSER, "If-None-Match": headers["etag"]})
            self.assertEqual((status, body), (304, b""), name)

    def test_the_page_names_files_that_exist_and_nothing_else(self):
        d = self.serve()
        _, _, body = self.fetch(d, "/", BROWSER)
        for address in re.findall(r'(?:src|href)="([^"]+)"', gzip.decompress(body).decode()):
            self.assertEqual(self.fetch(d, address, BROWSER)[0], 200, address)

    def test_data_needs_the_token_and_other_hosts_get_nothing(self):
        d = self.serve()
        for path in ("/v1/status", "/v1/runs", "/v1/events", "/metrics", "/openapi.json", "/assets/../v1/runs"):
            status, _, body = self.fetch(d, path, BROWSER)
            self.assertIn(status, (400, 401), path)
            self.assertNotIn(b"runs\":", body)
        for path in ("/", f"/assets/{next(DIST.glob('app-*.js')).name}"):
            self.assertEqual(self.fetch(d, path, {**BROWSER, "Host": "rebound.example"})[0], 421, path)
            self.assertEqual(self.fetch(d, path, {**BROWSER, "Origin": "https://rebound.example"})[0], 403, path)
            self.assertEqual(self.fetch(d, path, BROWSER, "POST")[0], 401, path)
        self.assertEqual(self.fetch(d, "/", {})[0], 401, "a client that asks for no page")
        self.assertIn("openapi", d.get("/"))

    def test_a_client_without_gzip_and_an_old_name_are_refused(self):
        d = self.serve()
        self.assertEqual(self.fetch(d, "/", {"Accept": "text/html"})[0], 406)
        self.assertEqual(self.fetch(d, "/assets/app-OLDONE00.js", BROWSER)[0], 404)

    def test_head_sends_the_length_and_no_body(self):
        d = self.serve()
        _, got, body = self.fetch(d, "/", BROWSER)
        status, headers, nothing = self.fetch(d, "/", BROWSER, "HEAD")
        self.assertEqual((status, headers["content-length"], nothing), (200, str(len(body)), b""))
        self.assertEqual(headers["etag"], got["etag"])


if __name__ == "__main__":
    daemon_support.STINT = os.path.abspath(sys.argv.pop(1))
    unittest.main()
