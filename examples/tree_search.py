"""Tree search over sessions: try several next steps from one state, each on a branch, and go on from the best.

A branch begins with all that its parent has in memory and costs a fork, so no step is ever computed again. Here the steps
are terms of a formula that is to fit some data; with a language model they would be the cells it proposes.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import lair

BEGIN = """
import math
xs = [i / 10 for i in range(-30, 31)]
ys = [3 * math.sin(x) - 0.5 * x * x + 2 for x in xs]
terms, rest = [], list(ys)

def add(name, f):
    '''Take out of what is left as much as this term explains; what is left then, squared, is the score.'''
    column = [f(x) for x in xs]
    factor = sum(a * b for a, b in zip(column, rest)) / sum(a * a for a in column)
    rest[:] = [b - factor * a for a, b in zip(column, rest)]
    terms.append(f'{factor:+.2f} {name}')
    return sum(b * b for b in rest)
"""
STEPS = {
    "constant": "add('', lambda x: 1)",
    "line": "add('x', lambda x: x)",
    "parabola": "add('x²', lambda x: x * x)",
    "sine": "add('sin x', math.sin)",
    "cosine": "add('cos x', math.cos)",
    "a mistake": "add('log x', math.log)",
}


def score(session: lair.Session, step: str) -> float:
    """How good the state is that the step leads to; a cell that fails leads nowhere."""
    result = session.run(STEPS[step])
    return float(result.text) if result.ok and result.text else float("inf")


def search(depth: int) -> tuple[list[str], str]:
    path: list[str] = []
    best = lair.Session()
    best.run(BEGIN).raise_for_error()
    with ThreadPoolExecutor() as pool:
        for _ in range(depth):
            branches = {step: best.branch() for step in STEPS}
            scores = dict(zip(branches, pool.map(score, branches.values(), branches)))
            step = min(scores, key=lambda it: scores[it])
            path.append(f"{step} ({scores[step]:.3g})")
            best.close()
            best = branches.pop(step)
            for other in branches.values():
                other.close()
    formula = best.run("print('y =', *terms)").stdout
    best.close()
    return path, formula.strip()


if __name__ == "__main__":
    path, formula = search(depth=6)
    print(" -> ".join(path))
    print(formula)
