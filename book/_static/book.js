// What scrolls sideways inside itself can be reached and moved by keyboard.
{
  const wide = 'div.picture, table, div.math, mjx-container[display="true"]';
  const mark = () => {
    for (const box of document.querySelectorAll(`.bd-article :is(${wide})`)) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  };
  window.addEventListener("load", () => {
    mark();
    window.MathJax?.startup?.promise.then(mark);
  });
  window.addEventListener("resize", mark);
}

// On paper, hints and solutions are open and the page is light, whatever it is on the screen.
{
  const root = document.documentElement;
  let restore = [];

  window.addEventListener("beforeprint", () => {
    const theme = root.dataset.theme;
    root.dataset.theme = "light";
    restore.push(() => { root.dataset.theme = theme; });
    for (const details of document.querySelectorAll("details:not([open])")) {
      details.open = true;
      restore.push(() => { details.open = false; });
    }
  });

  window.addEventListener("afterprint", () => {
    restore.forEach((undo) => undo());
    restore = [];
  });
}

// The search finds a Korean word with its particle, too: 어텐션은 like 어텐션. Its index has words as
// they stand, and a word that stands nowhere loses the particle at its end.
{
  const particle = /(?:에서는|에서|에게|으로|까지|부터|처럼|보다|이란|은|는|이|가|을|를|의|에|와|과|로|도|만|란)$/;
  const other = /[^\p{Letter}\p{Number}_\p{Emoji_Presentation}]+/u;

  window.splitQuery = (query) => query.split(other).filter((word) => word).map((word) => {
    const bare = word.replace(particle, "");
    const terms = Search._index?.terms ?? {};
    return Object.hasOwn(terms, word) || !Object.hasOwn(terms, bare) ? word : bare;
  });
}

// Its excerpts begin with what a page says, not with the buttons above; and where pages have a word
// alike, the glossary comes first.
document.addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return;
  const textOf = Search.htmlToText;
  Search.htmlToText = (page, anchor) => {
    const article = new DOMParser().parseFromString(page, "text/html").querySelector(".bd-article");
    return textOf(article ? `<div role="main">${article.outerHTML}</div>` : page, anchor);
  };
  Scorer.score = ([page, , , , score]) => score + (page === "glossary" ? 1 : 0);
});
