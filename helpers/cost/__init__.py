"""What a schedule costs: prices on a network, loads of its ports, closed formulas, measurements."""
