// On the page of exercises: ticks that are kept in this browser, and a filter.
{
  const table = document.querySelector("table.exercise-list");
  const rows = table ? [...table.tBodies[0].rows].filter((row) => !row.matches(".chapter")) : [];
  const total = rows.length ? table.closest("section").querySelector("p") : null;
  const KEY = "building-the-transformer: exercises done";

  const read = () => {
    try {
      return new Set(JSON.parse(localStorage.getItem(KEY) ?? "[]"));
    } catch {
      return new Set(); // no storage, or something else in it
    }
  };
  const write = (names) => {
    try {
      localStorage.setItem(KEY, JSON.stringify([...names]));
    } catch {
      // a browser that keeps nothing: the ticks last as long as the page
    }
  };
  const duration = (minutes) => {
    const [hours, rest] = [Math.floor(minutes / 60), minutes % 60];
    return [hours ? `${hours} h` : "", rest || !hours ? `${rest} min` : ""].join(" ").trim();
  };

  const done = read();
  const exercises = rows.map((row) => {
    const link = row.querySelector("a");
    const name = link.textContent.trim().split(":")[0]; // "3.2", which outlives a new title
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = done.has(name);
    box.setAttribute("aria-label", `Exercise ${name} is done`);
    row.cells[0].firstElementChild.prepend(box, " ");
    return {
      row, name, box,
      difficulty: row.cells[1].textContent.split("●").length - 1,
      minutes: Number(row.cells[2].textContent),
    };
  });

  const choice = (text, options) => {
    const label = document.createElement("label");
    const select = document.createElement("select");
    for (const [value, shown] of options) select.add(new Option(shown, value));
    label.append(text, " ", select);
    return [label, select];
  };

  if (total) {
    const [level, difficulty] = choice("Difficulty", [
      ["0", "any"], ["1", "●○○"], ["2", "●●○"], ["3", "●●●"],
    ]);
    const [limit, minutes] = choice("Minutes", [
      ["999", "any"], ["5", "up to 5"], ["10", "up to 10"], ["15", "up to 15"],
    ]);
    const [state, open] = choice("Show", [["all", "all"], ["open", "not done yet"]]);
    const controls = document.createElement("div");
    controls.className = "exercise-filter";
    controls.append(level, limit, state);
    table.before(controls);
    total.setAttribute("role", "status");

    const update = () => {
      let shown = 0;
      let left = 0;
      let finished = 0;
      for (const one of exercises) {
        const visible =
          (difficulty.value === "0" || one.difficulty === Number(difficulty.value)) &&
          one.minutes <= Number(minutes.value) &&
          (open.value === "all" || !one.box.checked);
        one.row.hidden = !visible;
        shown += visible;
        left += visible && !one.box.checked ? one.minutes : 0;
        finished += one.box.checked;
      }
      for (const head of table.querySelectorAll("tr.chapter")) {
        let row = head.nextElementSibling;
        let visible = false;
        for (; row && !row.matches(".chapter"); row = row.nextElementSibling) visible ||= !row.hidden;
        head.hidden = !visible;
      }
      total.textContent =
        `${shown} of ${exercises.length} exercises, ${duration(left)} still to do. ` +
        `Done: ${finished} (kept in this browser).`;
    };

    for (const one of exercises) {
      one.box.addEventListener("change", () => {
        done[one.box.checked ? "add" : "delete"](one.name);
        write(done);
        update();
      });
    }
    for (const select of [difficulty, minutes, open]) select.addEventListener("change", update);
    update();
  }
}
