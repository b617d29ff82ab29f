"""Quizzes and the page of exercises, as a reader uses them."""

import re

from playwright.sync_api import Browser, Page, expect

CHAPTER = "04_softmax_jacobian.html"


def open_page(browser: Browser, address: str, **options: object) -> Page:
    page = browser.new_context(**options).new_page()
    page.goto(address)
    page.evaluate("window.MathJax && MathJax.startup.promise")
    return page


def test_a_quiz_by_keyboard(browser: Browser, address: str) -> None:
    """Tab reaches every answer, Enter opens it, and what it says has its mathematics."""
    page = open_page(browser, f"{address}/{CHAPTER}")
    answers = page.locator("section#what-do-you-remember details.answer")
    assert page.locator("details.answer summary mjx-container").count() > 3
    assert answers.locator("> p").first.is_hidden()
    answers.first.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(answers.first.locator("> p").first).to_be_visible()
    expect(answers.first).to_contain_text(re.compile(r"Right\.|No\."))
    page.keyboard.press("Tab")
    while "answer" not in page.evaluate("document.activeElement.parentElement.className"):
        page.keyboard.press("Tab")  # past the links of the explanation
    page.keyboard.press("Space")
    expect(answers.nth(1)).to_have_attribute("open", "")
    borders = {
        kind: answers.and_(page.locator(f".{kind}")).first.evaluate(
            "one => (one.open = true, getComputedStyle(one).borderLeftColor)"
        )
        for kind in ("right", "wrong")
    }
    assert borders["right"] != borders["wrong"]
    page.context.close()


def test_exercises_are_filtered_and_ticked(browser: Browser, address: str) -> None:
    """Without a script the table is whole; with it, ticks outlive the page."""
    plain = open_page(browser, f"{address}/practice.html", java_script_enabled=False)
    rows = plain.locator("table.exercise-list tbody tr:not(.chapter)")
    total = rows.count()
    assert total > 70
    assert plain.locator(".exercise-filter").count() == 0
    plain.context.close()

    page = open_page(browser, f"{address}/practice.html")
    visible = page.locator("table.exercise-list tbody tr:not(.chapter):visible")
    status = page.get_by_role("status")
    expect(visible).to_have_count(total)
    page.get_by_label("Difficulty").select_option("●●●")
    hard = visible.count()
    assert 0 < hard < total
    assert all("●●●" in text for text in visible.all_inner_texts())
    expect(status).to_contain_text(f"{hard} of {total} exercises")
    headings = page.locator("table.exercise-list tr.chapter:visible").count()
    page.get_by_label("Minutes").select_option("up to 10")
    assert page.locator("table.exercise-list tr.chapter:visible").count() < headings
    page.get_by_label("Difficulty").select_option("any")
    page.get_by_label("Minutes").select_option("any")

    page.get_by_label("Exercise 3.2 is done").check()
    expect(status).to_contain_text("Done: 1")
    page.reload()
    expect(page.get_by_label("Exercise 3.2 is done")).to_be_checked()
    page.get_by_label("Show").select_option("not done yet")
    expect(visible).to_have_count(total - 1)
    page.get_by_role("link", name="1.4: The backward pass by hand").click()
    expect(page.locator("section#exercise-1-4-the-backward-pass-by-hand")).to_be_in_viewport()
    page.context.close()


def test_practice_on_a_phone(browser: Browser, address: str) -> None:
    page = open_page(browser, f"{address}/practice.html", viewport={"width": 360, "height": 740})
    wide, room = page.locator("html").evaluate("one => [one.scrollWidth, one.clientWidth]")
    assert wide <= room
    page.context.close()
