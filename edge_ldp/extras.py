"""What pip installs where a package is missing: by its name, and from a clone."""

IN_A_CLONE = {
    "edge-ldp": ".",
    "edge-ldp-agent": ". ./agent",
    "edge-ldp-aggregator": ". ./aggregator",
    "edge-ldp-demo": ". ./agent ./aggregator ./firmware_stubs",
    "edge-ldp-studies": ". ./studies",
    "edge-ldp-studies[fleets]": ". ./agent ./aggregator ./firmware_stubs ./studies",
}


def pip_install(needed: str) -> str:
    """Return both commands for a distribution of ours, as "edge-ldp" or "edge-ldp[sign]"."""
    part, bracket, extras = needed.partition("[")
    there = IN_A_CLONE.get(needed, IN_A_CLONE[part])
    if bracket:
        *before, folder = there.split()
        there, needed = " ".join([*before, f"'{folder}[{extras}'"]), f"'{needed}'"
    return f"pip install {needed} (from a clone: pip install {there})"
