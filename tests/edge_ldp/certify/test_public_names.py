"""The names that others may use."""

import edge_ldp.certify


def test_the_public_names_are_these() -> None:
    assert edge_ldp.certify.__all__ == [
        "Certificate",
        "Claim",
        "Verdict",
        "certify",
        "certify_pair",
        "certify_plan",
        "judge_file",
        "judge_plan",
    ]
