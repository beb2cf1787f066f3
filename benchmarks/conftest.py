"""Let pytest collect `bench_*.py` here; `pytest tests` never sees them."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("python_files", "bench_*.py")
