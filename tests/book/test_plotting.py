"""Pictures: one figure each, the right size, Korean letters, no warnings."""

import subprocess
import sys

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
import torch

from transformer_lib.course import plotting


@pytest.fixture(autouse=True)
def style():
    with mpl.rc_context():
        plotting.use_style()
        yield
    plt.close("all")


DRAWINGS = {
    "heatmap": lambda ax=None: plotting.heatmap(torch.eye(3), ax=ax),
    "arrows": lambda ax=None: plotting.arrows({"a": torch.tensor([1.0, 2.0])}, ax=ax),
}


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)
def test_a_drawing_makes_one_figure_of_the_books_width(draw):
    ax = draw()
    assert len(plt.get_fignums()) == 1
    assert ax.figure.get_size_inches()[0] == pytest.approx(7.2)
    assert all(plt.figure(number).axes for number in plt.get_fignums())


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)
def test_given_axes_no_figure_is_made(draw):
    _, ax = plotting.figure()
    for _ in range(25):
        assert draw(ax) is ax
    assert len(plt.get_fignums()) == 1


def test_figure_has_the_height_and_grid_asked_for():
    figure, axes = plotting.figure(2.5, rows=2, columns=3, sharex=True)
    assert tuple(figure.get_size_inches()) == pytest.approx((7.2, 2.5))
    assert axes.shape == (2, 3)
    assert len(plt.get_fignums()) == 1


def test_heatmap_puts_numbers_and_labels_where_they_belong():
    matrix = torch.tensor([[0.0, 0.25, -1.0], [0.5, 0.75, 1.0]])
    ax = plotting.heatmap(matrix, ["r0", "r1"], ["c0", "c1", "c2"], title="t")
    written = {text.get_position(): text.get_text() for text in ax.texts}
    assert written[2, 0] == "−1.00"
    assert written[1, 1] == "0.75"
    assert [label.get_text() for label in ax.get_yticklabels()] == ["r0", "r1"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["c0", "c1", "c2"]
    assert ax.get_title() == "t"
    assert torch.equal(torch.tensor(ax.images[0].get_array().data), matrix)
    top, bottom = ax.get_ylim()[1], ax.get_ylim()[0]
    assert top < bottom, "row 0 is at the top"


def test_heatmap_writes_numbers_only_where_there_is_room():
    assert not plotting.heatmap(torch.rand(9, 9)).texts
    assert len(plotting.heatmap(torch.rand(9, 9), annotate=True).texts) == 81
    assert not plotting.heatmap(torch.rand(2, 2), annotate=False).texts


def test_a_diverging_heatmap_has_white_at_zero():
    image = plotting.heatmap(torch.tensor([[-1.0, 3.0]]), diverging=True).images[0]
    assert image.get_clim() == (-3.0, 3.0)


def test_heatmap_of_one_number_or_a_tensor_with_gradient():
    plotting.heatmap(torch.zeros(1, 1))
    plotting.heatmap(torch.rand(2, 2, requires_grad=True))


def test_arrows_end_where_the_vectors_do():
    ax = plotting.arrows({"a": torch.tensor([1.0, 2.0]), "b": torch.tensor([-1.0, 0.5])})
    assert [text.xy for text in ax.texts if text.get_text()] == [(1.0, 2.0), (-1.0, 0.5)]
    left, right = ax.get_xlim()
    bottom, top = ax.get_ylim()
    assert left < -1, "the heads lie inside"
    assert right > 1
    assert bottom < 0
    assert top > 2
    assert ax.get_aspect() == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plotting.heatmap(torch.ones(3)), r"matrix: expected 2 axes .* got \(3,\)"),
        (lambda: plotting.heatmap(torch.eye(2), ["one"]), "rows: expected 2 labels, got 1"),
        (lambda: plotting.heatmap(torch.eye(2), None, ["x"] * 3), "columns: expected 2 labels"),
        (lambda: plotting.arrows({"a": torch.ones(3)}), r"a must have shape \(2,\), got \(3,\)"),
    ],
)
def test_bad_input_is_named_before_a_figure_is_made(call, message):
    with pytest.raises(ValueError, match=message):
        call()
    assert len(plt.get_fignums()) <= 1


def test_korean_and_minus_are_drawn_without_missing_letters(capfd):
    matrix = torch.tensor([[-1.0, 1.0]])
    ax = plotting.heatmap(matrix, ["고양이"], ["나는", "배가"], title="어텐션")
    ax.plot([-1.0, 1.0], [-0.5, 0.5])
    ax.figure.canvas.draw()  # warnings are errors: a missing letter would raise
    assert capfd.readouterr().err == ""


def test_the_korean_font_is_the_one_that_ships(tmp_path):
    code = (
        "from transformer_lib.course import plotting; from matplotlib import font_manager as f;"
        "print(plotting.korean_font(), f.findfont('NanumGothic'))"
    )
    out = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"MPLCONFIGDIR": str(tmp_path), "PATH": "", "HOME": str(tmp_path)},
    ).stdout
    assert out.startswith("NanumGothic ")
    assert "koreanize_matplotlib" in out


def test_without_a_korean_font_there_is_one_message(monkeypatch):
    monkeypatch.setattr(plotting, "korean_font", lambda: None)
    with pytest.warns(UserWarning, match=r"building-the-transformer\[plots\]") as caught:
        plotting.use_style()
    assert len(caught) == 1


def test_registering_the_font_twice_adds_it_once():
    plotting.use_style()
    plotting.use_style()
    fonts = mpl.font_manager.fontManager.ttflist
    assert sum(font.fname.endswith("NanumGothic.ttf") for font in fonts) == 1


def test_the_style_can_be_undone():
    mpl.rcdefaults()
    assert mpl.rcParams["font.size"] == mpl.rcParamsDefault["font.size"]


def relative_luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("name", ["BLUE", "ORANGE", "GREEN", "RED", "PURPLE", "GREY"])
def test_colours_can_be_read_as_text_on_white(name):
    assert 1.05 / (relative_luminance(getattr(plotting, name)) + 0.05) >= 4.5


def test_infinite_numbers_leave_the_colours_to_the_finite_ones():  # fastplotlib/fastplotlib#603
    matrix = torch.tensor([[0.0, 1.0], [-torch.inf, torch.inf]])
    ax = plotting.heatmap(matrix)
    (image,) = ax.get_images()
    assert image.get_clim() == (0, 1)
    assert image.get_array().mask.tolist() == [[False, False], [True, True]]
    assert [text.get_text() for text in ax.texts] == ["0.00", "1.00", "−∞", "∞"]
    empty = plotting.heatmap(torch.full((2, 2), torch.nan))
    assert [text.get_text() for text in empty.texts] == ["nan"] * 4
