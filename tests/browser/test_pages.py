"""Every page and interaction in a real browser: reading, keys, forms, without scripts, narrow, dark, and by axe."""

import re
from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Route, ViewportSize, expect

from browser_support import signed_in

PATHS = [
    "/",
    "/trades",
    "/trades/ID",
    "/prompt",
    "/recall?direction=long&regime=trending_up",
    "/decisions",
    "/decisions/ID",
    "/lessons",
    "/mind",
    "/documents?q=daily+loss&path=TRADING_MANUAL.md&lines=3-5",
    "/facts",
    "/status",
    "/sign-in",
    "/no-such-page",
]
MEANS_WITHOUT_INTERVAL = """
[...document.querySelectorAll('th')].filter(visible).filter(heading => {
  let next = heading.nextElementSibling;
  while (next && !visible(next)) next = next.nextElementSibling;
  const isMean = /^(won|mean|mean R|expectancy|a day|a trade|money a day)$/.test(heading.textContent.trim());
  return isMean && next?.textContent.trim() !== '90%';
}).map(heading => heading.closest('table').textContent);
function visible(element) { return element.offsetParent !== null; }
"""
"""The tables that show a mean or a share of wins whose interval is not visible beside it."""
NARROW: ViewportSize = {"width": 375, "height": 800}


def address(page: Page, url: str, path: str) -> str:
    """The address of a path; ID is that of the first row of its list."""
    if not path.endswith("/ID"):
        return url + path
    page.goto(url + path.removesuffix("/ID"))
    link = page.locator(f"table.list a[href^='{path.removesuffix('ID')}']").first.get_attribute("href")
    return f"{url}{link}"


@pytest.mark.parametrize(("scheme", "viewport"), [("light", None), ("dark", None), ("light", NARROW)])
def test_axe_finds_nothing_and_nothing_scrolls_sideways(
    browser: Browser, demo_url: str, empty_url: str, scheme: str, viewport: ViewportSize | None
) -> None:
    axe = Axe()
    options = {"color_scheme": scheme, **({"viewport": viewport} if viewport else {})}
    for url in (demo_url, empty_url):
        page = signed_in(browser, url, **options)
        for path in PATHS:
            if url == empty_url and "ID" in path:
                continue
            page.goto(address(page, url, path))
            if viewport:
                page.set_viewport_size(viewport)
            assert axe.run(page).violations_count == 0, (path, axe.run(page).generate_report())
            for width in (375, 768) if viewport else (1280,):
                page.set_viewport_size({"width": width, "height": 800})
                beyond = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                assert beyond <= 0, (path, width, beyond)
                assert page.evaluate(MEANS_WITHOUT_INTERVAL) == [], (path, width)
        page.context.close()


def test_no_request_leaves_the_host_and_the_policy_refuses_nothing_of_ours(browser: Browser, demo_url: str) -> None:
    page, requests, messages = signed_in(browser, demo_url), [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: messages.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: messages.append(str(error)))
    for path in PATHS[:-1]:
        response = page.goto(address(page, demo_url, path))
        assert response is not None
        page.wait_for_load_state("networkidle")
        policy = response.headers["content-security-policy"]
        assert "require-trusted-types-for 'script'; trusted-types 'none'" in policy
        assert "unsafe" not in policy
    assert [each for each in requests if not each.startswith(demo_url)] == []
    assert messages == []
    page.context.close()


def test_every_page_reads_and_every_form_posts_without_scripts(browser: Browser, demo_url: str) -> None:
    page = signed_in(browser, demo_url, java_script_enabled=False)
    for path in PATHS[:-1]:
        response = page.goto(address(page, demo_url, path))
        assert response is not None
        assert response.status == 200, path
        assert page.locator("h1").count() == 1
    page.goto(address(page, demo_url, "/trades/ID"))
    page.fill("textarea[name=reflection]", "Entered late.")
    page.click("text=Annotate")
    expect(page.locator(".prose", has_text="Entered late.")).to_be_visible()
    page.goto(f"{demo_url}/status")
    page.click("text=Verify now")
    expect(page.locator("#verification")).to_contain_text("Verif")
    page.goto(f"{demo_url}/")
    page.click("#earlier")
    assert "as_of=" in page.url
    page.click("nav >> text=Trades")
    assert "as_of=" in page.url
    page.context.close()


def test_the_slider_moves_the_whole_page(page: Page, demo_url: str) -> None:
    page.goto(demo_url + "/")
    slider = page.locator("#slider")
    expect(slider).to_be_visible()
    slider.focus()
    with page.expect_navigation():
        slider.press("Home")
    assert "as_of=" in page.url
    expect(page.locator("footer")).to_contain_text("nothing later")


def test_a_walk_by_keyboard(page: Page, demo_url: str) -> None:
    page.goto(demo_url + "/trades")
    page.keyboard.press("j")
    page.keyboard.press("j")
    first = page.locator("tr.selected a").get_attribute("href")
    page.keyboard.press("k")
    assert page.locator("tr.selected a").get_attribute("href") != first
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/trades/"))
    page.goto(demo_url + "/decisions")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.tagName") == "A"
    page.go_back()
    page.wait_for_url(re.compile("/trades/"))
    chart = page.locator("#prices")
    chart.focus()
    page.keyboard.press("ArrowRight")
    expect(chart.locator("output")).to_contain_text("close")
    with page.expect_response(re.compile("fragment=chart")):
        page.keyboard.press("+")
    page.wait_for_url(re.compile("from="))
    page.goto(demo_url + "/documents")
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    page.goto(demo_url + "/prompt")
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(re.compile("as_of="))


def test_every_stop_of_the_tab_key_shows_its_focus_and_a_chart_is_one_stop(page: Page, demo_url: str) -> None:
    page.goto(demo_url + "/")
    stops = []
    for _ in range(60):
        page.keyboard.press("Tab")
        stop = page.evaluate(
            "(() => { const e = document.activeElement; const s = getComputedStyle(e);"
            " return [e.tagName, e.id, e.closest('svg') !== null, s.outlineStyle] })()"
        )
        stops.append(stop)
        if stop[0] == "BODY":
            break
    assert [stop[1] for stop in stops if stop[0] == "FIGURE"] == ["equity", "days"]
    assert not any(stop[2] for stop in stops)
    assert all(stop[3] != "none" for stop in stops if stop[0] != "BODY")


def test_brushing_filters_the_table(page: Page, demo_url: str) -> None:
    page.goto(demo_url + "/trades")
    before = page.locator("#table .list tbody tr").count()
    area = page.locator("#scatter .wide .brush")
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 5, box["y"] + box["height"] - 5)
    with page.expect_response(re.compile("fragment=table")):
        page.mouse.up()
    page.wait_for_url(re.compile("mae_r_from"))
    assert page.locator("#table .list tbody tr").count() < before
    expect(page.locator("#table")).to_contain_text("Only the brushed part: MAE")


def test_a_filter_changes_every_part_of_the_page(page: Page, demo_url: str) -> None:
    page.goto(demo_url + "/trades?by=session")
    count, results = page.locator("#table p").first, page.locator("[data-fragment=results]")
    unfiltered = count.inner_text()
    page.locator("input[name=since]").fill("2025-03-01")
    with page.expect_response(re.compile("fragment=results")):
        page.keyboard.press("Tab")
    expect(results).to_contain_text("Broken down by session")
    expect(count).not_to_have_text(unfiltered)
    table = re.match(r"^(\d+) closed trades", count.inner_text())
    assert table is not None
    expect(results).to_contain_text(f"{table[1]} closed trades by session")
    assert page.locator("#scatter tbody tr").count() == int(table[1])


@pytest.mark.parametrize("late", ["the older", "the newer"])
def test_of_two_answers_that_of_the_last_question_is_shown(page: Page, demo_url: str, late: str) -> None:
    page.goto(demo_url + "/trades?result=lost&order=worst")
    row = page.locator("#table .list tbody a").first
    worst = row.get_attribute("href") or "none"
    page.goto(demo_url + "/trades")
    waiting: list[Route] = []
    page.route(re.compile("fragment=table"), lambda route: waiting.append(route))  # a built-in method is refused
    for field, value in (("result", "lost"), ("order", "worst")):
        page.locator(f"select[name={field}]").select_option(value)
    for _ in range(500):
        if len(waiting) == 2:
            break
        page.wait_for_timeout(20)
    for route in waiting if late == "the newer" else reversed(waiting):
        with page.expect_response(re.compile("fragment=table")):
            route.continue_()
        page.wait_for_timeout(200)
    expect(row).to_have_attribute("href", re.compile(worst.partition("?")[0]))
    page.wait_for_url(re.compile("order=worst"))


def test_wheel_and_drag_zoom_into_the_bars(page: Page, demo_url: str) -> None:
    page.goto(address(page, demo_url, "/trades/ID"))
    for zoom in ("wheel", "drag"):
        box = page.locator("#prices .wide svg").bounding_box()
        assert box is not None
        x, y = box["x"] + 0.3 * box["width"], box["y"] + 0.5 * box["height"]
        page.locator("#prices").focus()
        page.mouse.move(x, y)
        with page.expect_response(re.compile("fragment=chart")):
            if zoom == "wheel":
                page.mouse.wheel(0, -100)
            else:
                page.mouse.down()
                page.mouse.move(x + 120, y)
                page.mouse.up()
        page.wait_for_url(re.compile("from="))


def test_two_decisions_are_compared_both_open(page: Page, demo_url: str) -> None:
    page.goto(demo_url + "/decisions?kind=executed")
    rows = page.locator("table.list tbody tr")
    rows.nth(0).locator("input[name=first]").check()
    rows.nth(1).locator("input[name=second]").check()
    page.click("text=Compare two")
    expect(page.locator(".columns section h2")).to_have_count(2)


def test_print_has_the_content_without_the_controls(page: Page, demo_url: str) -> None:
    page.goto(demo_url + "/trades")
    page.emulate_media(media="print")
    expect(page.locator("#table .list")).to_be_visible()
    for control in ("nav", "#state", "form.filters"):
        expect(page.locator(control).first).to_be_hidden()
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"


def test_changing_the_context_moves_the_ranks(page: Page, demo_url: str) -> None:
    page.goto(demo_url + "/recall")
    before = page.locator("#results").inner_text()
    with page.expect_response(re.compile("fragment=results")):
        page.select_option("select[name=regime]", "volatile")
    page.wait_for_url(re.compile("regime=volatile"))
    assert page.locator("#results").inner_text() != before
    page.locator("#results a", has_text="why").first.click()
    expect(page.locator("h1")).to_contain_text("Why this memory")


def test_verification_runs_in_the_background(page: Page, demo_url: str) -> None:
    page.goto(demo_url + "/status")
    page.check("input[name=everything]")
    page.click("text=Verify now")
    expect(page.locator("#verification")).to_contain_text("nothing was changed", timeout=20_000)


def test_times_are_in_the_zone_of_the_viewer_with_utc_on_hover(browser: Browser, demo_url: str) -> None:
    page = signed_in(browser, demo_url, timezone_id="Asia/Tokyo")
    page.goto(demo_url + "/trades")
    time = page.locator("#table time").first
    assert time.get_attribute("title") != f"{time.inner_text()}:00 UTC"
    expect(page.locator("#zone")).to_contain_text("Asia/Tokyo")
    page.context.close()


@pytest.fixture
def stranger(browser: Browser, demo_url: str) -> Iterator[Page]:
    context = browser.new_context()
    yield context.new_page()
    context.close()


def test_without_signing_in_one_reads_and_writes_nothing(stranger: Page, demo_url: str) -> None:
    stranger.goto(address(stranger, demo_url, "/trades/ID"))
    stranger.fill("textarea[name=reflection]", "Mine.")
    stranger.click("text=Annotate")
    expect(stranger.locator("h1")).to_contain_text("Refused")
