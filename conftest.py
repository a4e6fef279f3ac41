"""Settings that every test run shares, also one started by hand without make.

Stored outputs are the CPU's, on one thread; kernels that nbval starts inherit these variables.
"""

import os

os.environ["CUDA_VISIBLE_DEVICES"] = os.environ.get("CUDA_VISIBLE_DEVICES", "")
for name, value in {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "TQDM_DISABLE": "1"}.items():
    os.environ.setdefault(name, value)
# A clone without the editable install still finds helpers, in kernels as well.
root = os.path.dirname(os.path.abspath(__file__))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
