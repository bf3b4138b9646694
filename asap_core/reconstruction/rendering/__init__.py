"""Pictures of a person whose motion is known to the millimetre: a skinned body mesh before one camera."""
