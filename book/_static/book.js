// What scrolls sideways inside itself can be reached and moved by keyboard.
{
  const mark = () => {
    for (const box of document.querySelectorAll(".bd-article :is(div.picture, table, div.math)")) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  };
  window.addEventListener("load", mark);
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
