"""What the best attacker found learns of a load, who chooses every plan by all that came before."""
