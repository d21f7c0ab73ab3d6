"""A home and a folder to work in, for tests of commands."""
import pathlib
import tempfile
import unittest


class Home(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="stint-test-")
        self.addCleanup(self.temporary.cleanup)
        self.base = pathlib.Path(self.temporary.name).resolve()
        self.folder = self.base / "work"
        (self.base / "home").mkdir()
        self.folder.mkdir()
