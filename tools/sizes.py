"""What a reviewer should look at twice: long files, full folders, many words. It only warns.

python tools/sizes.py; `make check` ends with it. The rule is the idea, not the number: a file of
410 lines with one idea is better than two that need each other.
"""

import subprocess
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
SHIPPED = ("agent", "aggregator", "edge_ldp", "firmware_stubs")
PAGES = ("README.md", "docs/*.md", "studies/*.md", "benchmarks/*.md")  # * enters folders
LINES, FILES, WORDS = 400, 20, 37_000


def tracked(*patterns: str) -> list[Path]:
    """Return the files under version control, by name."""
    listed = subprocess.run(  # noqa: S603 (our own words)
        ["git", "ls-files", *patterns],  # noqa: S607 (whichever git is at hand)
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.split()]


def main() -> None:
    """Print what is beyond a number, and the totals."""
    sources = [path for path in tracked("*.py") if path.relative_to(ROOT).parts[0] in SHIPPED]
    lines = {path: path.read_text().count("\n") for path in sources}
    for path, many in lines.items():
        if many > LINES:
            print(f"{path.relative_to(ROOT)}: {many} lines: one idea?")
    for folder, many in Counter(path.parent for path in sources).items():
        if many > FILES:
            print(f"{folder.relative_to(ROOT)}: {many} files: which room hides in it?")
    pages = [path for path in tracked(*PAGES) if "results" not in str(path.relative_to(ROOT))]
    words = sum(len(path.read_text().split()) for path in pages)  # as `wc -w` counts
    print(f"shipped {sum(lines.values())} lines; documents {words} words (aim {WORDS})")
    if words > WORDS:
        print("documents: which of them say the same thing twice?")


if __name__ == "__main__":
    main()
