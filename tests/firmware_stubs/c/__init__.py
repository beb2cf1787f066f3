"""Tests of the C kernel: on the host, under the sanitizers, and on a Cortex-M3 under QEMU."""
