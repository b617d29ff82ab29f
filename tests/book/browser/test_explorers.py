"""Explorers in a browser: from a bare file and on the site; by mouse, keyboard and touch."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from transformer_lib.course import explorers
from transformer_lib.masking import band_mask, causal_mask
from transformer_lib.positional_encoding import sinusoids
from transformer_lib.softmax import softmax, softmax_jacobian, softmax_jvp
from transformer_lib.transformer import Transformer, TransformerConfig
from transformer_lib.translation import Translator
from transformer_lib.weighted_sum import weighted_sum

VALUES = torch.tensor([[1.0, 1.0], [5.0, 2.0], [2.0, 4.0]])
SCORES = torch.tensor([2.0, 1.0, 0.0, -1.0])
GRADIENT = torch.tensor([2.0, -2.0, 0.5, 1.0])
WORDS = ["she", "reads", "the", "book", "<pad>", "<pad>"]
MASKED = torch.linspace(-2, 2, 36).sin().reshape(6, 6) * 2
REAL = torch.tensor([True, True, True, True, False, False])
SIGNS = ["인도 카레 전문점", "인도 주행 금지"]
FOUND = [0.9, 0.6, 0.2]
ON_PAGES = {
    "01_weighted_sums": "A weighted sum of three vectors",
    "04_softmax_jacobian": "Softmax, its Jacobian and a gradient through it",
    "05_positional_encoding": "Two places in the positional encoding",
    "06_masking": "A mask over scores, and the weights it leaves",
    "14_translation": "Where the words look",
}


@pytest.fixture(scope="module")
def attention() -> explorers.Explorer:
    return explorers.explore_attention(Translator.from_pretrained("ko-en"), SIGNS)


@pytest.fixture(scope="module")
def file(tmp_path_factory, attention) -> Path:
    """Return a bare page with all explorers on it, one of them three times."""
    masks = torch.tensor([[[0.0, 1.0], [0.2, 0.1]], [[1.0, 0.0], [0.0, 0.0]], [[0.5, 0.5]] * 2])
    boxes = [[10, 10, 40, 40], [60, 20, 110, 70], [0, 0, 20, 20]]
    picture = Image.new("RGB", (120, 80), "#7a9a6a")
    softmaxes = [explorers.explore_softmax(scores, GRADIENT) for scores in (SCORES, SCORES / 2)]
    made = [
        explorers.explore_weighted_sum(VALUES, torch.tensor([0.2, 0.3, 0.5])),
        softmaxes[0],
        explorers.explore_positions(8, 32, places=(3, 10)),
        explorers.explore_masks(MASKED, WORDS, key_mask=REAL),
        attention,
        explorers.explore_detections(picture, FOUND, ["cat", "cup", "cat"], boxes, masks),
        softmaxes[0],
        softmaxes[1],
    ]
    path = tmp_path_factory.mktemp("page") / "all.html"
    body = "\n".join(explorer._repr_html_() for explorer in made)
    path.write_text(
        '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width"><title>All</title><body>{body}</body></html>',
        encoding="utf-8",
    )
    return path


Open = Callable[..., Page]


@pytest.fixture(scope="module")
def show(browser: Browser, file: Path) -> Iterator[Open]:
    """Return a function that opens the file in a context of its own.

    At the end no page has reported an error or asked for anything but the file itself.
    """
    faults: list[str] = []
    contexts: list[BrowserContext] = []

    def show(**options) -> Page:
        size = {"width": options.pop("width", 900), "height": 800}
        context = browser.new_context(viewport=size, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda r: faults.append(r.url) if r.url != file.as_uri() else None)
        page.on("console", lambda m: faults.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(file.as_uri())
        return page

    yield show
    for context in contexts:
        context.close()
    assert [fault for fault in faults if not fault.startswith("data:image/jpeg")] == []


@pytest.fixture(scope="module")
def page(show: Open) -> Page:
    """Return the page in light colours, for the tests of numbers."""
    return show(color_scheme="light")


def explorer(page: Page, title: str, number: int = 0) -> Locator:
    return page.get_by_role("group", name=re.compile(f"^Explorer: {title}")).nth(number)


def numbers(cells: Locator) -> torch.Tensor:
    texts = [text.replace("−", "-") for text in cells.all_inner_texts()]
    return torch.tensor([float(re.search(r"-?\d+(\.\d+)?", text)[0]) for text in texts])


def set_slider(explorer: Locator, name: str, value: float) -> None:
    explorer.get_by_label(name, exact=True).fill(str(value))


# -- What is shown is what the library computes ----------------------------------------------


def test_all_have_started(page: Page) -> None:
    assert page.get_by_role("group", name=re.compile("^Explorer: ")).count() == 8
    assert page.evaluate("Object.keys(window.transformerExplorers).length") == 6
    assert page.locator("[data-explorer] > p").first.is_hidden(), "the description gave way"


def test_weighted_sum(page: Page) -> None:
    here = explorer(page, "A weighted sum")
    says = here.get_by_role("status")
    expect(says).to_contain_text("convex combination. The result (2.70, 2.80) lies in the triangle")
    set_slider(here, "Weight of value 1", -0.4)
    set_slider(here, "Weight of value 2", 1.1)
    weights = torch.tensor([-0.4, 1.1, 0.5])
    x, y = weighted_sum(weights[None], VALUES)[0].tolist()
    expect(says).to_contain_text("The sum of the weights is 1.20: a linear combination")
    expect(says).to_contain_text(f"({x:.2f}, {y:.2f}) lies outside")
    here.get_by_label("divided by their sum").check()
    x, y = weighted_sum(weights[None] / 1.2, VALUES)[0].tolist()
    expect(says).to_contain_text("affine combination")
    expect(says).to_contain_text(f"({x:.2f}, {y:.2f})")
    expect(here.get_by_label("Weight of value 2")).to_have_attribute(
        "aria-valuetext", "1.10 → 0.92"
    )
    here.get_by_label("as set").check()
    set_slider(here, "Weight of value 1", -1)
    set_slider(here, "Weight of value 2", 0.5)
    here.get_by_label("divided by their sum").check()
    expect(says).to_contain_text("The sum of the weights is 0, so they cannot be divided by it")
    here.get_by_role("button", name="Sum 0.5").click()
    expect(says).to_contain_text("The sum of the weights is 0.50: a linear combination")
    expect(here.get_by_label("as set")).to_be_checked()
    here.get_by_role("button", name="Only value 3").click()
    expect(says).to_contain_text("(2.00, 4.00) lies in the triangle")


def test_the_result_can_be_dragged(page: Page) -> None:
    here = explorer(page, "A weighted sum")
    here.get_by_role("button", name="Reset").click()
    handle = here.locator(".handle").bounding_box()
    corner = here.locator(".value").nth(1).bounding_box()
    middle = [
        box[a] + box[b] / 2
        for box in (handle, corner)
        for a, b in (("x", "width"), ("y", "height"))
    ]
    page.mouse.move(*middle[:2])
    page.mouse.down()
    page.mouse.move(*middle[2:], steps=3)
    page.mouse.up()
    weights = [float(here.get_by_label(f"Weight of value {j}").input_value()) for j in (1, 2, 3)]
    assert weights == pytest.approx([0, 1, 0], abs=0.02)
    assert sum(weights) == pytest.approx(1, abs=1e-6)
    page.mouse.move(*middle[:2])  # let go, it stays
    assert float(here.get_by_label("Weight of value 2").input_value()) == weights[1]


def test_softmax(page: Page) -> None:
    here = explorer(page, "Softmax")
    for exponent, gradient in ((0, GRADIENT), (-0.4, torch.tensor([1.0, 0, 0, 0]))):
        set_slider(here, "Temperature T", exponent)
        if exponent:
            here.get_by_label("(1, 0, 0, 0)").check()
        weights = softmax(SCORES / 10**exponent)
        jacobian = softmax_jacobian(weights)
        shown = numbers(here.locator(".heat").first.locator("tbody td")).reshape(4, 4)
        assert torch.allclose(shown, jacobian, atol=6e-3)
        passed = numbers(here.locator(".heat").last.locator("tbody td")).reshape(4, 2)
        assert torch.allclose(passed[:, 0], gradient, atol=6e-3)
        assert torch.allclose(passed[:, 1], softmax_jvp(weights, gradient), atol=6e-3)
        bars = here.locator(".bar b").all_inner_texts()
        assert [float(text.split("=")[1]) for text in bars] == pytest.approx(
            weights.tolist(), abs=6e-4
        )
        norm = torch.linalg.matrix_norm(jacobian).item()
        expect(here.get_by_role("status")).to_contain_text(f"norm {norm:.3f}")
    lengths = here.locator(".bar i").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect().width)"
    )
    assert lengths[0] / lengths[1] == pytest.approx((weights[0] / weights[1]).item(), rel=0.05)
    here.get_by_role("button", name="A tie at the top").click()
    set_slider(here, "Temperature T", -1.3)
    expect(here.get_by_role("status")).to_contain_text("weight is 0.500, on scores 1 and 2.")
    expect(here.get_by_role("status")).to_contain_text("norm 0.500")
    here.get_by_label("(1, 1, 1, 1)").check()
    expect(here.get_by_role("status")).to_contain_text("no score gets a gradient above 0.005")


def test_adding_one_to_every_score_moves_no_weight(page: Page) -> None:
    here = explorer(page, "Softmax", 2)
    before = here.locator(".bar b").all_inner_texts()
    here.get_by_role("button", name="Add 1").click()
    assert here.get_by_label("Score 1").input_value() == "2"
    assert here.locator(".bar b").all_inner_texts() == before
    for _ in range(4):
        here.get_by_role("button", name="Add 1").click()
    assert here.get_by_label("Score 1").input_value() == "5"
    expect(here.get_by_role("status")).to_have_text(
        "Score 1 is 5.0, and no slider goes beyond 5: nothing was added."
    )
    other = explorer(page, "Softmax", 1).get_by_label("Score 1")
    assert other.input_value() == "2", "explorers on one page do not touch each other"
    assert page.locator("[data-explorer]").count() == 8


def test_positions(page: Page) -> None:
    here = explorer(page, "Two places")
    table = sinusoids(32, 8)
    for p, q in ((3, 10), (31, 2), (5, 5)):
        set_slider(here, "Place p", p)
        set_slider(here, "Place q", q)
        cosines = (table[p] * table[q]).view(-1, 2).sum(dim=-1)
        shown = numbers(here.locator("tbody .figures b"))
        assert torch.allclose(shown, cosines, atol=6e-4)
        product = (table[p] @ table[q]).item()
        assert numbers(here.locator("tfoot b")).item() == pytest.approx(product, abs=6e-4)
        turns = numbers(here.locator(".angle"))
        expected = (q - p) / 10000 ** (torch.arange(0, 8, 2) / 8)
        assert torch.allclose(turns, expected, atol=6e-3)
    set_slider(here, "Place p", 3)
    set_slider(here, "Place q", 10)
    before = here.locator(".figures").all_inner_texts()
    here.get_by_label("Move both").check()
    for place, moved in ((20, 27), (31, 31), (0, 7)):
        set_slider(here, "Place p", place)
        assert here.get_by_label("Place q").input_value() == str(moved)
        assert here.locator(".figures").all_inner_texts() == before
    here.get_by_label("Move both").uncheck()


def weights_shown(here: Locator) -> torch.Tensor:
    return numbers(here.locator(".heat tbody td")).reshape(6, 6)


def test_masks(page: Page) -> None:
    here = explorer(page, "A mask")
    masks = {
        "Causal": causal_mask(6),
        "Padding": REAL.expand(6, 6),
        "Band of one each side": band_mask(6, before=1, after=1),
        "Causal and padding": causal_mask(6) & REAL,
        "Nothing hidden": torch.ones(6, 6, dtype=torch.bool),
    }
    for name, mask in masks.items():
        here.get_by_role("button", name=name, exact=True).click()
        expected = softmax(MASKED.masked_fill(~mask, -torch.inf))
        assert torch.allclose(weights_shown(here), expected, atol=6e-3), name
        pressed = here.locator(".mask tbody td button").evaluate_all(
            "all => all.map(one => one.getAttribute('aria-pressed') == 'true')"
        )
        assert torch.equal(torch.tensor(pressed).reshape(6, 6), ~mask)
    here.get_by_role("button", name="query reads, place 2").click()
    assert (weights_shown(here)[1] == 0).all()
    expect(here.get_by_role("status")).to_contain_text("“reads” at place 2 may attend to nothing")
    here.get_by_role("button", name="key book, place 4").click()
    shown = weights_shown(here)
    assert (shown[:, 3] == 0).all()
    expect(here.get_by_role("status")).to_contain_text(
        "Key “book” at place 4 is hidden from all queries."
    )
    assert torch.allclose(shown.sum(dim=1), torch.tensor([1.0, 0, 1, 1, 1, 1]), atol=0.03)
    here.get_by_role("button", name="query reads, key the: hidden").click()
    assert weights_shown(here)[1].tolist() == [0, 0, 1, 0, 0, 0]
    expect(here.get_by_role("status")).to_contain_text("Query “reads” looks at “the” 1.00.")


def test_a_mouse_draws_a_mask(page: Page) -> None:
    here = explorer(page, "A mask")
    here.get_by_role("button", name="Nothing hidden").click()
    cells = here.locator(".mask tbody tr").nth(2).locator("td button")
    cells.first.hover()
    page.mouse.down()
    for cell in (1, 2, 3):
        cells.nth(cell).hover()
    page.mouse.up()
    cells.nth(5).hover()
    hidden = cells.evaluate_all("all => all.map(one => one.classList.contains('hidden'))")
    assert hidden == [True] * 4 + [False] * 2
    cells.first.click()
    expect(cells.first).to_have_attribute("aria-pressed", "false")


def test_attention(page: Page, attention: explorers.Explorer) -> None:
    here = explorer(page, "Where the words look")
    here.get_by_label(SIGNS[1]).check()
    here.get_by_label("Cross-attention").check()
    here.get_by_role("group", name="Layer").get_by_label("2").check()
    here.get_by_label("head 3", exact=True).check()
    data = attention.data["sentences"][1]["maps"][2]
    row = [text for text, _ in data["asks"]].index("the")
    here.locator("label", has_text="the → s").hover()
    keys = len(data["asked"])
    expected = torch.tensor(data["layers"][1][2][row * keys : (row + 1) * keys]) / 1000
    assert torch.allclose(numbers(here.locator(".share b")), expected, atol=6e-3)
    says = here.get_by_role("status")
    expect(says).to_contain_text(
        "Cross-attention, layer 2, head 3: “the”, before “s” is written, looks"
    )
    expect(says).to_contain_text(f"“인도” {expected[0]:.2f}")
    here.get_by_label("mean of the heads").check()
    heads = torch.tensor(data["layers"][1]).reshape(6, -1, keys)[:, row] / 1000
    assert torch.allclose(numbers(here.locator(".share b")), heads.mean(dim=0), atol=6e-3)
    here.locator("label", has_text="id → ew").hover()
    expect(says).to_contain_text("“id” of “sidewalk”, before “ew” is written")
    widths = here.locator(".links path").evaluate_all(
        "all => all.map(one => Number(one.getAttribute('stroke-width')))"
    )
    assert widths.index(max(widths)) == numbers(here.locator(".share b")).argmax()
    here.get_by_label(SIGNS[0]).check()
    assert here.locator("fieldset.tokens label").count() == 5, "as many as the other sentence has"
    here.get_by_label("Encoder").check()
    texts = here.locator("ol.tokens li > span:first-child").all_inner_texts()
    assert texts == ["인도", "카레", "전", "문", "점", "</s>"]


def test_encoder_and_decoder_may_differ_in_layers(browser: Browser, tmp_path: Path) -> None:
    sizes = {"d_model": 4, "n_heads": 2, "d_ff": 4, "n_encoder_layers": 3, "n_decoder_layers": 1}
    model = Transformer(TransformerConfig(9, 9, tied="all", **sizes)).eval()
    ids = torch.tensor([[5, 6, 7]])
    explorers.explore_attention(model, ids, ids[:, :2]).save(tmp_path / "page.html")
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    here = explorer(page, "Where the words look")
    assert here.get_by_role("group", name="Sentence").count() == 0, "there is one only"
    here.get_by_role("group", name="Layer").get_by_label("3").check()
    here.locator("fieldset.tokens label").nth(2).hover()
    expect(here.get_by_role("status")).to_contain_text("Encoder, layer 3, head 1: “7” looks at")
    here.get_by_label("Decoder", exact=True).check()
    expect(here.get_by_role("status")).to_contain_text("Decoder, layer 1, head 1: “6”, before")
    page.close()


def test_detections(page: Page) -> None:
    here = explorer(page, "A detector")
    says = here.get_by_role("status")
    for threshold, kept in ((0.5, 2), (0.1, 3), (0.95, 0), (0.6, 1)):
        set_slider(here, "Threshold", threshold)
        verb = "are" if kept != 1 else "is"
        expect(says).to_contain_text(f"{kept} of 3 queries {verb} kept")
        assert here.locator(".scene rect.under").count() == max(kept, 1), "and the chosen one"
    here.get_by_label("Query", exact=True).select_option(label="query 2: cat 0.20")
    expect(says).to_contain_text("Query 2 says cat with 0.20, not above the threshold.")
    expect(here.locator(".scene rect.chosen.faint")).to_have_count(1)
    here.get_by_role("button", name="cat 0.90, query 0").click()
    expect(says).to_contain_text("It looks most at row 1 of 2, column 2 of 2.")
    opacity = here.locator(".shade rect").evaluate_all(
        "all => all.map(one => Number(one.getAttribute('fill-opacity')))"
    )
    assert opacity == pytest.approx([0.72, 0, 0.57, 0.65], abs=0.02)
    here.get_by_label("Show where the query looks").uncheck()
    assert here.locator(".shade rect").count() == 0


# -- Keyboard and touch ----------------------------------------------------------------------

FOCUS = """
() => {
  let one = document.activeElement;
  while (one.shadowRoot?.activeElement) one = one.shadowRoot.activeElement;
  const ring = [one, one.nextElementSibling].filter(Boolean).map(
    (each) => getComputedStyle(each).outlineStyle);
  const title = one.getRootNode().querySelector?.(".title")?.innerText ?? "";
  return [title, one.type ?? one.tagName, ring.some((style) => style != "none")];
}
"""


def test_the_keyboard_reaches_every_control_and_shows_where_it_is(show: Open) -> None:
    page = show(color_scheme="light")
    reached: dict[str, list[str]] = {}
    for _ in range(90):
        page.keyboard.press("Tab")
        title, kind, ring = page.evaluate(FOCUS)
        if not title:
            break
        assert ring, (title, kind)
        reached.setdefault(title.removeprefix("Explorer").strip(), []).append(kind)
    assert reached["A weighted sum of three vectors"] == ["range"] * 3 + ["radio"] + ["button"] * 4
    assert reached["Two places in the positional encoding"] == ["range", "range", "checkbox"]
    assert reached["A mask over scores, and the weights it leaves"] == ["button"] * 6
    assert reached["Where the words look"] == ["radio"] * 5
    assert reached["A detector's answers, and where its queries look"] == [
        "range",
        "select-one",
        "checkbox",
    ]
    assert sum(map(len, reached.values())) == 8 + 3 + 6 + 5 + 3 + 3 * (5 + 3 + 1)


def test_the_keyboard_alone_does_everything(show: Open) -> None:
    page = show(color_scheme="light")
    press = page.keyboard.press

    here = explorer(page, "A weighted sum")
    here.get_by_label("Weight of value 1").focus()
    press("ArrowRight")
    expect(here.get_by_role("status")).to_contain_text("The sum of the weights is 1.01")
    for _ in range(3):
        press("Tab")
    press("ArrowRight")
    expect(here.get_by_role("status")).to_contain_text("convex")
    press("Tab")
    press("Tab")
    press("Enter")
    expect(here.get_by_role("status")).to_contain_text("(2.00, 4.00)")

    here = explorer(page, "A mask")
    here.get_by_role("button", name="Causal and padding").focus()
    press("Tab")
    expect(here.locator(".mask button").nth(6 + 1)).to_be_focused()
    press("Space")
    expect(here.get_by_role("status")).to_contain_text("35 of 36 scores count")
    for key in ("ArrowLeft", "ArrowDown", "Enter"):
        press(key)
    expect(here.get_by_role("status")).to_contain_text("“reads” at place 2 may attend to nothing")
    for key in (*["ArrowRight"] * 4, "ArrowUp", "ArrowUp", "ArrowUp", "Space"):
        press(key)
    expect(here.get_by_role("status")).to_contain_text("24 of 36 scores count")
    press("Shift+Tab")
    expect(here.get_by_role("button", name="Causal and padding")).to_be_focused()

    here = explorer(page, "Where the words look")
    here.get_by_label(SIGNS[0]).focus()
    press("ArrowRight")
    press("Tab")
    press("ArrowRight")
    press("ArrowRight")
    press("Tab")
    press("ArrowRight")
    press("Tab")
    press("ArrowRight")
    press("Tab")
    press("ArrowDown")
    expect(here.get_by_role("status")).to_contain_text(
        "Cross-attention, layer 2, head 2: “No”, before “r” is written, looks at"
    )

    here = explorer(page, "A detector")
    here.get_by_label("Threshold").focus()
    press("Home")
    expect(here.get_by_role("status")).to_contain_text("3 of 3 queries")
    press("Tab")
    press("ArrowDown")
    expect(here.get_by_role("status")).to_contain_text("Query 1 says cup")


def test_touch(show: Open) -> None:
    page = show(has_touch=True, is_mobile=True, width=360)
    here = explorer(page, "A mask")
    cell = here.get_by_role("button", name=re.compile("query the, key reads"))
    for pressed in ("true", "false"):
        cell.tap()
        expect(cell).to_have_attribute("aria-pressed", pressed)
    here = explorer(page, "Where the words look")
    here.get_by_label("Decoder", exact=True).tap()
    here.locator("fieldset.tokens label").nth(1).tap()
    expect(here.get_by_role("status")).to_contain_text(
        "Decoder, layer 1, head 1: “Ind” of “Indian”"
    )
    small = page.evaluate(
        """() => [...document.querySelectorAll("[data-explorer]")].flatMap((place) =>
          [...place.shadowRoot.querySelectorAll("button, label, select, input[type=range]")]
            .map((one) => [one.innerText, one.getBoundingClientRect()])
            .filter(([text, {width, height}]) => width && Math.min(width, height) < 20)
            .map(([text]) => text))"""
    )
    assert small == []


# -- Colours, widths and readers without scripts ---------------------------------------------

CONTRAST = """
() => {
  const parse = (color) => {
    const [r, g, b, a = 1] = color.match(/[\\d.]+/g).map(Number);
    return [r, g, b, a];
  };
  const over = (top, below) => below.map((c, i) => top[i] * top[3] + c * (1 - top[3]));
  const linear = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const faults = [];
  let seen = 0;
  for (const place of document.querySelectorAll("[data-explorer]")) {
    const walker = document.createTreeWalker(place.shadowRoot, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const text = walker.currentNode.data.trim();
      const one = walker.currentNode.parentElement;
      if (!text || one.closest("style, select, .scene, svg") || !one.checkVisibility()) continue;
      const layers = [];
      for (let each = one; each; each = each.parentElement) {
        layers.push(parse(getComputedStyle(each).backgroundColor));
        if (layers.at(-1)[3] == 1) break;
      }
      const white = [255, 255, 255];
      const below = layers.reverse().reduce((ground, layer) => over(layer, ground), white);
      const [a, b] = [light(over(parse(getComputedStyle(one).color), below)), light(below)];
      const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      seen += 1;
      if (ratio < 4.5) faults.push(`${ratio.toFixed(2)} ${text}`);
    }
  }
  return [seen, faults];
}
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(show: Open, scheme: str) -> None:
    page = show(color_scheme=scheme)
    explorer(page, "A mask").get_by_role("button", name="Causal and padding").click()
    set_slider(explorer(page, "Softmax"), "Temperature T", 0.3)
    seen, faults = page.evaluate(CONTRAST)
    assert seen > 300
    assert faults == []


SIGNS_OF_DARKNESS = {
    "this book": ("html", "data-theme", "dark", "light"),
    "Colab": ("html", "theme", "dark", "light"),
    "JupyterLab": ("body", "data-jp-theme-light", "false", "true"),
    "VS Code": ("body", "data-vscode-theme-kind", "vscode-dark", "vscode-light"),
}


def test_the_theme_of_the_page_is_followed(show: Open) -> None:
    page = show(color_scheme="dark")
    frame = explorer(page, "Softmax")
    dark = re.compile(r"\bdark\b")
    expect(frame).to_have_class(dark)
    for element, attribute, dark_value, light_value in SIGNS_OF_DARKNESS.values():
        place = page.locator(element)
        place.evaluate(f"one => one.setAttribute('{attribute}', '{light_value}')")
        expect(frame).not_to_have_class(dark)
        place.evaluate(f"one => one.setAttribute('{attribute}', '{dark_value}')")
        expect(frame).to_have_class(dark)
        place.evaluate(f"one => one.removeAttribute('{attribute}')")
    page.emulate_media(color_scheme="light")
    expect(frame).not_to_have_class(dark)


def test_a_phone_scrolls_down_only(show: Open) -> None:
    page = show(width=360)
    explorer(page, "Where the words look").get_by_label(SIGNS[1]).check()
    explorer(page, "Where the words look").get_by_label("Decoder", exact=True).check()
    wide, room = page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert wide <= room
    inside = page.evaluate(
        """[...document.querySelectorAll("[data-explorer]")]
          .flatMap((place) => [...place.shadowRoot.querySelectorAll(".frame, .tables > *")])
          .filter((one) => one.scrollWidth > one.clientWidth)
          .map((one) => one.innerText)"""
    )
    assert inside == []


def test_without_scripts_the_words_are_there(show: Open) -> None:
    page = show(java_script_enabled=False)
    assert page.get_by_text("result: (2.70, 2.80)").is_visible()
    assert page.get_by_text("2 of 3 queries are kept at threshold 0.50").is_visible()
    assert page.locator("img.photo").is_visible()
    assert page.get_by_text(f"{SIGNS[0]}: ▁인도 ▁카레").is_visible()


def test_no_text_runs_as_a_script(browser: Browser, tmp_path: Path) -> None:
    evil = "</script><script>window.broken = 1</script><img src=x onerror='window.broken = 1'>"
    made = explorers.explore_masks(torch.eye(2), [evil, "ok"])
    made.save(tmp_path / "page.html")
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    assert page.evaluate("window.broken") is None
    assert explorer(page, "A mask").get_by_text(evil).count() == 4
    page.close()


# -- On the site -----------------------------------------------------------------------------


@pytest.mark.parametrize("chapter", ON_PAGES)
def test_chapters_have_theirs(browser: Browser, address: str, chapter: str) -> None:
    """On the built page: started, dark with the page, and the page's keys do not disturb it."""
    context = browser.new_context(color_scheme="dark", viewport={"width": 360, "height": 740})
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on(
        "request",
        lambda r: faults.append(r.url) if not r.url.startswith((address, "data:")) else None,
    )
    page.goto(f"{address}/{chapter}.html")
    here = explorer(page, re.escape(ON_PAGES[chapter]))
    expect(here).to_have_class(re.compile("dark"))
    output = page.locator("div.cell_output .text_html:has([data-explorer])")
    assert output.evaluate("one => getComputedStyle(one).backgroundColor") == "rgba(0, 0, 0, 0)"
    page.evaluate("document.documentElement.dataset.theme = 'light'")
    expect(here).not_to_have_class(re.compile("dark"))
    assert here.evaluate("one => one.getBoundingClientRect().right") <= 360
    before = here.get_by_role("status").inner_text()
    control = here.locator("input[type=range], .mask tbody td button, fieldset.tokens input").first
    control.focus()
    page.keyboard.press("Space" if chapter == "06_masking" else "ArrowRight")
    expect(here.get_by_role("status")).not_to_have_text(before)
    assert [fault for fault in faults if "classList" not in fault] == []
    context.close()
