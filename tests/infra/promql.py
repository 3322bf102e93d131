"""Which metrics a PromQL expression asks for, by a parser of PromQL."""

from __future__ import annotations

from typing import Any

import promql_parser


def metric_names(expression: str) -> set[str]:
    """Return the names of the metrics in an expression.

    Raises:
        ValueError: it is no PromQL.
    """
    return _names(promql_parser.parse(expression))


def _names(node: Any) -> set[str]:
    if isinstance(node, promql_parser.VectorSelector):
        assert node.name, "a metric is asked for by its name"
        return {node.name}
    if isinstance(node, promql_parser.MatrixSelector):
        return _names(node.vector_selector)
    parts = [getattr(node, name, None) for name in ("lhs", "rhs", "expr", "param")] + list(getattr(node, "args", []))
    return set[str]().union(*[_names(part) for part in parts if part is not None])
