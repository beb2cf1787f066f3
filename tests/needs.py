"""What tests need of the machine: without it they are skipped; where CI is set they fail.

Rights (root, a mount, IPv6) are another matter: a machine may withhold them, and installing helps
nobody.
"""

import os
import shutil
from typing import NoReturn

import pytest

REMEDY = "sh tools/install_tools.sh slow, as root"
PLACES = "/usr/sbin:/usr/local/sbin"  # where Debian keeps servers; a user's PATH lacks them


def program(name: str, remedy: str = REMEDY) -> str:
    """Return the path of a program; ends the test where there is none."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:{PLACES}") or missing(
        name, remedy
    )


def chromium() -> str:
    """Return the path of Chromium: of the build without windows, which costs less than half.

    Not every distribution has it beside the whole one, which does as well.
    """
    shell = shutil.which("chromium-headless-shell")
    return shell or program("chromium", "apt-get install --no-install-recommends chromium")


def missing(what: str, remedy: str = REMEDY) -> NoReturn:
    """End the test that cannot go on without it."""
    told = f"there is no {what}: NOT TRIED; remedy: {remedy}"
    if os.environ.get("CI"):
        pytest.fail(told, pytrace=False)
    pytest.skip(told)
