"""The part that runs on every device size: the same files on CPython and MicroPython."""
