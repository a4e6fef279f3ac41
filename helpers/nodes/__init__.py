"""Several nodes on one machine: launchers side by side, two computers on a cable, symptoms."""
