"""The built site in a browser: what readers see and do."""

import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest
import yaml
from PIL import Image
from playwright.sync_api import Browser, Page, expect

ROOT = Path(__file__).parents[2]
CONTENTS = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
LISTED = [entry["file"] for part in CONTENTS["parts"] for entry in part["chapters"]]
CHAPTERS = [name for name in LISTED if re.match(r"\d\d_", name)]
PAGES = ["index", *LISTED, "search"]

# A word for each chapter that a reader may look for.
WORDS = {
    "01_weighted_sums": "convex",
    "02_inner_product": "cosine",
    "03_attention": "decoder",
    "04_softmax_jacobian": "Jacobian",
    "05_positional_encoding": "sinusoid",
    "06_masking": "causal",
    "07_multi_head_attention": "concatenated",
    "08_feed_forward": "convolution",
    "09_add_and_norm": "residual",
    "10_embeddings": "vocabulary",
    "11_transformer": "stack",
    "12_training": "smoothing",
    "13_decoding": "beam",
    "14_translation": "BLEU",
    "15_why_self_attention": "recurrent",
    "16_pretrained_weights": "Whisper",
}

# The theme's script does this on pages without sub-headings; nothing is lost by it.
KNOWN_ERRORS = ("Cannot read properties of null (reading 'classList')",)

Open = Callable[..., Page]


@pytest.fixture
def visit(browser: Browser, address: str) -> Iterator[Open]:
    """Return a function that opens a page of the site, and see that it came without errors.

    Requests to any other host are refused and counted as errors.
    """
    errors: list[str] = []
    contexts = []

    def refuse(route) -> None:
        errors.append(f"request to {route.request.url}")
        route.abort()

    def visit(name: str, scheme: str = "light", width: int = 1280, height: int = 900) -> Page:
        context = browser.new_context(
            color_scheme=scheme, viewport={"width": width, "height": height}
        )
        contexts.append(context)
        context.route(lambda url: not url.startswith((address, "data:", "blob:")), refuse)
        page = context.new_page()
        page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on(
            "response", lambda r: errors.append(f"{r.status} {r.url}") if r.status >= 400 else None
        )
        page.goto(f"{address}/{name}")
        page.evaluate("window.MathJax && MathJax.startup.promise")
        return page

    yield visit
    for context in contexts:
        context.close()
    assert [error for error in errors if not any(known in error for known in KNOWN_ERRORS)] == []


@pytest.mark.parametrize("name", PAGES)
def test_page_opens(visit: Open, name: str) -> None:
    """No error, no request elsewhere, all mathematics typeset, all pictures there."""
    page = visit(f"{name}.html")
    assert page.locator("h1:visible").count() == 1
    formulas = page.locator(".math").count()
    assert page.locator("mjx-container").count() >= formulas
    assert page.locator("mjx-container mjx-assistive-mml").count() >= formulas
    assert page.locator("mjx-merror, [data-mjx-error]").count() == 0
    broken = page.evaluate(
        "[...document.images].filter(i => i.loading != 'lazy' && !i.naturalWidth).map(i => i.src)"
    )
    assert broken == []


@pytest.mark.parametrize("name", PAGES)
def test_text_shows_no_markup(visit: Open, name: str) -> None:
    """Outside code, nothing is left that a reader is not meant to see."""
    page = visit(f"{name}.html")
    page.eval_on_selector_all(
        "pre, code, mjx-container, dt.sig, dl.field-list strong",
        "found => found.forEach(one => one.remove())",
    )
    text = page.locator("main").inner_text()
    assert len(text) > 50 or name == "search"
    assert re.findall(r"\$\$|\\begin\{|\\\(|\\\[|\*\*|:::|\{[a-z:]+\}`", text) == []


def test_source_pages_open(visit: Open, site: Path) -> None:
    """The pages with the library's source, which the reference links to."""
    modules = sorted((site / "_modules").rglob("*.html"))
    assert modules
    for path in modules:
        page = visit(path.relative_to(site).as_posix())
        assert page.locator("h1:visible").count() == 1
        assert page.locator("article pre").count() == 1 or path.name == "index.html"


# -- Search ----------------------------------------------------------------------------------


def test_every_chapter_has_a_word_to_be_found_by() -> None:
    assert list(WORDS) == CHAPTERS


@pytest.mark.parametrize("chapter", WORDS)
def test_search_finds_the_chapter(visit: Open, chapter: str) -> None:
    page = visit(f"search.html?q={WORDS[chapter]}")
    expect(page.locator(f'#search-results a[href^="{chapter}.html"]').first).to_be_visible()


def test_search_finds_nothing_where_there_is_nothing(visit: Open) -> None:
    page = visit("search.html?q=zyzzyva")
    expect(page.locator("#search-results")).to_contain_text("did not match")


def test_search_by_keyboard(visit: Open) -> None:
    page = visit("index.html")
    page.keyboard.press("Control+k")
    page.keyboard.type("gradient")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=gradient*")
    expect(page.locator("#search-results li").first).to_be_visible()


# -- Light, dark and paper -------------------------------------------------------------------

FIGURE = "div.cell_output img"


def corner(page: Page) -> tuple[int, ...]:
    """Return the colour at the upper left corner of the first figure."""
    picture = Image.open(io.BytesIO(page.locator(FIGURE).first.screenshot()))
    return picture.convert("RGB").getpixel((2, 2))


def ground(page: Page) -> tuple[int, ...]:
    """Return the colour of the page."""
    color = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return tuple(int(number) for number in re.findall(r"\d+", color)[:3])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_figures_lie_on_the_ground_of_the_page(visit: Open, chapter: str, scheme: str) -> None:
    """Drawn on white, they take the page's colour; dark inverts their lightness."""
    page = visit(f"{chapter}.html", scheme)
    style = page.locator(FIGURE).first.evaluate("one => getComputedStyle(one).filter")
    assert ("invert" in style) == (scheme == "dark")
    assert (sum(ground(page)) < 150) == (scheme == "dark")
    assert all(abs(a - b) <= 6 for a, b in zip(corner(page), ground(page), strict=True))


def test_photographs_are_not_inverted(visit: Open) -> None:
    page = visit(f"{CHAPTERS[0]}.html", "dark")
    picture = page.locator(FIGURE).first
    picture.evaluate("one => one.classList.add('photo')")
    assert picture.evaluate("one => getComputedStyle(one).filter") == "none"


def test_the_theme_switch(visit: Open) -> None:
    """From the system's choice through light to dark, kept over a reload."""
    page = visit(f"{CHAPTERS[0]}.html", "light")
    theme = "document.documentElement.dataset.theme"
    assert page.evaluate(theme) == "light"
    button = page.locator(".theme-switch-button:visible").first
    for _ in range(3):
        button.click()
        if page.evaluate(theme) == "dark":
            break
    assert page.evaluate(theme) == "dark"
    page.reload()
    assert page.evaluate(theme) == "dark"


CONTRAST = """
() => {
  const parse = color => {
    const [r, g, b, a = 1] = color.match(/[\\d.]+/g).map(Number);
    return [r, g, b, a];
  };
  const over = (top, below) => top.slice(0, 3).map((c, i) => c * top[3] + below[i] * (1 - top[3]));
  const light = color => {
    const [r, g, b] = color.map(c => {
      c /= 255;
      return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = one => {
    const layers = [];
    for (; one; one = one.parentElement) {
      const color = parse(getComputedStyle(one).backgroundColor);
      layers.push(color);
      if (color[3] == 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
  };
  const faults = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const one = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim()) continue;
    if (!one.checkVisibility({visibilityProperty: true})) continue;
    if (one.closest("script, style, noscript, mjx-assistive-mml, .headerlink, dialog")) continue;
    const style = getComputedStyle(one);
    const below = ground(one);
    const [a, b] = [light(over(parse(style.color), below)), light(below)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5)) {
      const where = `${one.tagName.toLowerCase()}.${one.className} ${style.color}`;
      faults.set(where, `${ratio.toFixed(2)} ${walker.currentNode.data.trim().slice(0, 30)}`);
    }
  }
  return [...faults].map(([where, what]) => `${where}: ${what}`);
}
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["index", *CHAPTERS, "api", "misconceptions"])
def test_text_has_contrast(visit: Open, name: str, scheme: str) -> None:
    """4.5 to 1, or 3 to 1 for large text: level AA of the WCAG."""
    page = visit(f"{name}.html", scheme)
    page.add_style_tag(content="* { transition: none !important }")  # no colours on their way
    page.eval_on_selector_all("details", "found => found.forEach(one => one.open = true)")
    assert page.evaluate(CONTRAST) == []


def test_paper_is_light_and_shows_what_is_folded(visit: Open) -> None:
    page = visit(f"{CHAPTERS[0]}.html", "dark")
    folded = page.locator("article details").count()
    assert folded > 0
    theme = "document.documentElement.dataset.theme"
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("article details[open]").count() == folded
    assert page.evaluate(theme) == "light"
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("article details[open]").count() == 0
    assert page.evaluate(theme) == "dark"


# -- Phone and keyboard ----------------------------------------------------------------------


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_code_fits_a_window_of_1280_pixels(visit: Open, chapter: str) -> None:
    page = visit(f"{chapter}.html")
    page.eval_on_selector_all("details", "found => found.forEach(one => one.open = true)")
    blocks = page.locator("article pre")
    assert blocks.count() > 20
    assert float(blocks.first.evaluate("one => parseFloat(getComputedStyle(one).fontSize)")) >= 12
    cut = blocks.evaluate_all(
        "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.innerText)"
    )
    assert cut == []


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_pictures_stay_readable_on_a_phone(visit: Open, chapter: str) -> None:
    """Each is 600 pixels wide, in a box that fits the page and scrolls by keyboard."""
    page = visit(f"{chapter}.html", width=360, height=740)
    boxes = page.locator("div.picture")
    assert boxes.count() == page.locator("article figure img").count() > 0
    for box in boxes.all():
        assert box.locator("img").evaluate("one => one.clientWidth") >= 600
        assert box.evaluate("one => one.clientWidth") <= 360
        expect(box).to_have_attribute("tabindex", "0")
    boxes.first.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.activeElement.scrollLeft > 0")
    caption = page.locator("article figcaption").first
    assert caption.evaluate("one => one.getBoundingClientRect().right") <= 360


@pytest.mark.parametrize("name", ["notation", "index"])
def test_code_in_tables_stays_whole_on_a_phone(visit: Open, name: str) -> None:
    page = visit(f"{name}.html", width=360, height=740)
    code = page.locator("article td code")
    assert code.count() > 3
    broken = code.evaluate_all(
        "all => all.filter(one => one.getClientRects().length > 1).map(one => one.innerText)"
    )
    assert broken == []


@pytest.mark.parametrize("name", PAGES)
def test_links_to_the_neighbours_are_not_cut_on_a_phone(visit: Open, name: str) -> None:
    page = visit(f"{name}.html", width=360, height=740)
    for link in page.locator(".prev-next-area a").all():
        wide, room = link.evaluate("one => [one.scrollWidth, one.clientWidth]")
        assert wide <= room


@pytest.mark.parametrize("name", PAGES)
def test_a_phone_scrolls_down_only(visit: Open, name: str) -> None:
    """Wide equations, tables and code scroll inside themselves."""
    page = visit(f"{name}.html", width=360, height=740)
    page.eval_on_selector_all("details", "found => found.forEach(one => one.open = true)")
    for box in ("html", ".bd-main", ".bd-article-container"):
        wide, room = page.locator(box).first.evaluate("one => [one.scrollWidth, one.clientWidth]")
        assert wide <= room, box


def test_the_menu_opens_on_a_phone(visit: Open) -> None:
    page = visit("index.html", width=360, height=740)
    link = page.locator(f'.bd-sidebar-primary a[href="{CHAPTERS[0]}.html"]').first
    expect(link).not_to_be_visible()
    page.locator(".primary-toggle").first.click()
    expect(page.locator(f'dialog a[href="{CHAPTERS[0]}.html"]').first).to_be_visible()


def test_the_keyboard_shows_where_it_is(visit: Open) -> None:
    """The first tab reaches the link that skips to the content, and focus can be seen."""
    page = visit(f"{CHAPTERS[0]}.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#main-content"
    link = page.locator("article p a").first
    link.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    assert link.evaluate("one => getComputedStyle(one).outlineStyle") != "none"


# -- Chapters --------------------------------------------------------------------------------


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_hints_and_solutions_are_folded(visit: Open, chapter: str) -> None:
    """A hint and a solution for every exercise, closed until they are asked for."""
    page = visit(f"{chapter}.html")
    cells = nbformat.read(ROOT / f"book/{chapter}.ipynb", as_version=4).cells
    exercises = sum("exercise" in cell.metadata.get("tags", []) for cell in cells)
    assert exercises >= 3
    assert page.locator('section[id^="exercise-"]').count() == exercises
    for summary in ("Hint", "Solution"):
        folds = page.locator("article details").filter(has_text=re.compile(f"^{summary}"))
        assert folds.count() >= exercises
    first = page.locator("article details").first
    inside = first.locator("p, pre").first
    expect(inside).not_to_be_visible()
    first.locator("summary").click()
    expect(inside).to_be_visible()


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_badge_leads_to_the_reference(visit: Open, chapter: str) -> None:
    """Each cell that feeds the library has one; chapter 15 has no such cell."""
    page = visit(f"{chapter}.html")
    notebook = nbformat.read(ROOT / "book" / f"{chapter}.ipynb", as_version=4)
    exported = sum(cell.source.startswith("#| export") for cell in notebook.cells)
    badges = page.locator("p.export-badge a")
    assert badges.count() == exported
    if not exported:
        return
    badge = badges.first
    module = badge.inner_text().removesuffix(".py").replace("/", ".")
    badge.click()
    page.wait_for_url(f"**/api.html#module-{module}")
    assert page.locator(f'[id="module-{module}"]').count() == 1


def test_copying_code_leaves_the_output_behind(visit: Open) -> None:
    """What the copy button takes is the cell as it can be run."""
    page = visit(f"{CHAPTERS[0]}.html")
    button = page.locator("div.cell_input button.copybtn").first
    target = button.get_attribute("data-clipboard-target")
    assert "import torch" in page.locator(target).inner_text()
