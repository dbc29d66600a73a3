"""Whole encoders are captured by dynamo at any length; what each part does to a layer is a promise.

In a process of its own: the checks of shapes that tests add cannot be captured.
"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CAPTURE = """
import sys, torch
from registry import build_encoder

config, training = eval(sys.argv[1]), sys.argv[2] == "training"
encoder = build_encoder(config, seed=0).train(training)
graphs = []

def backend(graph, inputs):
    graphs.append(graph)
    return graph.forward

captured = torch.compile(encoder, backend=backend, fullgraph=True)
for length in (4, 5, 6, 7, 8, 9, 12, 17, 33, 40):
    tokens = torch.randint(0, 12, (3, length), generator=torch.Generator().manual_seed(length))
    answers = []
    for one in (captured, encoder):
        torch.manual_seed(0)
        answers.append(one(tokens).readout)
    torch.testing.assert_close(*answers)
print(len(graphs))
"""
SMALL = {"d_model": 16, "n_heads": 2, "n_layers": 2, "vocab_size": 12}
ENCODERS = {
    "padded": {"pad_id": 0, "position": "rope", "dropout": 0.1},
    "causal": {"mask": "causal", "position": "xpos", "norm": "rmsnorm"},
    "causal and padded": {"mask": "causal", "position": "alibi", "pad_id": 0},
    "in query blocks": {"attention": "chunked", "position": "t5_bias", "pad_id": 0},
    "patterned": {"mask": "window(radius=2) | global_tokens(count=1)", "norm_placement": "post"},
}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["training", "evaluation"])
@pytest.mark.parametrize("name", ENCODERS)
def test_ten_lengths_need_three_graphs_at_most(name: str, mode: str) -> None:
    words = [sys.executable, "-c", CAPTURE, repr({**SMALL, **ENCODERS[name]}), mode]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= 3
