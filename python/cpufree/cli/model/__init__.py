"""Commands about times without a solve: `cpufree model`, `predict` and `simulate`."""
