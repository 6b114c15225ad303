"""Does ``novelty`` recognize rows that are unlike the training data? Fashion images, on a map of MNIST.

    TSEE_DATA=folder python benchmarks/novelty.py

The result goes to benchmarks/results/novelty.json. The map is trained for one epoch only: novelty depends on the
exemplars, not on their positions.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

import tsee

RESULT = Path(__file__).parent / "results" / "novelty.json"


def main() -> None:
    mnist, fashion = tsee.datasets.load_mnist(), tsee.datasets.load_fashion()
    result = {}
    for name, parameters in {
        "defaults": {},
        "2,000 k-means centers": {"exemplars": "centers", "n_exemplars": 2000},
    }.items():
        see = tsee.DtSEE(max_epochs=1, refinement=0, random_state=0, **parameters).fit(mnist.x_train)
        own, other = see.novelty(mnist.x_test), see.novelty(fashion.x_test)
        is_other = np.repeat([0, 1], [len(own), len(other)])
        result[name] = {
            "AUROC": round(float(roc_auc_score(is_other, np.concatenate([own, other]))), 4),
            "digits above 0.99 %": round(100 * float((own > 0.99).mean()), 2),
            "Fashion above 0.99 %": round(100 * float((other > 0.99).mean()), 2),
        }
        print(name, result[name], flush=True)
    RESULT.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
