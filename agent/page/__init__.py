"""The household's page: what left this house, how it stands, and proofs; it only shows."""
