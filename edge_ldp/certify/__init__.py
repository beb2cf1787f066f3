"""Proofs of mechanisms, oracles and plans, and the certificates that say what was proved."""

from edge_ldp.certify.certificate import Certificate, ProvedClaim
from edge_ldp.certify.mechanisms import certify_pair, certify_plan
from edge_ldp.certify.sums import certify_sums
from edge_ldp.certify.verdict import Verdict, certify, judge_file, judge_plan

__all__ = [
    "Certificate",
    "ProvedClaim",
    "Verdict",
    "certify",
    "certify_pair",
    "certify_plan",
    "certify_sums",
    "judge_file",
    "judge_plan",
]
