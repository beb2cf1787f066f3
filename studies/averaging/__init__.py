"""What an attacker learns who collects many reports of one reading."""
