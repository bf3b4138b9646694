"""Simulators behind one protocol: batched robots under joint position targets."""
