"""The API's description, with the schema of every answer, is the one that is kept in docs.

`python -m tests.test_openapi` writes it anew; then API_VERSION (aggregator/console/questions.py)
rises: its second number with what is added; what goes, or changes its meaning, needs /api/v2.
"""

import json
from pathlib import Path

from aggregator.console.questions import QUESTIONS, openapi, parameters, parser

KEPT = Path(__file__).parents[1] / "docs" / "openapi.json"
ANEW = "python -m tests.test_openapi writes docs/openapi.json anew"


def described() -> str:
    return json.dumps(openapi(), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def test_the_description_of_the_api_is_the_one_that_is_kept() -> None:
    assert described() == KEPT.read_text(), ANEW


def test_each_question_has_the_class_of_its_commands_answers() -> None:
    for name, question in QUESTIONS.items():
        if question.words and question.kind is not None:
            needed = [f"--{key}=x" for key, one in parameters(question).items() if one.required]
            args = parser().parse_args([*question.words, "-c", "x", *needed])
            assert args.kind is question.kind, name


if __name__ == "__main__":
    KEPT.write_text(described())
