"""The agent on other processors, by QEMU's user mode: what it does there, never how fast."""
