"""Modbus meters: registers asked one block after another; which ones stands in a table a model."""
