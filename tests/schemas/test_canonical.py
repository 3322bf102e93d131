from __future__ import annotations

import base64
import datetime
import json
import math
import struct
from typing import Any

import msgpack
import msgspec
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from loopwarden_schemas.canonical import MAX_NESTING, NotCanonical, canonical

# Names in which UTF-16 order, code point order and UTF-8 order differ: astral characters sort before U+E000 and after.
KEYS = st.one_of(
    st.text(max_size=3), st.text(alphabet=["a", "b", "\ue000", "\uffff", "\U00010000", "\U0001f600", "é"], max_size=3)
)
NUMBERS = st.one_of(
    st.integers(-(2**53) + 1, 2**53 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(0, 2**64 - 1)
    .map(lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0])
    .filter(lambda number: math.isfinite(number)),
    st.builds(lambda digits, exponent: float(f"{digits}e{exponent}"), st.integers(1, 10**17), st.integers(-30, 30)),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=12,
)


@given(VALUES)
def test_it_is_what_the_rfc8785_package_says(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@given(NUMBERS)
def test_a_number_is_printed_as_the_rfc8785_package_prints_it(number: float) -> None:
    assert canonical(number) == rfc8785.dumps(number)


@given(VALUES)
def test_it_is_json_of_the_same_value(value: Any) -> None:
    # All numbers are doubles.
    assert json.loads(canonical(value), parse_int=float) == value


@given(VALUES)
def test_the_canonical_form_of_what_it_says_is_itself(value: Any) -> None:
    assert canonical(json.loads(canonical(value))) == canonical(value)


@given(st.dictionaries(KEYS, VALUES, max_size=6), st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_matter(value: dict[str, Any], random: Any) -> None:
    shuffled = list(value.items())
    random.shuffle(shuffled)
    assert canonical(dict(shuffled)) == canonical(value)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (123456789012345680000.0, "123456789012345680000"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (-1.5e-9, "-1.5e-9"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (333333333.33333329, "333333333.3333333"),
    ],
)
def test_numbers_are_printed_as_ecmascript_prints_a_double(number: float, text: str) -> None:
    assert canonical(number) == text.encode()


@given(st.integers(2**53, 2**1023), st.sampled_from((1, -1)))
def test_an_integer_beyond_the_safe_ones_is_the_nearest_double(size: int, sign: int) -> None:
    assert canonical(sign * size) == canonical(float(sign * size))
    assert canonical([{"n": sign * size}]) == canonical([{"n": float(sign * size)}])


def test_booleans_and_numbers_never_coincide() -> None:
    assert canonical([True, False]) == b"[true,false]"
    assert canonical([1, 0]) == b"[1,0]"


@given(st.binary(max_size=20))
def test_binary_is_its_base64_text(data: bytes) -> None:
    text = base64.b64encode(data).decode()
    assert canonical(data) == canonical(text)
    assert canonical({"a": [data, 0.5]}) == canonical({"a": [text, 0.5]})


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (math.nan, "numbers must be finite, got nan"),
        (-math.inf, "numbers must be finite, got -inf"),
        (10**400, "numbers must be finite, got a huge integer"),
        ({1: "a"}, "keys must be strings"),
        ({None: "a"}, "keys must be strings"),
        ({("a",): "a"}, "keys must be strings"),
        ({b"a": "a"}, "keys must be strings"),
        ("\ud800", "strings must not hold lone surrogates"),
        ({"\udc00": 1}, "strings must not hold lone surrogates"),
        (datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc), "not a JSON value: datetime"),
        (msgspec.msgpack.Ext(5, b"x"), "not a JSON value: Ext"),
        (msgpack.ExtType(5, b"x"), "not a JSON value: ExtType"),
        (msgpack.Timestamp(5), "not a JSON value: Timestamp"),
        ((1, 2), "not a JSON value: tuple"),
        ({1, 2}, "not a JSON value: set"),
    ],
    # Not by their repr, which may say where they lie in memory.
    ids=lambda value: value if isinstance(value, str) and value.isascii() else type(value).__name__,
)
@pytest.mark.parametrize(
    "place",
    [
        lambda value: value,
        lambda value: [value],
        lambda value: {"a": value},
        # A float, a binary and an astral key each take the careful path.
        lambda value: [0.5, value],
        lambda value: [b"", {"a": [value]}],
        lambda value: {"\U0001f600": value, "z": 1},
    ],
    ids=["alone", "in-list", "in-object", "beside-float", "beside-binary", "under-astral-key"],
)
def test_what_json_does_not_have_is_refused_and_the_rule_is_said(value: Any, rule: str, place: Any) -> None:
    with pytest.raises(NotCanonical, match="^" + rule.replace("(", r"\(")):
        canonical(place(value))


@pytest.mark.parametrize("leaf", [1, 0.5, "a", None])
@pytest.mark.parametrize("layer", [lambda inner: [inner], lambda inner: {"k": inner}], ids=["lists", "objects"])
def test_64_levels_are_taken_and_65_refused(leaf: Any, layer: Any) -> None:
    value = leaf
    for _ in range(MAX_NESTING):
        value = layer(value)
    assert canonical(value)
    with pytest.raises(NotCanonical, match="nested deeper than 64"):
        canonical(layer(value))


@pytest.mark.parametrize("leaf", [1, 0.5])
def test_a_value_too_deep_for_python_is_refused_like_any_other(leaf: Any) -> None:
    deep = leaf
    key: Any = "k"
    for _ in range(100_000):
        deep = [deep]
        key = (key,)
    with pytest.raises(NotCanonical, match="nested deeper than 64"):
        canonical(deep)
    with pytest.raises(NotCanonical, match="keys must be strings"):
        canonical({key: leaf})
