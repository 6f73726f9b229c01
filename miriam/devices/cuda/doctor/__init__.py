"""What ``miriam doctor`` asks a machine: what is there, what it costs, and what is in the way."""
