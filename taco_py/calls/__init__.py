"""From the arguments of a call to a plan that runs."""
