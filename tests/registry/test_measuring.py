"""What is counted of an encoder, and what counting must not drag in."""

import subprocess
import sys


def test_counting_operations_does_not_import_the_compiler_of_torch() -> None:
    program = (
        "import sys, torch\n"
        "from registry.inspect import counting\n"
        "with torch.no_grad(), counting() as counter:\n"
        "    torch.ones(2, 3) @ torch.ones(3, 5)\n"
        "print(counter.get_total_flops(), 'torch._dynamo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert done.stdout.split() == ["60", "False"], done.stderr
