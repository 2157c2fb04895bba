"""The golden plugin declares what every SDK's does, and behaves alike."""

from __future__ import annotations

import json
import subprocess

import unittest

from support import GOLDEN, HERE, PYTHON, InMemory, Process, play, quietly

import golden

SESSIONS = sorted((GOLDEN / "sessions").glob("*.jsonl"))


class Golden(unittest.TestCase):
    def test_manifest(self) -> None:
        described = subprocess.run(
            [*PYTHON, str(HERE / "golden.py"), "--describe"], stdout=subprocess.PIPE, check=True
        ).stdout
        self.maxDiff = None
        self.assertEqual(json.loads(described), json.loads((GOLDEN / "manifest.json").read_text(encoding="utf-8")))

    def test_sessions_as_a_process(self) -> None:
        self.assertGreaterEqual(len(SESSIONS), 5)
        for session in SESSIONS:
            with self.subTest(session.name), Process(HERE / "golden.py") as plugin:
                play(session, plugin)

    def test_sessions_in_memory(self) -> None:
        for session in SESSIONS:
            with self.subTest(session.name), quietly(), InMemory(golden.plugin) as plugin:
                play(session, plugin)


if __name__ == "__main__":
    unittest.main()
