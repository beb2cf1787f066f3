"""The operator's verbs: `edge-ldp aggregator …` and `edge-ldp replay`."""
