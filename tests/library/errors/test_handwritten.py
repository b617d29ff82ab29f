"""The hand-written pairs' own message."""

import pytest

from transformer_lib.datasets.handwritten import handwritten


def test_another_split_is_refused():
    with pytest.raises(ValueError, match=r"^split: expected one of train, valid, test, got 'dev'"):
        handwritten("dev")
