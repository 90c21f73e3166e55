"""What a plan does, why, and how far from the limits of the machine."""
