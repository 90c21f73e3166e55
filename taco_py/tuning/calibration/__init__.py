"""The analytic price fitted to this machine: probes, their parts, the factors of these."""
