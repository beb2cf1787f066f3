"""Every answer's keys, values and digits are those of the golden files."""

import json
import math
from pathlib import Path
from typing import Any

from msgspec.json import decode

from aggregator.answers.dossier import DossierAnswer
from aggregator.answers.parts import AnswerPart, answer_json
from aggregator.main import parser
from tests.aggregator.answers.golden import WHERE, every_answer, file_of


def alike(found: Any, kept: Any) -> bool:
    """Say whether two answers are one: floats to nine digits, as processors round their ways."""
    if type(found) is not type(kept):
        return False
    if isinstance(found, dict):
        return found.keys() == kept.keys() and all(alike(found[key], kept[key]) for key in found)
    if isinstance(found, list):
        return len(found) == len(kept) and all(map(alike, found, kept))
    if isinstance(found, float):
        return math.isclose(found, kept, rel_tol=1e-9, abs_tol=1e-12)
    return bool(found == kept)


def kind_of(words: str) -> type[AnswerPart]:
    """Return the class of a command's answers."""
    if words == "dossier":
        return DossierAnswer
    at = 2 if words.startswith(("devices", "plan", "streams")) else 1
    parts = words.split()
    kind: type[AnswerPart] = parser().parse_args([*parts[:at], "-c", "x", *parts[at:]]).kind
    return kind


def test_every_answer_has_the_keys_and_digits_that_it_always_had(tmp_path: Path) -> None:
    found = every_answer(tmp_path)
    assert {file_of(words) for words in found} == {one.name for one in WHERE.iterdir()}
    for words, (code, text) in found.items():
        kept = json.loads((WHERE / file_of(words)).read_text())
        assert (code, text) == (kept["exit"], json.dumps(json.loads(text)) + "\n"), words
        assert answer_json(decode(text, type=kind_of(words))) == text, words  # as its class says
        answer = json.loads(text)
        assert answer.keys() == kept["answer"].keys(), words
        for key, value in answer.items():
            assert alike(value, kept["answer"][key]), (words, key, value)
