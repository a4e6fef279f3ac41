"""Where more cards stop helping: clocks, speed-ups, noise, staleness, stragglers."""
