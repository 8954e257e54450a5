"""Who fits a need: signals, their fusion, and the order of hits."""
