"""The one owner of the agent's disk: claims and codes committed, plans accepted."""
