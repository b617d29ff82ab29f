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
