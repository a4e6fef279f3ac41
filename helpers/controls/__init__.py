"""Live controls: sliders with Python behind them in JupyterLab, a picture of the same numbers on the site."""
