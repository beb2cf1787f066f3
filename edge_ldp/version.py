"""The version, in one place and cheap to read: importlib.metadata costs a device 2 MiB."""

__version__ = "0.1.0"
