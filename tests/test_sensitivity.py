"""How small an error does each check of the book notice?

Every chapter is executed here; each time a proof calls a named check with something measured, the check is
called again with the last number of it nudged, first by one unit in the last place, then by more. The
smallest nudge that it notices is its grade, and the table below holds it: a check that was weakened to a
tolerance, or that looks at the first rank only, gets another grade.
"""

import ast
import copy
import math
from fractions import Fraction

import matplotlib
import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
import torch
from notebooks import chapters

# By chapter and check: what it notices in the last number of the first argument that holds one. "bit": one
# unit in the last place; "rounding": one part in 1e9; "setting": it is told a setting and measures by itself,
# or the last number is none that it looks at.
GRADES = {
    "one-step": {
        "check_alone": {"bit"},
        "check_distance": {"bit", "rounding"},
        "check_finite": {"bit"},
        "check_fits": {"setting"},
        "check_one_result": {"bit"},
        "check_own": {"bit"},
        "check_replicas": {"setting"},
        "check_same_bits": {"bit"},
        "check_shuffled": {"setting"},
        "check_stored": {"bit"},
        "check_uneven": {"bit"},
    },
    "gradient-average": {
        "check_all_seen": {"bit"},
        "check_clip": {"setting"},
        "check_different": {"setting"},
        "check_exact": {"bit"},
        "check_example": {"setting"},
        "check_expectations": {"setting"},
        "check_far_apart": {"setting"},
        "check_layer": {"setting"},
        "check_masks_differ": {"setting"},
        "check_parted": {"setting"},
        "check_rung": {"bit"},
        "check_same_sums": {"bit"},
        "check_split": {"bit", "setting"},
    },
    "ring-allreduce": {
        "check_bytes": {"setting"},
        "check_centre": {"setting"},
        "check_complete": {"bit"},
        "check_everybody": {"bit"},
        "check_gathers": {"setting"},
        "check_halves": {"bit"},
        "check_links": {"bit"},
        "check_nearly_two": {"setting"},
        "check_no_centre": {"setting"},
        "check_order": {"bit", "setting"},
        "check_outcome": {"setting"},
        "check_ring": {"setting"},
        "check_same_bytes": {"setting"},
        "check_same_result": {"setting"},
        "check_states": {"setting"},
        "check_unique": {"bit"},
    },
    "alpha-beta": {
        "check_buckets": {"setting"},
        "check_crossover": {"setting"},
        "check_fits": {"setting"},
        "check_hardly_grows": {"setting"},
        "check_hides": {"setting"},
        "check_paid_once": {"setting"},
        "check_proportional": {"setting"},
        "check_resides": {"setting"},
        "check_seconds": {"bit"},
        "check_sent": {"bit"},
        "check_share": {"setting"},
        "check_slower": {"setting"},
        "check_step": {"bit"},
        "check_table": {"setting"},
        "check_tens": {"setting"},
        "check_threshold": {"bit"},
        "check_two_terms": {"setting"},
    },
    "rails-and-trees": {
        "check_below_wire": {"setting"},
        "check_bound": {"setting"},
        "check_choices": {"setting"},
        "check_eighth": {"setting"},
        "check_idle": {"setting"},
        "check_like_ring": {"setting"},
        "check_model": {"bit"},
        "check_number": {"bit"},
        "check_utilisation": {"setting"},
    },
    "ddp-run": {
        "check_collectives": {"bit"},
        "check_replicas": {"setting"},
        "check_same_as_one": {"setting"},
        "check_same_end": {"setting"},
    },
    "traps": {
        "check_accumulated": {"setting"},
        "check_averaged": {"setting"},
        "check_draws": {"setting"},
        "check_ends": {"setting"},
        "check_named": {"bit"},
        "check_outcome": {"setting"},
        "check_reductions": {"setting"},
        "check_refused": {"bit", "setting"},
        "check_storages": {"setting"},
        "check_synchronised": {"setting"},
    },
    "many-nodes": {
        "check_named": {"setting"},
        "check_numbering": {"bit"},
        "check_one_world": {"bit"},
        "check_same_bits": {"setting"},
        "check_silent": {"bit"},
    },
    "buckets-and-overlap": {
        "check_arrival": {"setting"},
        "check_at_once": {"setting"},
        "check_in_between": {"setting"},
        "check_increase": {"setting"},
        "check_small": {"setting"},
        "check_small_one": {"setting"},
        "check_steps": {"bit"},
        "check_tail": {"setting"},
        "check_tunable": {"setting"},
        "check_two_thirds": {"setting"},
        "check_view": {"setting"},
    },
    "memory": {
        "check_bytes": {"setting"},
        "check_copies": {"bit"},
        "check_counted": {"setting"},
        "check_everybody": {"bit"},
        "check_falls": {"setting"},
        "check_fits": {"setting"},
        "check_identical": {"setting"},
        "check_layer": {"setting"},
        "check_moves": {"setting"},
        "check_pieces": {"setting"},
        "check_saved": {"setting"},
        "check_size": {"bit"},
        "check_tables": {"setting"},
    },
    "precision-and-compression": {
        "check_accounted": {"setting"},
        "check_average": {"bit"},
        "check_chains": {"bit"},
        "check_crossover": {"setting"},
        "check_error": {"setting"},
        "check_nothing_lost": {"rounding"},
        "check_place": {"bit"},
        "check_trains": {"setting"},
        "check_twice": {"setting"},
        "check_volume": {"setting"},
        "check_window": {"bit", "setting"},
    },
    "hybrid": {
        "check_answer": {"bit", "setting"},
        "check_attention": {"setting"},
        "check_axes": {"setting"},
        "check_between": {"setting"},
        "check_bubble": {"setting"},
        "check_by_exchange": {"setting"},
        "check_comes_back": {"setting"},
        "check_cut": {"setting"},
        "check_data": {"setting"},
        "check_experts": {"setting"},
        "check_falls": {"setting"},
        "check_free": {"bit", "setting"},
        "check_hidden": {"setting"},
        "check_innermost": {"setting"},
        "check_kinds": {"setting"},
        "check_left": {"setting"},
        "check_less": {"setting"},
        "check_memory": {"setting"},
        "check_once": {"setting"},
        "check_outermost": {"setting"},
        "check_places": {"bit"},
        "check_quarter": {"setting"},
        "check_stages": {"setting"},
        "check_tensor": {"bit"},
        "check_three": {"setting"},
    },
    "unequal-tokens": {
        "check_gradient": {"bit"},
        "check_factor": {"bit"},
        "check_same": {"rounding"},
        "check_same_bits": {"bit"},
        "check_counts_differ": {"setting"},
        "check_four": {"bit"},
        "check_left": {"bit"},
        "check_weights": {"rounding"},
        "check_gap": {"setting"},
        "check_averages": {"setting", "bit"},
        "check_samples": {"bit"},
    },
    "scaling": {
        "check_all_wait": {"setting"},
        "check_bar": {"setting"},
        "check_below_tenth": {"setting"},
        "check_counted": {"setting"},
        "check_dearer": {"setting"},
        "check_formula": {"setting"},
        "check_gain": {"setting"},
        "check_lag": {"setting"},
        "check_law": {"setting"},
        "check_luck": {"setting"},
        "check_noise": {"setting"},
        "check_promised": {"bit"},
        "check_proportional": {"setting"},
        "check_relative": {"setting"},
        "check_rises": {"setting"},
        "check_rule": {"setting"},
        "check_same_order": {"setting"},
        "check_samples": {"setting"},
        "check_settles": {"setting"},
        "check_share": {"setting"},
        "check_six_n_d": {"setting"},
        "check_slowest": {"setting"},
        "check_stays": {"setting"},
        "check_sticks_out": {"setting"},
        "check_trajectory": {"setting"},
        "check_turns": {"setting"},
    },
    "zero": {
        "check_at_once": {"setting"},
        "check_cut": {"setting"},
        "check_kept": {"setting"},
        "check_left": {"bit"},
        "check_moves": {"bit"},
        "check_never_less": {"setting"},
        "check_norm": {"rounding"},
        "check_same": {"setting"},
        "check_trained": {"setting"},
        "check_view": {"setting"},
    },
}
NUDGES = {
    "bit": lambda x: x + 1 if isinstance(x, int) else math.nextafter(x, math.inf),
    "rounding": lambda x: x * (1 + 1e-9) if isinstance(x, float) else x,
}


def nudged(thing, nudge):
    """A copy of `thing` with its last number nudged, or None where it holds no number."""
    if isinstance(thing, bool) or thing is None:
        return None
    if isinstance(thing, Fraction):
        return thing + Fraction(1, 10**15)
    if isinstance(thing, int | float):
        return nudge(thing)
    if isinstance(thing, np.ndarray):
        return nudged(torch.from_numpy(thing), nudge)
    if isinstance(thing, torch.Tensor):
        if not thing.is_floating_point():
            return None
        result = thing.clone()
        last = result.view(-1)[-1]
        up = torch.tensor(math.inf, dtype=last.dtype)
        bit = nudge is NUDGES["bit"]
        result.view(-1)[-1] = torch.nextafter(last, up) if bit else nudge(last.item())
        return result
    if isinstance(thing, dict):
        for key in reversed(list(thing)):
            changed = nudged(thing[key], nudge)
            if changed is not None:
                return {**thing, key: changed}
    if isinstance(thing, list | tuple):
        for i in reversed(range(len(thing))):
            changed = nudged(thing[i], nudge)
            if changed is not None:
                parts = [*thing[:i], changed, *thing[i + 1 :]]
                return tuple(parts) if isinstance(thing, tuple) else parts
    return None


def notices(check, arguments, options, nudge) -> bool:
    """Does the check raise AssertionError once the first argument that holds a number is nudged?"""
    for i, argument in enumerate(arguments):
        changed = nudged(copy.deepcopy(argument), nudge)
        if changed is not None:
            try:
                check(*arguments[:i], changed, *arguments[i + 1 :], **options)
            except AssertionError:
                return True
            except Exception:
                return False
            return False
    return False


matplotlib.use("Agg")


class Probe(ast.NodeTransformer):
    """Replaces check_x(...) by probe(check_x, ...), outside the checks' own definitions."""

    def visit_FunctionDef(self, node):
        return node

    def visit_Call(self, node):
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id.startswith("check_"):
            node.args.insert(0, node.func)
            node.func = ast.Name("probe", ast.Load())
        return node


def grades_of(path) -> dict[str, set[str]]:
    """Execute a chapter; the grade of every call of a check in its proofs, by the check's name."""
    found: dict[str, set] = {}

    def probe(check, *arguments, **options):
        answer = check(*arguments, **options)
        noticed = (grade for grade, nudge in NUDGES.items() if notices(check, arguments, options, nudge))
        grade = next(noticed, "setting")
        found.setdefault(check.__name__, set()).add(grade)
        return answer

    names = {"__name__": "chapter", "probe": probe}
    for cell in nbformat.read(path, as_version=4).cells:
        tags = cell.metadata.get("tags", [])
        if cell.cell_type != "code" or {"break", "nbval-ignore-output"} & set(tags):
            continue  # a break has no grade, and what only shows this machine proves nothing
        tree = ast.parse(cell.source)
        if "claim" in tags:
            tree = ast.fix_missing_locations(Probe().visit(tree))
        exec(compile(tree, cell.id, "exec"), names)
    plt.close("all")
    return found


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_every_check_keeps_its_grade(path):
    assert grades_of(path) == GRADES[path.stem]
