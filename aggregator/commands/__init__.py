"""The operator's verbs: `edge-ldp aggregator …`, `edge-ldp dossier` and `edge-ldp replay`."""
