"""The imitator: a simulated robot with bounded torques that has to follow a clip in closed loop."""
