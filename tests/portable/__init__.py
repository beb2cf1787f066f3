"""What runs on MicroPython; `tests/test_portable.py` starts it there."""
