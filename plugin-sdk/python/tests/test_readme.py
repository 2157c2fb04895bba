"""The programs on the README's page work as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from support import HERE, PYTHON, SOURCES, Process

README = HERE.parent / "README.md"


class Readme(unittest.TestCase):
    def test_its_programs_work(self) -> None:
        greet, memo, test = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("greet.py", greet), ("memo.py", memo), ("test_memo.py", test)):
                Path(folder, name).write_text(text, encoding="utf-8")
            with Process(Path(folder, "greet.py")) as plugin:
                self.assertEqual(
                    plugin.call("hello", 1, name="Ada", times=2)["result"], {"data": "hello Ada, hello Ada"}
                )
            ran = subprocess.run(
                [*PYTHON, "-m", "unittest", "-q"],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(SOURCES)},
                stderr=subprocess.PIPE,
                universal_newlines=True,
            )
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertIn("Ran 2 tests", ran.stderr)


if __name__ == "__main__":
    unittest.main()
