"""Open- and closed-loop protocols, comparison of arms, and the gate before deployment."""
