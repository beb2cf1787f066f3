"""Proofs of mechanisms, oracles and plans, and the certificates that say what was proved."""

from edge_ldp.certify.certificate import Certificate
from edge_ldp.certify.claims import Claim
from edge_ldp.certify.plans import certify_pair, certify_plan
from edge_ldp.certify.verdict import Verdict, certify, judge_file, judge_plan

__all__ = [
    "Certificate",
    "Claim",
    "Verdict",
    "certify",
    "certify_pair",
    "certify_plan",
    "judge_file",
    "judge_plan",
]
