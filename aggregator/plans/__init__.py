"""What the fleet is asked next: decided from counts, signed, published and retained."""
