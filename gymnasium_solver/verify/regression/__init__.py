"""Whether configs still learn as they did."""
