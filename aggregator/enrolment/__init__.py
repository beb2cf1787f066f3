"""How a fleet comes about: the broker's files, certificates, devices' logins and invitations."""
