#!/usr/bin/env python3
"""Compares the checked-in dashboard with its sources, without Node: web/dist, web/src/api.gen.ts. Prints its weight.

`./dev web` builds both again. The test `web.build`, which needs Node, compares them byte by byte.
"""
import gzip
import hashlib
import json
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WEB = ROOT / "web"
DIST = WEB / "dist"
WEIGHT_MAX = 80_000  # bytes of everything, compressed
NAMESPACES = {"http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML", "http://www.w3.org/1999/xhtml"}  # names, not addresses


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def sources():
    """As `sources()` of web/build.mjs."""
    names = ["build.mjs", "package-lock.json", "package.json", "tsconfig.json"]
    names += [str(path.relative_to(WEB)) for path in (WEB / "src").rglob("*") if path.is_file() and path.name != "api.gen.ts"]
    return sha256("".join(f"{sha256((WEB / name).read_bytes())}  {name}\n" for name in sorted(names)).encode())


class Bundle(unittest.TestCase):
    def setUp(self):
        self.manifest = json.loads((DIST / "manifest.json").read_text(encoding="utf-8"))
        self.files = {path.name: path.read_bytes() for path in DIST.iterdir() if path.name != "manifest.json"}

    def test_it_was_built_from_these_sources(self):
        self.assertEqual(self.manifest["sources"], sources(), "web/ has changed since web/dist was built: ./dev web")

    def test_types_were_made_from_this_description_of_the_api(self):
        first = (WEB / "src/api.gen.ts").read_text(encoding="utf-8").partition("\n")[0]
        expected = f"// sha256 of src/http/openapi.json: {sha256((ROOT / 'src/http/openapi.json').read_bytes())}"
        self.assertEqual(first, expected, "src/http/openapi.json has changed since web/src/api.gen.ts was generated: ./dev web")

    def test_the_manifest_names_every_file_with_its_hash(self):
        self.assertEqual(self.manifest["files"], {name: sha256(data) for name, data in self.files.items()})

    def test_names_contain_a_hash_except_the_page(self):
        for name in self.files.keys() - {"index.html"}:
            self.assertRegex(name, r"^[a-z]+-[A-Z0-9]{8}\.(js|css|svg)$")

    def test_it_is_light(self):
        weights = {name: len(gzip.compress(data, 9)) for name, data in self.files.items()}
        print(f"web: {sum(weights.values())} of at most {WEIGHT_MAX} bytes, compressed: "
              + ", ".join(f"{name} {weight}" for name, weight in sorted(weights.items())))
        self.assertLessEqual(sum(weights.values()), WEIGHT_MAX)

    def test_it_obeys_the_content_security_policy_and_loads_nothing_from_elsewhere(self):
        for name, data in self.files.items():
            text = data.decode()
            self.assertIsNone(re.search(r"\beval\(|new Function\b|\.innerHTML\s*=[^=]\s*[a-z]\w*\.body|document\.write\(", text), name)
            self.assertEqual(set(re.findall(r"https?://[^\s\"'`<>)]+", text)) - NAMESPACES, set(), name)
        page = self.files["index.html"].decode()
        self.assertIsNone(re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=", page), "the page has inline code or style")

    def test_the_lock_file_names_no_registry(self):
        self.assertNotIn('"resolved"', (WEB / "package-lock.json").read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
