"""The built site in a browser: what readers see and do.

Each page is opened once, for all the checks that only look at it; the checks may change its width,
its colours and what is unfolded, and find it as it was opened.
"""

import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import axe_playwright_python
import nbformat
import pytest
import yaml
from bs4 import BeautifulSoup
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Page, expect

ROOT = Path(__file__).parents[3]
CONTENTS = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
LISTED = [entry["file"] for part in CONTENTS["parts"] for entry in part["chapters"]]
CHAPTERS = [name for name in LISTED if re.match(r"\d\d_", name)]
# Chapters first, as in their own list: pytest brings tests of one page together by its place.
PAGES = [*CHAPTERS, *(name for name in LISTED if name not in CHAPTERS), "index", "search"]

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
    "17_detr": "Hungarian",
    "18_object_detection_pipeline": "threshold",
}

DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 740}

Open = Callable[..., Page]


@dataclass
class Opened:
    """A page of the site, open in the browser, and the errors it has had."""

    name: str
    page: Page
    errors: list[str]


@pytest.fixture(scope="module")
def reader(browser: Browser) -> Iterator[BrowserContext]:
    """Return a reader who has seen other pages before: what pages share is loaded."""
    context = browser.new_context(color_scheme="light", viewport=DESKTOP)
    yield context
    context.close()


@pytest.fixture(scope="module")
def opened(
    reader: BrowserContext, open_page: Open, request: pytest.FixtureRequest
) -> Iterator[Opened]:
    """Open a page for all checks on it."""
    page, errors = open_page(reader, f"{request.param}.html")
    page.add_style_tag(content="* { transition: none !important }")  # no colours on their way
    yield Opened(request.param, page, errors)
    page.close()


def look(opened: Opened, size: dict[str, int]) -> Iterator[Page]:
    """Show the page as it was opened, at a size, and see that it has had no errors.

    A page of the size that it has already is laid out no second time.
    """
    opened.page.emulate_media(color_scheme="light")
    opened.page.set_viewport_size(size)
    opened.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = false)")
    yield opened.page
    assert opened.errors == []


@pytest.fixture
def page(opened: Opened) -> Iterator[Page]:
    """Return the page in a window."""
    yield from look(opened, DESKTOP)


@pytest.fixture
def phone(opened: Opened) -> Iterator[Page]:
    """Return the page on a phone."""
    yield from look(opened, PHONE)


def on(names: list[str]) -> pytest.MarkDecorator:
    """Run a test on each of these pages."""
    return pytest.mark.parametrize("opened", names, indirect=True, scope="module")


def unfold(page: Page) -> None:
    """Open hints, solutions and all else that is folded."""
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")


def cells_of(chapter: str) -> list[nbformat.NotebookNode]:
    """Return the cells of a chapter's notebook."""
    return nbformat.read(ROOT / f"book/{chapter}.ipynb", as_version=4).cells


@on(PAGES)
def test_page_opens(page: Page) -> None:
    """No error, no request elsewhere, all mathematics typeset, all pictures there."""
    assert page.locator("h1:visible").count() == 1
    formulas = page.locator(".math").count()
    assert page.locator("mjx-container").count() >= formulas
    assert page.locator("mjx-container mjx-assistive-mml").count() >= formulas
    assert page.locator("mjx-merror, [data-mjx-error]").count() == 0
    broken = page.evaluate(
        "[...document.images].filter(i => i.loading != 'lazy' && !i.naturalWidth).map(i => i.src)"
    )
    assert broken == []


@on(PAGES)
def test_text_shows_no_markup(page: Page, opened: Opened) -> None:
    """Outside code, nothing is left that a reader is not meant to see."""
    text = page.evaluate(
        """() => {
          const copy = document.querySelector("main").cloneNode(true);
          const hidden = "pre, code, script, style, mjx-container, dt.sig, dl.field-list strong";
          copy.querySelectorAll(hidden).forEach(one => one.remove());
          return copy.textContent;
        }"""
    )
    assert len(text) > 50 or opened.name == "search"
    assert re.findall(r"\$\$|\\begin\{|\\\(|\\\[|\*\*|:::|\{[a-z:]+\}`", text) == []


def test_source_pages_open(
    reader: BrowserContext, open_page: Open, address: str, site: Path
) -> None:
    """The pages with the library's source, which the reference links to."""
    modules = sorted((site / "_modules").rglob("*.html"))
    assert modules
    page, errors = open_page(reader, "_modules/index.html")
    for path in modules:
        page.goto(f"{address}/{path.relative_to(site).as_posix()}")
        assert page.locator("h1:visible").count() == 1
        assert page.locator("article pre").count() == 1 or path.name == "index.html"
    page.close()
    assert errors == []


# -- Search ----------------------------------------------------------------------------------


def test_every_chapter_has_a_word_to_be_found_by() -> None:
    assert set(CHAPTERS) <= WORDS.keys()


@pytest.fixture(scope="module")
def results(reader: BrowserContext, open_page: Open) -> Iterator[Page]:
    """Return a page of results, on which one search can follow another."""
    page, errors = open_page(reader, f"search.html?q={WORDS[CHAPTERS[0]]}")
    expect(page.locator("#search-results li").first).to_be_attached()
    yield page
    page.close()
    assert errors == []


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_search_finds_the_chapter(results: Page, chapter: str) -> None:
    results.evaluate(
        """word => {
          document.querySelector("#search-results").replaceChildren();
          Search.performSearch(word);
        }""",
        WORDS[chapter],
    )
    expect(results.locator(f'#search-results a[href^="{chapter}.html"]').first).to_be_visible()


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

FIGURE = "div.cell_output img:not(.photo)"


def corner(page: Page) -> tuple[int, ...]:
    """Return the colour at the upper left corner of the first figure."""
    picture = Image.open(io.BytesIO(page.locator(FIGURE).first.screenshot()))
    return picture.convert("RGB").getpixel((2, 2))


def ground(page: Page) -> tuple[int, ...]:
    """Return the colour of the page."""
    color = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return tuple(int(number) for number in re.findall(r"\d+", color)[:3])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@on(CHAPTERS)
def test_figures_lie_on_the_ground_of_the_page(page: Page, scheme: str) -> None:
    """Drawn on white, they take the page's colour; dark inverts their lightness, and no photo's."""
    page.emulate_media(color_scheme=scheme)
    page.wait_for_selector(f'html[data-theme="{scheme}"]')
    filters = page.locator("article img.photo").evaluate_all(
        "all => all.filter((one) => one.checkVisibility())"  # an explorer covers its own
        ".map((one) => getComputedStyle(one).filter)"
    )
    assert set(filters) <= {"none"}
    if page.locator(FIGURE).count() == 0:
        assert filters
        return
    style = page.locator(FIGURE).first.evaluate("one => getComputedStyle(one).filter")
    assert ("invert" in style) == (scheme == "dark")
    assert (sum(ground(page)) < 150) == (scheme == "dark")
    assert all(abs(a - b) <= 6 for a, b in zip(corner(page), ground(page), strict=True))


@on(CHAPTERS[:1])
def test_photographs_are_not_inverted(page: Page) -> None:
    page.emulate_media(color_scheme="dark")
    picture = page.locator(FIGURE).first.element_handle()
    picture.evaluate("one => one.classList.add('photo')")
    assert picture.evaluate("one => getComputedStyle(one).filter") == "none"
    picture.evaluate("one => one.classList.remove('photo')")


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


@on(CHAPTERS[:1])
def test_paper_is_light_and_shows_what_is_folded(page: Page) -> None:
    page.emulate_media(color_scheme="dark")
    page.wait_for_selector('html[data-theme="dark"]')
    folded = page.locator("article details").count()
    assert folded > 0
    theme = "document.documentElement.dataset.theme"
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("article details[open]").count() == folded
    assert page.evaluate(theme) == "light"
    page.emulate_media(media="print")
    assert (
        page.locator("#pst-back-to-top").evaluate("one => getComputedStyle(one).display") == "none"
    )
    # No frame opens at the foot of a page with its code on the next.
    breaks = page.locator("article div.cell_input").evaluate_all(
        "all => all.map(one => getComputedStyle(one).breakInside)"
    )
    assert set(breaks) == {"avoid"}
    page.emulate_media(media="screen")
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("article details[open]").count() == 0
    assert page.evaluate(theme) == "dark"


# -- For every reader ------------------------------------------------------------------------

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
# Every rule for WCAG 2.1, levels A and AA, and axe's good practice (headings in order, landmarks).
ALL = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
# What depends on colours is looked at again in the dark, on a page of each kind. On a long page axe
# takes half a minute for the contrast of texts, for which `CONTRAST` takes a second: it measures
# some pages only.
OF_COLOURS = ["color-contrast", "link-in-text-block"]
MEASURED_BY_AXE = ("index", "search")
SEEN_IN_THE_DARK = ("index", "search", "practice", "misconceptions", CHAPTERS[0])
# What axe has nothing to say about, and most of a page consists of: the colours of code, which are
# measured by `CONTRAST`, and the drawn formulas, which stand beside their MathML.
PLAIN = """
() => {
  const colours = "article pre, dt.sig span:not(:has(a, [id]))";
  document.querySelectorAll(colours).forEach(one => { one.textContent = one.textContent; });
  document.querySelectorAll("mjx-math").forEach(one => one.replaceChildren());
}
"""
# Axe does not read MathML, and finds these empty where they hold nothing but a formula.
MATHML_IS_NOT_READ = ["empty-table-header", "summary-name"]
VIOLATIONS = """
async ([rules, contrast, unread]) => {
  const found = await axe.run({
    runOnly: rules,
    preload: false,
    resultTypes: ["violations"],
    rules: {"color-contrast": {enabled: contrast}},
  });
  const isFormula = ({target: [place]}) =>
    typeof place === "string" && document.querySelector(place)?.querySelector("math");
  return found.violations.flatMap(rule =>
    rule.nodes
      .filter(node => !(unread.includes(rule.id) && isFormula(node)))
      .map(node => `${rule.id}: ${node.target}: ${node.failureSummary}`)
  );
}
"""


def violations(page: Page, rules: list[str] = ALL, contrast: bool = True) -> list[str]:
    """Return what axe finds wrong, as lines for people."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    return page.evaluate(VIOLATIONS, [rules, contrast, MATHML_IS_NOT_READ])


def test_axe_finds_no_fault_in_the_menu_of_a_phone(visit: Open) -> None:
    page = visit("index.html", width=360, height=740)
    page.locator(".primary-toggle").first.click()
    assert violations(page) == []


def test_axe_would_find_faults(visit: Open) -> None:
    page = visit("bibliography.html")
    page.evaluate(
        """document.querySelector("article").insertAdjacentHTML("beforeend",
          "<h5>Far down</h5><img src='_static/logo.svg'><p style='color: #aaa'>pale</p>")"""
    )
    found = {line.partition(":")[0] for line in violations(page)}
    assert found == {"heading-order", "image-alt", "color-contrast"}


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
@on(PAGES)
def test_text_has_contrast(page: Page, scheme: str) -> None:
    """4.5 to 1, or 3 to 1 for large text: level AA of the WCAG."""
    page.emulate_media(color_scheme=scheme)
    unfold(page)
    assert page.evaluate(CONTRAST) == []


# -- Phone and keyboard ----------------------------------------------------------------------


@on(CHAPTERS)
def test_code_fits_a_window_of_1280_pixels(page: Page) -> None:
    unfold(page)
    blocks = page.locator("article pre")
    assert blocks.count() > 20
    assert float(blocks.first.evaluate("one => parseFloat(getComputedStyle(one).fontSize)")) >= 12
    cut = blocks.evaluate_all(
        "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.innerText)"
    )
    assert cut == []


@on(CHAPTERS)
def test_pictures_stay_readable_on_a_phone(phone: Page) -> None:
    """Each is 600 pixels wide, in a box that fits the page and scrolls by keyboard."""
    boxes = phone.locator("div.picture")
    sizes = boxes.evaluate_all(
        """all => all.map(
          one => [one.querySelector("img").clientWidth, one.clientWidth, one.tabIndex]
        )"""
    )
    assert len(sizes) == phone.locator("article figure img").count() > 0
    assert all(picture == 600 and box <= 360 and tab == 0 for picture, box, tab in sizes)
    boxes.first.focus()
    phone.keyboard.press("ArrowRight")
    phone.wait_for_function("document.activeElement.scrollLeft > 0")
    caption = phone.locator("article figcaption").first
    assert caption.evaluate("one => one.getBoundingClientRect().right") <= 360


@on(PAGES)
def test_a_phone_scrolls_down_only(phone: Page) -> None:
    """Wide equations, tables and code scroll inside themselves; links to neighbours are whole."""
    unfold(phone)
    for box in ("html", ".bd-main", ".bd-article-container"):
        wide, room = phone.locator(box).first.evaluate("one => [one.scrollWidth, one.clientWidth]")
        assert wide <= room, box
    for link in phone.locator(".prev-next-area a").all():
        wide, room = link.evaluate("one => [one.scrollWidth, one.clientWidth]")
        assert wide <= room


@pytest.mark.parametrize("name", ["notation", "index"])
def test_code_in_tables_stays_whole_on_a_phone(visit: Open, name: str) -> None:
    page = visit(f"{name}.html", width=360, height=740)
    code = page.locator("article td code")
    assert code.count() > 3
    broken = code.evaluate_all(
        "all => all.filter(one => one.getClientRects().length > 1).map(one => one.innerText)"
    )
    assert broken == []


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


@on(CHAPTERS)
def test_hints_and_solutions_are_folded(page: Page, opened: Opened) -> None:
    """A hint and a solution for every exercise, closed until they are asked for."""
    exercises = sum("exercise" in cell.metadata.get("tags", []) for cell in cells_of(opened.name))
    assert exercises >= 3
    assert page.locator('section[id^="exercise-"]').count() == exercises
    folds = page.locator("article details > summary").all_text_contents()
    assert min(folds.count("Hint"), folds.count("Solution")) >= exercises
    first = page.locator("article details").first
    inside = first.locator("p, pre").first
    expect(inside).not_to_be_visible()
    first.locator("summary").click()
    expect(inside).to_be_visible()


@pytest.fixture(scope="module")
def reference(site: Path) -> set[str]:
    """Return the anchors of the API reference."""
    page = BeautifulSoup((site / "api.html").read_text(encoding="utf-8"), "lxml")
    return {tag["id"] for tag in page.select("[id]")}


@on(CHAPTERS)
def test_badges_lead_to_the_reference(page: Page, opened: Opened, reference: set[str]) -> None:
    """A cell that feeds the library says so; a chapter that only measures has no badge."""
    exported = sum(cell.source.startswith("#| export") for cell in cells_of(opened.name))
    badges = page.locator("p.export-badge")
    assert badges.count() == exported
    links = badges.locator("a").evaluate_all("all => all.map(one => one.getAttribute('href'))")
    assert all(link.removeprefix("api.html#") in reference for link in links)
    assert len(links) >= exported


def test_a_badge_can_be_followed(visit: Open) -> None:
    page = visit(f"{CHAPTERS[0]}.html")
    badge = page.locator("p.export-badge a").first
    module = badge.inner_text().removesuffix(".py").replace("/", ".")
    badge.click()
    page.wait_for_url(f"**/api.html#module-{module}")
    assert page.locator(f'[id="module-{module}"]').count() == 1


@on(CHAPTERS[:1])
def test_copying_code_leaves_the_output_behind(page: Page) -> None:
    """What the copy button takes is the cell as it can be run."""
    button = page.locator("div.cell_input button.copybtn").first
    target = button.get_attribute("data-clipboard-target")
    assert "import torch" in page.locator(target).inner_text()


@on(PAGES)
def test_axe_finds_no_fault(page: Page, opened: Opened) -> None:
    """Names, labels, roles, headings, landmarks, alternatives, language, colours.

    This comes last: it takes from the page what axe need not see.
    """
    contrast = opened.name in MEASURED_BY_AXE
    unfold(page)
    if not contrast:
        page.evaluate(PLAIN)
    assert violations(page, contrast=contrast) == []
    if opened.name in SEEN_IN_THE_DARK:
        page.emulate_media(color_scheme="dark")
        assert violations(page, OF_COLOURS, contrast) == []
