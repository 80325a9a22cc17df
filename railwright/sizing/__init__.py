"""From a model to memory, checkpoints, step time and cost, and which host fact limits."""
