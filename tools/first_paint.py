"""Print when the pages of the built site first show something, and how much they load.

``python tools/first_paint.py`` opens every page of ``_build/html``, or those that are named, from a
local server in Chromium: as the first page of a new reader, and again with all that pages share
loaded. The first contentful paint is in milliseconds after the link was followed (the median of
several visits), the weight in kilobytes: the page with its own pictures, and all that a new reader
loads.
"""

import argparse
from pathlib import Path
from statistics import median

import browsing
from playwright.sync_api import BrowserContext

ROOT = Path(__file__).resolve().parent.parent

MEASURE = """
async () => {
  const paint = await new Promise(resolve => {
    new PerformanceObserver(list => {
      const [entry] = list.getEntriesByName("first-contentful-paint");
      if (entry) resolve(entry.startTime);
    }).observe({type: "paint", buffered: true});
  });
  const loaded = [...performance.getEntriesByType("navigation"),
    ...performance.getEntriesByType("resource")];
  const size = all => all.reduce((sum, one) => sum + one.encodedBodySize, 0);
  const own = loaded.filter(one => !/\\/_static\\/|\\/searchindex.js/.test(one.name));
  return [paint, size(own), size(loaded)];
}
"""


def visit(context: BrowserContext, address: str) -> tuple[float, float, float]:
    """Open a page; return its first paint in ms, its own bytes and all bytes it loads."""
    page = context.new_page()
    page.goto(address, timeout=120_000)
    measured = page.evaluate(MEASURE)
    page.close()
    return tuple(measured)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pages", nargs="*", help="names as in _toc.yml, by default all")
    parser.add_argument("--site", type=Path, default=ROOT / "_build/html", help="the built site")
    parser.add_argument("--visits", type=int, default=3, help="of each page and kind")
    options = parser.parse_args()
    print(f"{'page':34} {'first visit':>11} {'later visit':>11} {'own kB':>8} {'all kB':>8}")
    with browsing.serve(options.site) as address, browsing.start_chromium() as browser:
        known = browser.new_context(viewport={"width": 1280, "height": 900})
        visit(known, f"{address}/index.html")
        everywhere = sorted(options.site.glob("*.html"))
        named = [options.site / f"{name}.html" for name in options.pages]
        for path in named or everywhere:
            first = []
            for _ in range(options.visits):
                new = browser.new_context(viewport={"width": 1280, "height": 900})
                first.append(visit(new, f"{address}/{path.name}"))
                new.close()
            later = [visit(known, f"{address}/{path.name}") for _ in range(options.visits)]
            paints = [median(one[0] for one in visits) for visits in (first, later)]
            own, everything = (max(one[column] for one in first) / 1000 for column in (1, 2))
            print(
                f"{path.stem:34} {paints[0]:8.0f} ms {paints[1]:8.0f} ms "
                f"{own:8.0f} {everything:8.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
