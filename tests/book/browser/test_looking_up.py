"""Finding things: the first screen, the search, the links between code and reference, the sheet."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """Return one page for all tests here."""
    context = browser.new_context()
    context.set_default_timeout(90_000)  # for machines that do other things as well
    yield context.new_page()
    context.close()


@pytest.mark.parametrize(
    ("width", "height", "motion", "picture"),
    [
        (1280, 800, "no-preference", "writing-narrow.svg"),
        (1280, 800, "reduce", "writing-narrow-still.svg"),
        (360, 740, "no-preference", "writing-narrow.svg"),
        (360, 740, "reduce", "writing-narrow-still.svg"),
    ],
)
def test_the_first_screen_shows_the_translator_and_three_ways_in(
    page, address, width, height, motion, picture
):
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(reduced_motion=motion)
    page.goto(f"{address}/index.html")
    image = page.locator(".book-writing img")
    assert image.evaluate("one => one.currentSrc").endswith(f"/_static/{picture}")
    assert image.evaluate("one => one.complete && one.naturalWidth > 0")
    assert image.bounding_box()["width"] > 280
    assert "인도" in image.get_attribute("alt")
    assert page.locator('img[src="_static/detections.png"]:visible').count() == 1
    ways = page.locator(".book-cards a.sd-stretched-link")
    assert ways.count() == 3
    for card in page.locator(".book-cards .sd-card").all():
        place = card.bounding_box()
        assert place["y"] + place["height"] <= height
    targets = [way.get_attribute("href") for way in ways.all()]
    assert targets == ["01_weighted_sums.html", "#sec-run", "#sec-ten-lines"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("어텐션", ["03_attention", "glossary"]),
        ("어텐션은", ["03_attention", "glossary"]),
        ("마스크를", ["06_masking"]),
        ("softmax", ["04_softmax_jacobian", "03_attention", "api"]),
        ("DETR", ["17_detr", "18_object_detection_pipeline", "glossary"]),
    ],
)
def test_search_finds_words_of_both_languages(page, address, query, found):
    page.goto(f"{address}/search.html?q={query}")
    for name in found:
        expect(page.locator(f'#search-results a[href^="{name}.html"]').first).to_be_attached()


def test_the_glossary_comes_first_and_excerpts_begin_with_the_page(page, address):
    page.goto(f"{address}/search.html?q=어텐션")
    found = page.locator("#search-results ul.search > li")
    expect(found.first.locator("a").first).to_have_attribute("href", re.compile("^glossary"))
    chapter = found.filter(has=page.locator('a[href^="03_attention.html"]')).first
    expect(chapter.locator("p.context")).to_contain_text("A decoder is translating")


def test_a_name_above_a_cell_leads_to_its_entry_and_back(page, address):
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"{address}/06_masking.html")
    page.locator("p.export-badge a", has_text=re.compile("^causal_mask$")).click()
    page.wait_for_url("**/api.html#transformer_lib.masking.causal_mask", wait_until="commit")
    entry = page.locator('dt[id="transformer_lib.masking.causal_mask"]')
    expect(entry).to_be_in_viewport()
    page.locator("dl", has=entry).last.locator("p.built-in a").first.click()
    page.wait_for_url(re.compile(r"/06_masking\.html#"), wait_until="commit")
    section = page.locator(f'section[id="{page.url.partition("#")[2]}"]')
    expect(section.locator("p.export-badge", has_text="causal_mask")).to_have_count(1)


def test_the_map_of_the_library_is_read_without_scrolling_on_a_phone(page, address):
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(f"{address}/library_map.html")
    image = page.locator(".library-map img")
    assert image.evaluate("one => one.currentSrc").endswith("/_static/library-narrow.svg")
    place = image.bounding_box()
    assert place["x"] >= 0
    assert place["x"] + place["width"] <= 360
    letters = 11 * place["width"] / image.evaluate("one => one.naturalWidth")  # as in pictures.py
    assert letters >= 9.5


def test_the_cheat_sheet_is_one_page_of_paper(page, address):
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"{address}/cheat_sheet.html")
    page.evaluate("MathJax.startup.promise")
    margin = dict.fromkeys(("top", "bottom", "left", "right"), "1cm")
    pdf = page.pdf(format="A4", margin=margin)
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 1
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 718, "height": 1000})  # what is between those margins
    for table in page.locator("article table").all():
        wide, room = table.evaluate("one => [one.scrollWidth, one.clientWidth]")
        assert wide <= room + 1
    page.emulate_media(media="screen")
