"""A window on the store that looks and never touches: pages, an API, metrics, a dossier."""
