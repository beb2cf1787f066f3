"""The demo: the whole main job on bundled real data, checked against a truth only it knows."""
