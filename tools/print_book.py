"""Print the built site as one PDF: ``_build/html/building-the-transformer.pdf``.

Chromium prints every page of ``_toc.yml`` with the site's own style and ``tools/print_book.css``.
What is folded on the site is open on paper; pictures are as on the light site; explorers stand as
they start; links between pages lead to places in the PDF. In front come a title page and a table of
contents, which is printed last, when the numbers of the pages are known. The marks of the
structure, for screen readers, stay.

The pages of the site carry a hidden link to the PDF; once the PDF is there, the link is shown.
"""

import argparse
import html
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote

import browsing
import yaml
from bs4 import BeautifulSoup, Tag
from pikepdf import (
    Array,
    Dictionary,
    Name,
    NumberTree,
    ObjectStreamMode,
    OutlineItem,
    PageLocation,
    Pdf,
    String,
)
from playwright.sync_api import BrowserContext

ROOT = Path(__file__).resolve().parent.parent
STYLE = Path(__file__).with_suffix(".css")
NAME = "building-the-transformer.pdf"
HIDDEN_LINK = re.compile(r"<!--pdf (.*?) pdf-->", re.S)
SCALE = 0.8  # at which a line of code of 100 characters fits the paper
LINES_KEPT_TOGETHER = 18  # longer code and outputs may be parted between pages
INSIDE = "https://book.invalid/"  # stands for the PDF itself in the table of contents
# What only a screen can use; an explorer's script draws it.
ON_SCREEN_ONLY = (
    "script:not([data-explorer] + script), button, dialog, .headerlink, .toctree-wrapper, "
    ".viewcode-link"
)


@dataclass
class Page:
    """A page of the site: its name, what stands on it, and its place in the contents."""

    name: str
    title: str
    article: Tag
    part: str | None
    linked: list[str] = field(default_factory=list)  # places on it that other pages lead to

    def sections(self) -> list[tuple[str, str]]:
        """Return the sections as pairs of anchor and title."""
        return [(str(heading["id"]), plain(heading)) for heading in self.article.select("h2[id]")]


def contents(toc: dict) -> Iterator[tuple[str, str | None]]:
    """Yield every page's name in reading order, with the title of its part."""
    yield toc["root"], None
    for part in toc["parts"]:
        for chapter in part["chapters"]:
            yield chapter["file"], part["caption"]


def plain(heading: Tag) -> str:
    """Return a heading's text, with its formulas written out."""
    text = heading.get_text()
    text = re.sub(r"\\\((.+?)\\\)", lambda found: untex(found[1]), text, flags=re.S)
    return " ".join(text.removesuffix("#").split())


def untex(formula: str) -> str:
    r"""Write a short formula without TeX: `\sqrt{d_k}` becomes `√d_k`."""
    formula = re.sub(r"\\sqrt\{?(\w+)\}?", r"√\1", formula)
    formula = re.sub(r"\\(?:mathrm|text|operatorname)\{([^}]*)\}", r"\1", formula)
    formula = formula.replace(r"\times", "×").replace(r"\cdot", "·").replace(r"\to", "→")
    return re.sub(r"[\\{}]", "", formula)


def read_page(site: Path, name: str, part: str | None) -> Page:
    """Read one built page and make its article fit for paper, with anchors of its own."""
    soup = BeautifulSoup((site / f"{name}.html").read_text(encoding="utf-8"), "html.parser")
    article = soup.select_one("article.bd-article")
    if article is None:
        raise ValueError(f"{name}.html has no article")
    for tag in article.select(ON_SCREEN_ONLY):
        tag.decompose()
    for tag in article.select("details"):
        tag["open"] = ""
    for picture in article.select("picture"):
        printed = picture.select_one('source[media^="print"]')
        if printed is not None:
            picture.img["src"] = printed["srcset"]
        for source in picture.select("source"):
            source.decompose()
    for block in article.select("pre"):
        if block.get_text().count("\n") > LINES_KEPT_TOGETHER:
            block["class"] = [*block.get("class", []), "long"]
    for image in article.select("img"):
        image["loading"] = "eager"
    # Where a section begins at the foot of a page, its heading stands on the next.
    for heading in article.select("section[id] > :is(h2, h3, h4)"):
        for place in heading.find_previous_siblings("span", id=True):
            heading.insert(0, place.extract())
        heading["id"] = heading.parent["id"]
        heading.parent["id"] += "--section"
    heading = article.select_one("h1")
    if heading is None:
        raise ValueError(f"{name}.html has no title")
    return Page(name, plain(heading), article, part)


def anchor(page: str, name: str = "") -> str:
    """Name a page, or a place of it whose own name other pages have too.

    The page stands behind, so that the site's style finds what it knows by its first letters.
    """
    return f"{name}--{page}"


def tell_apart(pages: list[Page]) -> None:
    """Give every place a name of its own, and lead the links between pages to places."""
    owners: dict[str, set[str]] = {}
    for page in pages:
        for tag in page.article.select("[id]"):
            owners.setdefault(str(tag["id"]), set()).add(page.name)

    def unique(page: str, name: str) -> str:
        return name if len(owners.get(name, ())) < 2 else anchor(page, name)

    known = {page.name for page in pages}
    linked: set[str] = set()
    for page in pages:
        for link in page.article.select("a[href]"):
            address, _, place = str(link["href"]).partition("#")
            if re.match(r"\w+:", address):
                continue
            name = address.removesuffix(".html") or page.name
            if name in known and (not place or name in owners.get(place, ())):
                target = unique(name, place) if place else anchor(name)
                link["href"] = f"#{target}" if name == page.name else INSIDE + target
                linked.add(target)
            else:
                link.unwrap()
        for attribute in ("aria-labelledby", "aria-describedby", "for"):
            for tag in page.article.select(f"[{attribute}]"):
                value = tag[attribute]
                names = value if isinstance(value, list) else value.split()
                tag[attribute] = " ".join(unique(page.name, name) for name in names)
    for page in pages:
        for tag in page.article.select("[id]"):
            tag["id"] = unique(page.name, str(tag["id"]))
            if tag["id"] in linked:
                page.linked.append(tag["id"])


def document(page: Page, part: str | None, printed: int, head: Tag) -> str:
    """Return a page as an HTML document, of which a part's title and printed pages come before."""
    title = page.title.replace("\\", r"\\").replace('"', r"\"")
    # Chromium notes the place of an anchor when a link of the document leads to it.
    places = [anchor(page.name), *dict(page.sections()), *page.linked]
    links = "".join(f'<a href="#{html.escape(place)}"></a>' for place in places)
    return HTML.format(
        head=head.decode_contents(),
        style=STYLE.read_text(encoding="utf-8")
        + f"""html {{ counter-reset: page {printed} }}
        @page {{ @bottom-left {{ content: "{title}" }} }}""",
        body='<main class="bd-main"><div class="bd-content"><div class="bd-article-container">'
        + (f'<p class="part">{html.escape(part)}</p>' if part else "")
        + f'<div id="{anchor(page.name)}">{page.article}</div></div></div></main>'
        f"<nav hidden>{links}</nav>",
    )


HTML = """<!doctype html>
<html lang="en" data-theme="light" data-mode="light">
<head>{head}<style>{style}</style></head>
<body>{body}</body>
</html>"""


def head_of(site: Path, name: str) -> Tag:
    """Return the head of a built page with its styles and its mathematics, and no other script."""
    head = BeautifulSoup((site / f"{name}.html").read_text(encoding="utf-8"), "lxml").head
    for script in head.select("script"):
        if "mathjax" not in (script.get_text() + script.get("src", "")).lower():
            script.decompose()
    for tag in head.select('link:not([rel="stylesheet"]), noscript, title'):
        tag.decompose()
    return head


def front_matter(
    cover: str, pages: list[Page], places: dict[str, tuple[int, float]], head: Tag
) -> str:
    """Return the title page and the table of contents as an HTML document."""

    def row(kind: str, place: str, title: str) -> str:
        return (
            f'<li class="{kind}"><a href="{INSIDE}{html.escape(place)}"><span>{html.escape(title)}'
            f"</span><i></i><b>{places[place][0]}</b></a></li>"
        )

    rows, part = [], None
    for page in pages:
        if page.part != part:
            rows.append(f'<li class="toc-part">{html.escape(page.part or "")}</li>')
            part = page.part
        rows.append(row("toc-page", anchor(page.name), page.title))
        if re.match(r"\d", page.title):
            rows += [row("toc-section", *section) for section in page.sections()]
    return HTML.format(
        head=head.decode_contents(),
        style=STYLE.read_text(encoding="utf-8")
        + "@page { @bottom-right { content: counter(page, lower-roman) } }",
        body=f'<div class="cover">{cover}</div>'
        f'<h1>Contents</h1><ul class="toc">{"".join(rows)}</ul>',
    )


def cover(root: Path) -> str:
    """Return what stands on the first page."""
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    library = (root / "transformer_lib/__init__.py").read_text(encoding="utf-8")
    version = re.search(r'__version__ = "(.+)"', library)[1]
    return (
        f'<img src="_static/logo.svg" alt=""><p class="title">{html.escape(config["title"])}</p>'
        f"<p>{html.escape(config['author'])}</p><p>Version {version}, {config['copyright']}</p>"
        '<p class="licence">Text and pictures are under CC BY 4.0, the code is under the MIT '
        "licence.</p>"
    )


# -- Printing --------------------------------------------------------------------------------


def print_html(context: BrowserContext, address: str, file: Path) -> Pdf:
    """Print a document of a folder that is served at an address."""
    faults: list[str] = []
    page = context.new_page()
    page.set_default_timeout(600_000)
    page.on("requestfailed", lambda request: faults.append(f"not loaded: {request.url}"))
    page.on("response", lambda r: faults.append(f"{r.status} {r.url}") if r.status >= 400 else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.emulate_media(media="print")
    page.goto(f"{address}/{file.name}")
    page.evaluate("window.MathJax && MathJax.startup.promise")
    page.evaluate("document.fonts.ready")
    if page.locator("mjx-container").count() < page.locator(".math").count():
        faults.append(f"{file.name}: formulas are left that were not typeset")
    if faults:
        raise RuntimeError("\n".join(faults))
    printed = page.pdf(prefer_css_page_size=True, print_background=True, scale=SCALE, tagged=True)
    page.close()
    return Pdf.open(BytesIO(printed))


def places_of(printed: Pdf, before: int) -> dict[str, tuple[int, float]]:
    """Return where the anchors stand: the number of the page, and the height on it."""
    numbers = {page.objgen: number for number, page in enumerate(printed.pages, before + 1)}
    return {
        name.removeprefix("/"): (numbers[place[0].objgen], float(place[3]))
        for name, place in printed.Root.get("/Dests", {}).items()
    }


class Binding:
    """A PDF to which printed documents are added, with their structure."""

    def __init__(self) -> None:
        self.pdf = Pdf.new()
        self.structure = self.pdf.make_indirect(
            Dictionary(Type=Name.StructTreeRoot, K=Array(), ParentTree=Dictionary(Nums=Array()))
        )
        self.pdf.Root.StructTreeRoot = self.structure
        self.pdf.Root.MarkInfo = Dictionary(Marked=True)
        self.pdf.Root.Lang = String("en")
        self.pdf.Root.ViewerPreferences = Dictionary(DisplayDocTitle=True)

    def add(self, printed: Pdf) -> None:
        """Add the pages of a document."""
        first = len(self.pdf.pages)
        self.pdf.add_pages_from(printed, outlines="ignore")
        # Pages and links are keys in one list of what they hold: those of a document follow on.
        parents = self.structure.ParentTree.Nums
        before = int(parents[-2]) + 1 if len(parents) else 0
        for page in self.pdf.pages[first:]:
            for thing, key in (
                (page.obj, "/StructParents"),
                *((link, "/StructParent") for link in page.get("/Annots", [])),
            ):
                if key in thing:
                    thing[key] = int(thing[key]) + before
        added = self.pdf.copy_foreign(printed.Root.StructTreeRoot)
        for key, held in NumberTree(added.ParentTree).items():
            parents.extend([before + key, held])
        for element in added.K if isinstance(added.K, Array) else [added.K]:
            element.P = self.structure
            self.structure.K.append(element)
        self.structure.ParentTreeNextKey = int(parents[-2]) + 1

    def finish(self, pages: list[Page], places: dict[str, tuple[int, float]], n_front: int) -> None:
        """Make bookmarks and page labels, and lead links to the places they name."""
        sheets = self.pdf.pages
        self.pdf.Root.Dests = Dictionary(
            {
                f"/{name}": Array([sheets[n_front + number - 1].obj, Name.XYZ, 0, height, 0])
                for name, (number, height) in places.items()
            }
        )
        for sheet in sheets:
            for link in sheet.get("/Annots", []):
                target = str(link.A.get("/URI", "")) if "/A" in link else ""
                if target.startswith(INSIDE):
                    del link.A
                    link.Dest = Name(f"/{unquote(target.removeprefix(INSIDE))}")
        roman, decimal = Dictionary(S=Name.r), Dictionary(S=Name.D)
        self.pdf.Root.PageLabels = Dictionary(Nums=[0, roman, n_front, decimal])

        def bookmark(place: str, title: str) -> OutlineItem:
            number, height = places[place]
            return OutlineItem(title, n_front + number - 1, PageLocation.XYZ, left=0, top=height)

        with self.pdf.open_outline() as outline:
            part, above = None, outline.root
            for page in pages:
                if page.part != part:
                    part = page.part
                    outline.root.append(bookmark(anchor(page.name), part or ""))
                    above = outline.root[-1].children
                chapter = bookmark(anchor(page.name), page.title)
                chapter.children += [bookmark(*section) for section in page.sections()]
                chapter.is_closed = True
                above.append(chapter)


def print_book(site: Path, root: Path, names: list[str]) -> Pdf:
    """Print pages of a built site, all of them unless some are named."""
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    listed = dict(contents(toc))
    if unknown := set(names) - listed.keys():
        raise ValueError(f"no such page in _toc.yml: {', '.join(sorted(unknown))}")
    pages = [read_page(site, name, listed[name]) for name in listed if not names or name in names]
    tell_apart(pages)
    head = head_of(site, next((p.name for p in pages if p.article.select_one(".math")), "index"))
    places: dict[str, tuple[int, float]] = {}
    bodies: list[Pdf] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        for shared in ("_static", "_images"):
            (folder / shared).symlink_to((site / shared).resolve())
        address = stack.enter_context(browsing.serve(folder))
        context = stack.enter_context(browsing.start_chromium()).new_context(color_scheme="light")

        def printed(name: str, text: str) -> Pdf:
            file = folder / f"{name}.html"
            file.write_text(text, encoding="utf-8")
            return print_html(context, address, file)

        before, part = 0, None
        for page in pages:
            opens = page.part if page.part != part else None
            body = printed(page.name, document(page, opens, before, head))
            places |= places_of(body, before)
            bodies.append(body)
            before, part = before + len(body.pages), page.part
        front = printed("front", front_matter(cover(root), pages, places, head))
    binding = Binding()
    for one in (front, *bodies):
        binding.add(one)
    binding.finish(pages, places, len(front.pages))
    with binding.pdf.open_metadata() as metadata:
        metadata["dc:title"], metadata["dc:creator"] = config["title"], [config["author"]]
    return binding.pdf


def show_links(site: Path) -> int:
    """Show the hidden links to the PDF on all pages of the site; return how many there are now."""
    shown = 0
    for path in site.glob("*.html"):
        text = path.read_text(encoding="utf-8")
        text, found = HIDDEN_LINK.subn(r"\1", text)
        if found:
            path.write_text(text, encoding="utf-8")
        shown += found
    return shown


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pages", nargs="*", help="names as in _toc.yml, by default all")
    parser.add_argument("--site", type=Path, default=ROOT / "_build/html", help="the built site")
    parser.add_argument("--output", type=Path, help=f"by default {NAME} in the site")
    options = parser.parse_args(arguments)
    try:
        printed = print_book(options.site, ROOT, options.pages)
    except (OSError, ValueError, RuntimeError) as error:
        print(f"print_book: {error}", file=sys.stderr)
        return 1
    # The marks of the structure are many small objects: in streams they take a tenth of the room.
    printed.save(
        options.output or options.site / NAME, object_stream_mode=ObjectStreamMode.generate
    )
    if options.output is None:
        show_links(options.site)
    print(f"{len(printed.pages)} pages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
