"""The yardstick of alignment: published policies on altered twins, every motion held out once, rivals side by side."""
