"""Learning to track: PPO, checkpoints, the policy contract, ONNX."""
