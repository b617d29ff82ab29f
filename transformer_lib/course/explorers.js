// The interactive pictures of transformer_lib.course.explorers: plain JavaScript that loads nothing.
//
// Python writes an element with a description for readers without scripts, and a call of start()
// with the numbers. start() puts the explorer into the element's shadow tree, so that no style of
// the page reaches it and none of its own leaves it. An explorer is a function of the numbers and
// of the frame that it fills; its controls are native, and what it shows it also says in words.
(() => {
  "use strict";

  // -- Elements --------------------------------------------------------------------------------

  function set(element, attributes) {
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value !== false && value != null)
        element.setAttribute(name, value === true ? "" : value);
    }
    return element;
  }

  function html(name, attributes = {}, ...children) {
    const element = set(document.createElement(name), attributes);
    element.append(...children);
    return element;
  }

  function svg(name, attributes = {}, ...children) {
    const element = set(document.createElementNS("http://www.w3.org/2000/svg", name), attributes);
    element.append(...children);
    return element;
  }

  // -- Numbers and words -----------------------------------------------------------------------

  const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
  const range = (length) => Array.from({ length }, (_, index) => index);
  const clamp = (number, low, high) => Math.min(high, Math.max(low, number));

  function fixed(number, digits = 2) {
    const text = Math.abs(number).toFixed(digits);
    return (number < 0 && Number(text) !== 0 ? "−" : "") + text;
  }

  const tuple = (numbers, digits = 2) => `(${numbers.map((n) => fixed(n, digits)).join(", ")})`;
  const subscript = (number) => [...String(number)].map((digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]).join("");
  const quoted = (word) => `“${word}”`;
  const counted = (number, noun, plural = `${noun}s`) =>
    `${number} ${number === 1 ? noun : plural}`;

  function listed(words) {
    return words.length < 2
      ? words.join("")
      : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
  }

  // -- Controls --------------------------------------------------------------------------------

  let made = 0; // for ids, which need be unique in one shadow tree only

  function slider({ name, look = "", min, max, step, value, show = fixed, change }) {
    const id = `control-${(made += 1)}`;
    const output = html("span", { class: "output", "aria-hidden": "true" });
    const input = html("input", { id, type: "range", min, max, step, value });
    const tell = () => {
      output.textContent = show(Number(input.value));
      input.setAttribute("aria-valuetext", output.textContent);
    };
    input.addEventListener("input", () => {
      change(Number(input.value));
      tell();
    });
    tell();
    return {
      element: html(
        "div",
        { class: `slider ${look}` },
        html("label", { for: id }, name),
        input,
        output,
      ),
      tell,
      set(number) {
        input.value = number;
        tell();
      },
    };
  }

  // One of several, as native radio buttons; `look` is the class of the whole.
  function choice({ legend, options, value, change, look = "segments" }) {
    const name = `choice-${(made += 1)}`;
    const inputs = options.map((option) =>
      html("input", {
        type: "radio",
        name,
        checked: option.value === value,
        "aria-label": option.says,
        onchange: () => change(option.value),
      }),
    );
    const labels = options.map((option, index) =>
      html(
        "label",
        { class: option.look, onpointerenter: option.hover && (() => change(option.value)) },
        inputs[index],
        html("span", {}, ...[option.label].flat()),
      ),
    );
    return {
      element: html(
        "fieldset",
        { class: look },
        html("legend", {}, legend),
        html("div", {}, ...labels),
      ),
      set(wanted) {
        options.forEach((option, index) => (inputs[index].checked = option.value === wanted));
      },
    };
  }

  const buttons = (actions) =>
    html(
      "div",
      { class: "buttons" },
      ...Object.entries(actions).map(([name, act]) =>
        html("button", { type: "button", onclick: act }, name),
      ),
    );

  function checkbox({ name, value, change }) {
    const input = html("input", { type: "checkbox", checked: value });
    input.addEventListener("change", () => change(input.checked));
    return html("label", { class: "checkbox" }, input, name);
  }

  // What is seen, in words; screen readers say it whenever it changes.
  const status = () => html("p", { class: "says", role: "status" });

  // A share of 1 as a number and as a bar.
  function share() {
    const [number, length] = [html("b"), html("i")];
    return {
      element: html("span", { class: "share" }, number, html("span", {}, length)),
      set(value, text = fixed(value)) {
        number.textContent = text;
        length.style.width = `${100 * value}%`;
      },
    };
  }

  // A matrix as a table: each cell shows its number and is coloured by it, most at ±`full`.
  function heatmap({ caption, rows, columns, numbers, full }) {
    const head = (scope) => (name) => html("th", { scope }, name);
    return html(
      "table",
      { class: "heat" },
      html("caption", {}, caption),
      html("thead", {}, html("tr", {}, html("td"), ...columns.map(head("col")))),
      html(
        "tbody",
        {},
        ...numbers.map((row, i) =>
          html("tr", {}, head("row")(rows[i]), ...row.map((number) => cell(number, full))),
        ),
      ),
    );
  }

  function cell(number, full) {
    const level = clamp(Math.abs(number) / full, 0, 1) || 0;
    const negative = number < 0 && level > 0;
    return html(
      "td",
      { class: negative && "negative", style: `--level: ${level.toFixed(3)}` },
      number === 0 ? "0" : fixed(number),
    );
  }

  const [styles, explorers] = [{}, {}]; // by name: Python sends the part of one explorer only

  // == weightedSum ==============================================================================

  styles.weightedSum = `
    .plane { display: block; max-width: 430px; width: 100%; }
    .plane .grid { stroke: var(--edge); } .plane .axis { stroke: var(--line); }
    .plane .tick { fill: var(--muted); font-size: 12px; }
    .plane .hull { fill: rgb(var(--blue) / 0.1); stroke: var(--line); }
    .plane .step { fill: none; stroke: rgb(var(--hue)); stroke-linecap: round; stroke-width: 4; }
    .plane .value { fill: rgb(var(--hue)); }
    .plane .number { fill: var(--ground); font-size: 13px; font-weight: 700; }
    .plane .result { fill: var(--ink); stroke: var(--ground); stroke-width: 2; }
    .plane .name { fill: var(--ink); font-size: 14px; font-weight: 600; paint-order: stroke; stroke: var(--ground); stroke-width: 4; }
    .plane .handle { cursor: grab; fill: transparent; touch-action: none; }
  `;

  explorers.weightedSum = ({ values, weights }, frame) => {
    const colours = ["blue", "orange", "green"];
    const now = [...weights];
    let divided = false;

    const used = () => (divided && Math.abs(sum(now)) > 1e-9 ? now.map((w) => w / sum(now)) : now);
    const combine = (ws, axis) => sum(ws.map((w, j) => w * values[j][axis]));

    // The weights with sum 1 that give a point: its barycentric coordinates.
    function weightsOf([x, y]) {
      const [[x1, y1], [x2, y2], [x3, y3]] = values;
      const area = (y2 - y3) * (x1 - x3) + (x3 - x2) * (y1 - y3);
      const first = ((y2 - y3) * (x - x3) + (x3 - x2) * (y - y3)) / area;
      const second = ((y3 - y1) * (x - x3) + (x1 - x3) * (y - y3)) / area;
      return [first, second, 1 - first - second];
    }

    const ends = [0, 1].map((axis) => {
      const all = [0, ...values.map((value) => value[axis])];
      return [Math.min(...all), Math.max(...all)];
    });
    const margin = 0.5 * Math.max(...ends.map(([low, high]) => high - low));
    const [[left, right], [bottom, top]] = ends.map(([low, high]) => [low - margin, high + margin]);
    const scale = 400 / (right - left);
    const at = (x, y) => [(x - left) * scale, (top - y) * scale].map((n) => n.toFixed(1));

    const unit = 10 ** Math.floor(Math.log10((right - left) / 3));
    const spacing = [1, 2, 5].map((n) => n * unit).findLast((n) => n <= (right - left) / 3);
    const tick = (number) => fixed(number, spacing < 1 ? 1 : 0);
    const grid = [];
    for (let n = Math.ceil(left / spacing) * spacing; n < right; n += spacing) {
      const [x, y] = at(n, bottom);
      grid.push(svg("path", { class: n ? "grid" : "axis", d: `M${x} 0V${y}` }));
      if (x > 24)
        grid.push(svg("text", { class: "tick", x, y: y - 6, "text-anchor": "middle" }, tick(n)));
    }
    for (let n = Math.ceil(bottom / spacing) * spacing; n < top; n += spacing) {
      const [x, y] = at(right, n);
      grid.push(svg("path", { class: n ? "grid" : "axis", d: `M0 ${y}H${x}` }));
      if (y < at(left, bottom)[1] - 24)
        grid.push(svg("text", { class: "tick", x: 5, y: y - 4 }, tick(n)));
    }

    const steps = colours.map((colour) => svg("path", { class: `step ${colour}` }));
    const handle = svg("circle", { class: "handle", r: 20 });
    const dot = svg("circle", { class: "result", r: 7 });
    const name = svg("text", { class: "name" }, "result");
    const picture = svg(
      "svg",
      {
        viewBox: `0 0 400 ${((top - bottom) * scale).toFixed(1)}`,
        class: "plane",
        "aria-hidden": "true",
      },
      ...grid,
      svg("polygon", { class: "hull", points: values.map((v) => at(...v).join()).join(" ") }),
      ...steps,
      ...values.map((value, j) => {
        const [x, y] = at(...value);
        return svg(
          "g",
          {},
          svg("circle", { class: `value ${colours[j]}`, cx: x, cy: y, r: 11 }),
          svg(
            "text",
            { class: "number", x, y: Number(y) + 4.5, "text-anchor": "middle" },
            String(j + 1),
          ),
        );
      }),
      name,
      dot,
      handle,
    );

    function drag(event) {
      const place = picture.getBoundingClientRect();
      const shrunk = 400 / place.width / scale;
      const wanted = [
        left + (event.clientX - place.left) * shrunk,
        top - (event.clientY - place.top) * shrunk,
      ];
      const [first, second] = weightsOf(wanted).map(
        (w) => clamp(Math.round(100 * w), -100, 200) / 100,
      );
      const third = Math.round(100 * (1 - first - second)) / 100;
      if (third >= -1 && third <= 2) choose([first, second, third]);
    }
    handle.addEventListener("pointerdown", (event) => {
      handle.setPointerCapture(event.pointerId);
      handle.addEventListener("pointermove", drag);
    });
    for (const end of ["pointerup", "pointercancel"]) {
      handle.addEventListener(end, () => handle.removeEventListener("pointermove", drag));
    }

    const sliders = values.map((value, j) =>
      slider({
        name: `Weight of value ${j + 1}`,
        look: colours[j],
        min: -1,
        max: 2,
        step: 0.01,
        value: now[j],
        show: (number) => fixed(number) + (divided ? ` → ${fixed(used()[j])}` : ""),
        change(number) {
          now[j] = number;
          draw();
        },
      }),
    );
    const mode = choice({
      legend: "Weights are taken",
      options: [
        { value: false, label: "as set" },
        { value: true, label: "divided by their sum" },
      ],
      value: divided,
      change(value) {
        divided = value;
        draw();
      },
    });
    const choose = (numbers) => {
      numbers.forEach((number, j) => sliders[j].set((now[j] = number)));
      draw();
    };
    const preset = (numbers) => {
      mode.set((divided = false)); // what its name says are the weights as set
      choose(numbers);
    };
    const digits = values.flat().every(Number.isInteger) ? 0 : 1;
    const sums = html("p", { class: "formula" });
    const says = status();

    function draw() {
      const ws = used();
      const result = [combine(ws, 0), combine(ws, 1)];
      const total = sum(ws);
      const inside = weightsOf(result).every((w) => w > -1e-9);
      const pictured =
        result[0] > left && result[0] < right && result[1] > bottom && result[1] < top;

      let from = [0, 0];
      ws.forEach((w, j) => {
        const to = from.map((n, axis) => n + w * values[j][axis]);
        steps[j].setAttribute("d", `M${at(...from)}L${at(...to)}`);
        from = to;
      });
      const [x, y] = at(...result);
      for (const circle of [dot, handle]) set(circle, { cx: x, cy: y });
      const [aside, anchor] = x > 330 ? [-12, "end"] : [12, "start"];
      set(name, { x: Number(x) + aside, y: Number(y) - 10, "text-anchor": anchor });
      sliders.forEach((control) => control.tell());

      sums.replaceChildren(
        ...ws.flatMap((w, j) => [
          j ? " + " : "",
          html("span", { class: colours[j] }, `${fixed(w)} · ${tuple(values[j], digits)}`),
        ]),
        ` = ${tuple(result)}`,
      );
      const negative = ws.some((w) => w < 0);
      const one = Math.abs(total - 1) < 1e-9;
      const undivided =
        divided && ws === now
          ? "The sum of the weights is 0, so they cannot be divided by it. "
          : "";
      const kind = !one
        ? `The sum of the weights is ${fixed(total)}: a linear combination, which may lie anywhere.`
        : negative
          ? "The weights have sum 1, but not all are at least 0: an affine combination."
          : "The weights have sum 1 and none is negative: a convex combination.";
      const where = inside ? "lies in the triangle" : "lies outside the triangle";
      says.textContent = `${undivided}${kind} The result ${tuple(result)} ${where}${pictured ? "" : ", and outside the picture"}.`;
    }

    frame.append(
      html(
        "div",
        { class: "columns" },
        html(
          "div",
          { class: "wide" },
          picture,
          html(
            "p",
            { class: "note" },
            "From the origin the path adds the three weighted values. Its end can be dragged.",
          ),
        ),
        html(
          "div",
          {},
          ...sliders.map((control) => control.element),
          mode.element,
          buttons({
            Reset: () => preset(weights),
            "Only value 3": () => preset([0, 0, 1]),
            "Beyond value 2": () => preset([-0.5, 1.5, 0]),
            "Sum 0.5": () => preset([0.1, 0.15, 0.25]),
          }),
        ),
      ),
      sums,
      says,
    );
    draw();
  };

  // == softmax ==================================================================================

  styles.softmax = `
    .scores { align-items: end; column-gap: 1.5rem; display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 240px), 1fr)); }
    .bar { align-items: center; display: grid; font-size: 14px; grid-template-columns: 5.6rem 1fr; height: 28px; margin-bottom: 0.3rem; }
    .bar > span:first-child { color: var(--muted); }
    .bar b { flex-basis: 5.6rem; }
    .says { margin: 0.7rem 0 1rem; }
    @container (max-width: 480px) { .says { min-height: 7.5em; } }
  `;

  explorers.softmax = ({ scores, gradients }, frame) => {
    const now = [...scores];
    const n = scores.length;
    let temperature = 1;
    let gradient = gradients[0];

    const sliders = now.map((score, i) =>
      slider({
        name: `Score ${i + 1}`,
        min: -5,
        max: 5,
        step: 0.1,
        value: score,
        show: (number) => fixed(number, 1),
        change(number) {
          now[i] = number;
          draw();
        },
      }),
    );
    const inputs = now.map(() => html("span"));
    const bars = now.map(share);
    const heat = slider({
      name: "Temperature T",
      min: -1.3,
      max: 1.3,
      step: 0.05,
      value: 0,
      show: (exponent) => fixed(10 ** exponent),
      change(exponent) {
        temperature = 10 ** exponent;
        draw();
      },
    });
    const choose = (numbers) => {
      numbers.forEach((number, i) => sliders[i].set((now[i] = clamp(number, -5, 5))));
      draw();
    };
    const arriving = choice({
      legend: "Gradient that arrives, u = ∂L/∂s",
      options: gradients.map((u, index) => ({
        value: index,
        label: tuple(u, u.every(Number.isInteger) ? 0 : 1),
      })),
      value: 0,
      change(index) {
        gradient = gradients[index];
        draw();
      },
    });
    const matrix = html("div");
    const column = html("div");
    const says = status();

    function draw() {
      const largest = Math.max(...now);
      const exps = now.map((score) => Math.exp((score - largest) / temperature));
      const s = exps.map((e) => e / sum(exps));
      const jacobian = s.map((si, i) => s.map((sj, j) => si * ((i === j) - sj)));
      const average = sum(s.map((si, i) => si * gradient[i]));
      const passed = s.map((si, i) => si * (gradient[i] - average));
      const norm = Math.hypot(...jacobian.flat());

      bars.forEach((bar, i) => {
        inputs[i].textContent = `z${subscript(i + 1)} = ${fixed(now[i] / temperature)}`;
        bar.set(s[i], `s${subscript(i + 1)} = ${fixed(s[i], 3)}`);
      });
      const names = (letter) => range(n).map((i) => letter + subscript(i + 1));
      matrix.replaceChildren(
        heatmap({
          caption: `Jacobian ∂s/∂z, norm ${fixed(norm, 3)}`,
          rows: names("s"),
          columns: names("z"),
          numbers: jacobian,
          full: 0.25,
        }),
      );
      column.replaceChildren(
        heatmap({
          caption: "Gradient",
          rows: range(n).map((i) => String(i + 1)),
          columns: ["u", "∂L/∂z"],
          numbers: s.map((_, i) => [gradient[i], passed[i]]),
          full: Math.max(...gradient.map(Math.abs)) || 1,
        }),
      );
      const top = range(n).filter((i) => largest - now[i] < 1e-9);
      const places = `score${top.length > 1 ? "s" : ""} ${listed(top.map((i) => i + 1))}`;
      const strongest = Math.max(...passed.map(Math.abs));
      const much =
        strongest < 0.005
          ? "no score gets a gradient above 0.005"
          : `the largest gradient that a score gets is ${fixed(strongest)}`;
      says.textContent =
        `At T = ${fixed(temperature)} the largest weight is ${fixed(s[top[0]], 3)}, on ${places}. ` +
        `The Jacobian has the norm ${fixed(norm, 3)}, and ${much}.`;
    }

    function raise() {
      const highest = now.indexOf(Math.max(...now));
      if (now[highest] <= 4 + 1e-9) choose(now.map((score) => score + 1));
      else
        says.textContent = `Score ${highest + 1} is ${fixed(now[highest], 1)}, and no slider goes beyond 5: nothing was added.`;
    }

    frame.append(
      heat.element,
      html(
        "div",
        { class: "scores" },
        ...sliders.flatMap((control, i) => [
          control.element,
          html("div", { class: "bar" }, inputs[i], bars[i].element),
        ]),
      ),
      buttons({
        Reset: () => choose(scores),
        "A tie at the top": () => choose(scores.map((score, i) => (i < 2 ? scores[0] : score))),
        "Add 1 to every score": raise,
      }),
      says,
      html("div", { class: "tables" }, matrix, html("div", {}, arriving.element, column)),
      html(
        "p",
        { class: "note" },
        "z are the scores divided by T, s their softmax. Blue is above 0, red and a minus below.",
      ),
    );
    draw();
  };

  // == positions ================================================================================

  styles.positions = `
    .waves { table-layout: fixed; width: 100%; }
    .waves th:first-child { width: 2.2rem; } .waves th:nth-child(3) { width: 52px; } .waves thead th:last-child { width: 5.6rem; }
    .waves thead th { color: var(--muted); }
    .waves tbody th { text-align: center; }
    .waves td { padding: 0; }
    .wave { background: var(--soft); border-radius: 3px; }
    .wave svg { display: block; height: 44px; width: 100%; }
    .clock svg { display: block; height: 44px; margin: auto; width: 44px; }
    .clock circle { fill: none; stroke: var(--line); stroke-width: 0.03; }
    .hand { stroke: var(--ink); stroke-width: 0.1; }
    .hand.second { stroke-dasharray: 0.18 0.12; }
    .turn { fill: none; stroke: var(--muted); stroke-width: 0.07; }
    .figures { text-align: right; } .figures b { display: block; line-height: 1.3; } .figures .angle { color: var(--muted); line-height: 1.3; }
    .waves tfoot th { text-align: right; } .waves tfoot td { border-top: 1px solid var(--line); }
    .waves path, .curve path { fill: none; } .wave path, .curve path { vector-effect: non-scaling-stroke; }
    .sine { stroke: rgb(var(--blue)); stroke-width: 1.6; }
    .cosine { stroke: rgb(var(--orange)); stroke-dasharray: 4 3; stroke-width: 1.6; }
    .place { stroke: var(--ink); stroke-width: 1.2; } .place.second { stroke-dasharray: 3 3; }
    .dots { stroke: var(--ink); stroke-linecap: round; stroke-width: 7; }
    .curve { background: var(--soft); border-radius: 3px; display: block; height: 90px; width: 100%; }
    .curve .axis { stroke: var(--line); }
    figure { margin-top: 0.6rem; }
  `;

  explorers.positions = ({ d_model, length, places }, frame) => {
    const pairs = range(d_model / 2).map((i) => 10000 ** ((-2 * i) / d_model)); // radians a place
    const product = (distance) => sum(pairs.map((omega) => Math.cos(omega * distance)));
    let [p, q] = places;
    let together = false;

    const across = (place) => ((300 * place) / (length - 1)).toFixed(1);
    const wave = (omega, shape) =>
      "M" +
      range(4 * length - 3)
        .map((n) => `${across(n / 4)} ${(22 - 18 * shape((omega * n) / 4)).toFixed(1)}`)
        .join("L");
    const rows = pairs.map((omega, i) => {
      const marks = [0, 1].map(() => svg("path", { class: "place" }));
      const dots = [0, 1].map(() => svg("path", { class: "dots" }));
      const hands = ["hand first", "hand second"].map((look) => svg("path", { class: look }));
      const turn = svg("path", { class: "turn" });
      const angle = html("span", { class: "angle" });
      const cosine = html("b");
      return {
        element: html(
          "tr",
          {},
          html("th", { scope: "row" }, String(i)),
          html(
            "td",
            { class: "wave" },
            svg(
              "svg",
              { viewBox: "-4 0 308 44", preserveAspectRatio: "none", "aria-hidden": "true" },
              ...marks,
              svg("path", { class: "sine", d: wave(omega, Math.sin) }),
              svg("path", { class: "cosine", d: wave(omega, Math.cos) }),
              ...dots,
            ),
          ),
          html(
            "td",
            { class: "clock" },
            svg(
              "svg",
              { viewBox: "-1.2 -1.2 2.4 2.4", "aria-hidden": "true" },
              svg("circle", { r: 1 }),
              turn,
              ...hands,
            ),
          ),
          html("td", { class: "figures" }, angle, cosine),
        ),
        draw() {
          [p, q].forEach((place, which) => {
            marks[which].setAttribute("d", `M${across(place)} 0V44`);
            marks[which].classList.toggle("second", which === 1);
            const ends = [Math.sin(omega * place), Math.cos(omega * place)];
            dots[which].setAttribute(
              "d",
              ends.map((end) => `M${across(place)} ${(22 - 18 * end).toFixed(1)}h0`).join(""),
            );
            hands[which].setAttribute("d", `M0 0L${ends[0].toFixed(3)} ${(-ends[1]).toFixed(3)}`);
          });
          const turned = omega * (q - p);
          const point = (a) =>
            `${(0.45 * Math.sin(a)).toFixed(3)} ${(-0.45 * Math.cos(a)).toFixed(3)}`;
          const many = Math.abs(turned) >= 2 * Math.PI;
          const [from, to] = [omega * p, many ? omega * p + 6.28 : omega * q];
          const wide = Math.abs(to - from) > Math.PI ? 1 : 0;
          turn.setAttribute(
            "d",
            `M${point(from)}A.45 .45 0 ${wide} ${to > from ? 1 : 0} ${point(to)}`,
          );
          angle.textContent = `${fixed(turned)} rad`;
          cosine.textContent = fixed(Math.cos(turned), 3);
        },
      };
    });

    const furthest = length - 1;
    const heights = range(2 * furthest + 1).map((n) => product(n - furthest));
    const [lowest, highest] = [Math.min(0, ...heights), pairs.length];
    const high = (number) => (8 + (74 * (highest - number)) / (highest - lowest)).toFixed(1);
    const along = (distance) => (300 * (distance + furthest)) / (2 * furthest);
    const marker = svg("path", { class: "dots" });
    const drop = svg("path", { class: "place" });
    const curve = svg(
      "svg",
      {
        viewBox: "-4 0 308 90",
        preserveAspectRatio: "none",
        class: "curve",
        "aria-hidden": "true",
      },
      svg("path", { class: "axis", d: `M0 ${high(0)}H300` }),
      drop,
      svg("path", {
        class: "sine",
        d: "M" + heights.map((y, n) => `${along(n - furthest).toFixed(1)} ${high(y)}`).join("L"),
      }),
      marker,
    );
    const total = html("b");
    const says = status();

    function draw() {
      rows.forEach((row) => row.draw());
      const distance = q - p;
      marker.setAttribute("d", `M${along(distance).toFixed(1)} ${high(product(distance))}h0`);
      drop.setAttribute("d", `M${along(distance).toFixed(1)} 0V90`);
      total.textContent = fixed(product(distance), 3);
      says.textContent =
        `Places ${p} and ${q} are ${Math.abs(distance)} apart. Pair 0 turns by ${fixed(distance)} rad between them, ` +
        `pair ${pairs.length - 1} by ${fixed(pairs.at(-1) * distance, 3)} rad. The cosines add up to the inner product ` +
        `${fixed(product(distance), 3)}; a place with itself has ${fixed(pairs.length, 3)}.`;
    }

    const move = (which) => (place) => {
      const step = place - [p, q][which];
      if (which === 0 || together) p = clamp(p + step, 0, furthest);
      if (which === 1 || together) q = clamp(q + step, 0, furthest);
      if (together) keepDistance();
      sliders[0].set(p);
      sliders[1].set(q);
      draw();
    };
    let kept = q - p;
    const keepDistance = () => {
      // At the ends of the table both stop.
      p = clamp(p, Math.max(0, -kept), furthest - Math.max(0, kept));
      q = p + kept;
    };
    const sliders = ["Place p", "Place q"].map((name, which) =>
      slider({
        name,
        min: 0,
        max: furthest,
        step: 1,
        value: [p, q][which],
        show: String,
        change: move(which),
      }),
    );
    frame.append(
      html("div", { class: "pair" }, ...sliders.map((control) => control.element)),
      checkbox({
        name: "Move both, and keep their distance",
        value: together,
        change(value) {
          together = value;
          kept = q - p;
        },
      }),
      html(
        "table",
        { class: "waves" },
        html(
          "caption",
          {},
          `Each pair of columns over the places 0 to ${furthest}: sine solid, cosine dashed; p solid, q dashed`,
        ),
        html(
          "thead",
          {},
          html(
            "tr",
            {},
            ...["Pair", "Waves", "Hands", "Turn, cosine"].map((name) =>
              html("th", { scope: "col" }, name),
            ),
          ),
        ),
        html("tbody", {}, ...rows.map((row) => row.element)),
        html(
          "tfoot",
          {},
          html(
            "tr",
            {},
            html("th", { scope: "row", colspan: 3 }, "Sum of the cosines: PE(p) · PE(q)"),
            html("td", { class: "figures" }, total),
          ),
        ),
      ),
      html(
        "figure",
        {},
        html(
          "figcaption",
          {},
          `Inner product by distance q − p, from −${furthest} to ${furthest}: ${fixed(pairs.length, 0)} at the peak, 0 at the line, the dot for these two places`,
        ),
        curve,
      ),
      says,
    );
    draw();
  };

  // == masks ====================================================================================

  styles.masks = `
    .mask button { background: var(--soft); border: 1px solid var(--line); border-radius: 3px; color: inherit; cursor: pointer;
      display: block; font: inherit; height: 30px; min-width: clamp(30px, 5.4cqw, 44px); padding: 0 1px; width: 100%; }
    .mask button:hover { border-color: var(--ink); }
    .mask th button { background: none; border-color: transparent; padding: 0 1px; text-decoration: underline dotted; text-underline-offset: 3px; }
    .mask th[scope="row"] button { text-align: right; }
    .mask :is(th, td) { padding: 0; }
    thead th { height: 30px; }
    .grid .says { min-width: 100%; width: 0; }
    @container (max-width: 420px) { .heat, .mask { font-size: 12px; } .mask th button { padding: 0; } }
    .mask button.hidden { background: repeating-linear-gradient(135deg, var(--edge) 0 2px, var(--ground) 2px 7px); color: var(--ink); font-weight: 600; }
  `;

  explorers.masks = ({ scores, queries, keys, padding }, frame) => {
    const [m, n] = [queries.length, keys.length];
    const own = (i) => i + n - m; // the key at which query i stands
    const rules = {
      "Nothing hidden": () => true,
      Causal: (i, j) => j <= own(i),
      Padding: (i, j) => !padding[j],
      "Band of one each side": (i, j) => Math.abs(j - own(i)) <= 1,
      "Causal and padding": (i, j) => j <= own(i) && !padding[j],
    };
    const mask = scores.map((row) => row.map(() => true));
    const marked = range(m + 1).map(() => []); // the buttons, with row 0 and column 0 for the names
    let painting = null;

    const change = (cells, value, now) => {
      for (const [i, j] of cells) mask[i][j] = value ?? !mask[i][j];
      draw(now);
    };
    const whole = (cells, now) => change(cells, !cells.some(([i, j]) => mask[i][j]), now);

    function button(i, j, act) {
      const element = html("button", {
        type: "button",
        tabindex: i + j === 0 || (i === 1 && j === 1) ? 0 : -1,
        onclick() {
          if (painting === null) act();
          painting = null;
        },
        onkeydown(event) {
          const step = {
            ArrowUp: [-1, 0],
            ArrowDown: [1, 0],
            ArrowLeft: [0, -1],
            ArrowRight: [0, 1],
          }[event.key];
          const next = step && marked[i + step[0]]?.[j + step[1]];
          if (!step) return;
          event.preventDefault();
          if (!next) return;
          element.tabIndex = -1;
          next.tabIndex = 0;
          next.focus();
        },
        onfocus() {
          marked.flat().forEach((other) => (other.tabIndex = other === element ? 0 : -1));
        },
      });
      return (marked[i][j] = element);
    }

    const columnHeads = keys.map((key, j) => {
      const element = button(0, j + 1, () => whole(range(m).map((i) => [i, j]), { column: j }));
      element.textContent = key;
      element.setAttribute(
        "aria-label",
        `key ${key}, place ${j + 1}: hide it from all queries, or show it`,
      );
      return html("th", { scope: "col" }, element);
    });
    const rowsOf = queries.map((query, i) => {
      const name = button(i + 1, 0, () => whole(range(n).map((j) => [i, j]), { row: i }));
      name.textContent = query;
      name.setAttribute(
        "aria-label",
        `query ${query}, place ${i + 1}: hide all keys from it, or show them`,
      );
      const cells = range(n).map((j) => {
        const element = button(i + 1, j + 1, () => change([[i, j]], null, { row: i }));
        // A mouse draws: what the first cell becomes, all cells become that it passes.
        element.addEventListener("pointerdown", (event) => {
          if (event.pointerType !== "mouse" || event.button) return;
          painting = !mask[i][j];
          change([[i, j]], painting, { row: i });
          addEventListener("pointerup", () => setTimeout(() => (painting = null)), { once: true });
        });
        element.addEventListener("pointerenter", (event) => {
          if (painting !== null && event.buttons) change([[i, j]], painting, { row: i });
        });
        return html("td", {}, element);
      });
      return html("tr", {}, html("th", { scope: "row" }, name), ...cells);
    });
    const grid = html(
      "table",
      { class: "mask" },
      html("caption", {}, "Scores: hidden ones become −∞"),
      html("thead", {}, html("tr", {}, html("td"), ...columnHeads)),
      html("tbody", {}, ...rowsOf),
    );
    const weights = html("div");
    const says = status();

    // What was changed: one row of scores, or one whole column.
    function draw({ row, column } = {}) {
      const all = scores.map((numbers, i) => {
        const seen = numbers.filter((_, j) => mask[i][j]);
        const exps = numbers.map((number, j) =>
          mask[i][j] ? Math.exp(number - Math.max(...seen)) : 0,
        );
        return exps.map((e) => (seen.length ? e / sum(exps) : 0));
      });
      mask.forEach((line, i) =>
        line.forEach((seen, j) => {
          const element = marked[i + 1][j + 1];
          element.textContent = seen ? fixed(scores[i][j], 1) : "−∞";
          element.classList.toggle("hidden", !seen);
          const state = seen ? `score ${fixed(scores[i][j], 1)}` : "hidden";
          element.setAttribute("aria-label", `query ${queries[i]}, key ${keys[j]}: ${state}`);
          element.setAttribute("aria-pressed", !seen);
        }),
      );
      weights.replaceChildren(
        heatmap({
          caption: "Weights: the softmax of each row",
          rows: queries,
          columns: keys,
          numbers: all,
          full: 1,
        }),
      );
      const pairs = sum(mask.map((line) => line.filter(Boolean).length));
      const empty = range(m).filter((i) => !mask[i].includes(true));
      const looks = (i) =>
        `Query ${quoted(queries[i])} looks at ` +
        `${listed(
          range(n)
            .filter((j) => mask[i][j])
            .map((j) => `${quoted(keys[j])} ${fixed(all[i][j])}`),
        )}. `;
      says.textContent =
        `${pairs} of ${m * n} scores count. ` +
        (row !== undefined && mask[row].includes(true) ? looks(row) : "") +
        (column !== undefined
          ? `Key ${quoted(keys[column])} at place ${column + 1} is ${mask[0][column] ? "shown to" : "hidden from"} all queries. `
          : "") +
        (empty.length
          ? `${listed(empty.map((i) => `${quoted(queries[i])} at place ${i + 1}`))} may attend to nothing: all weights of the row are 0.`
          : "Every row of weights sums to 1.");
    }

    frame.append(
      buttons(
        Object.fromEntries(
          Object.entries(rules).map(([name, rule]) => [
            name,
            () => {
              mask.forEach((line, i) => line.forEach((_, j) => (line[j] = rule(i, j))));
              draw();
            },
          ]),
        ),
      ),
      html(
        "p",
        { class: "note" },
        "Rows ask, columns are asked. Press a score to hide or show it, a word to hide or show its whole row or column. " +
          "On a keyboard the arrow keys move and the space bar presses.",
      ),
      html("div", { class: "tables" }, html("div", { class: "grid" }, grid, says), weights),
    );
    draw();
  };

  // == attention ================================================================================

  styles.attention = `
    .heads svg { background: var(--soft); border: 1px solid var(--line); display: block; fill: rgb(var(--blue)); height: 44px; margin: 4px 0 0; width: 44px; }
    .heads input:checked + span svg { background: var(--ground); }
    .heads label > span { line-height: 22px; padding: 0 4px; }
    .choices { column-gap: 1.5rem; display: flex; flex-wrap: wrap; }
    .looks { display: grid; grid-template-columns: minmax(0, max-content) minmax(36px, 0.6fr) minmax(165px, 1fr); margin-top: 0.6rem; }
    .looks > fieldset { margin: 0; }
    .looks legend, .looks .legend { margin: 0 0 0.3rem; white-space: nowrap; }
    .links { align-self: end; display: block; width: 100%; }
    .links path { fill: none; stroke: rgb(var(--blue)); vector-effect: non-scaling-stroke; }
    ol.tokens { column-gap: 0.5rem; display: grid; grid-template-columns: minmax(0, max-content) minmax(3.5rem, 1fr); list-style: none; }
    .tokens label > span, .tokens li > span:first-child { background: var(--soft); border: 1px solid var(--line); display: block; font-size: 14px;
      height: 26px; line-height: 24px; overflow: hidden; padding: 0 0.55rem; text-overflow: ellipsis; white-space: nowrap; }
    .tokens .begins:not(:first-child) { margin-top: 7px; }
    .tokens .begins > span:not(.share) { border-radius: 6px 6px 0 0; }
    .tokens .goes-on > span:not(.share) { border-top-style: dotted; }
    .tokens label:not(.ends) > span, .tokens li:not(.ends) > span:first-child { border-bottom: 0; }
    .tokens .ends > span:not(.share) { border-radius: 0 0 6px 6px; }
    .tokens .begins.ends > span:not(.share) { border-radius: 6px; }
    .tokens input:checked + span { background: rgb(var(--blue)); border-color: rgb(var(--blue)); color: var(--ground); font-weight: 600; }
    .tokens small { color: var(--muted); font-size: 12px; } .tokens input:checked + span small { color: inherit; }
    .tokens li { display: grid; grid-column: 1 / -1; grid-template-columns: subgrid; height: 26px; }
  `;

  explorers.attention = ({ sentences }, frame) => {
    const [height, gap] = [26, 7]; // of a token, and between two words
    const chosen = { sentence: 0, kind: 0, layer: 0, head: 0, token: 0 };
    const panel = html("div");
    const says = status();
    let show = () => {};

    const map = () => sentences[chosen.sentence].maps[chosen.kind];
    // The weights of each head, and their mean, as rows of queries; they come in thousandths.
    const headsOf = (layer) => {
      const [heads, keys] = [map().layers[layer], map().asked.length];
      const mean = heads[0].map((_, place) => sum(heads.map((head) => head[place])) / heads.length);
      const rowsOf = (flat) => map().asks.map((_, i) => flat.slice(i * keys, (i + 1) * keys));
      return [...heads, mean].map((flat) => rowsOf(flat.map((weight) => weight / 1000)));
    };

    // The whole word to which a piece belongs.
    function word(tokens, place) {
      let [from, to] = [place, place + 1];
      while (from > 0 && !tokens[from][1]) from -= 1;
      while (to < tokens.length && !tokens[to][1]) to += 1;
      const whole = tokens
        .slice(from, to)
        .map(([text]) => text)
        .join("");
      return to - from > 1 ? `${quoted(tokens[place][0])} of ${quoted(whole)}` : quoted(whole);
    }

    const middles = (tokens) => {
      let y = -gap;
      return tokens.map(([, begins]) => (y += height + (begins ? gap : 0)) - height / 2);
    };
    const joined = (tokens, place) =>
      (tokens[place][1] ? "begins" : "goes-on") +
      (tokens[place + 1] && !tokens[place + 1][1] ? "" : " ends");

    const thumbnail = (rows) =>
      svg(
        "svg",
        {
          viewBox: `0 0 ${rows[0].length} ${rows.length}`,
          preserveAspectRatio: "none",
          "aria-hidden": "true",
        },
        ...rows.flatMap((row, i) =>
          row.map((weight, j) =>
            svg("rect", {
              x: j,
              y: i,
              width: 1.02,
              height: 1.02,
              "fill-opacity": weight.toFixed(2),
            }),
          ),
        ),
      );

    function build() {
      const { asks, asked, layers, next } = map();
      const heads = headsOf(chosen.layer);
      const layerChoice = choice({
        legend: "Layer",
        options: range(layers.length).map((layer) => ({ value: layer, label: String(layer + 1) })),
        value: chosen.layer,
        change(layer) {
          chosen.layer = layer;
          build();
          panel.querySelector("input:checked").focus(); // of the layers that now stand there
        },
      });
      const names = [...range(heads.length - 1).map((h) => `head ${h + 1}`), "mean of the heads"];
      const headChoice = choice({
        legend: "Head",
        look: "segments heads",
        options: heads.map((rows, h) => ({
          value: h,
          label: [thumbnail(rows), h < heads.length - 1 ? String(h + 1) : "mean"],
          says: names[h],
        })),
        value: chosen.head,
        change(h) {
          chosen.head = h;
          show();
        },
      });
      const words = choice({
        legend: "Token that asks",
        look: "tokens",
        options: asks.map(([text], i) => ({
          value: i,
          label: [text, next ? html("small", {}, ` → ${next[i]}`) : ""],
          look: joined(asks, i),
          says: word(asks, i) + (next ? `, next ${quoted(next[i])}` : ""),
          hover: true,
        })),
        value: chosen.token,
        change(i) {
          chosen.token = i;
          words.set(i);
          show();
        },
      });
      const shares = asked.map(share);
      const list = html(
        "ol",
        { class: "tokens" },
        ...asked.map(([text], j) =>
          html("li", { class: joined(asked, j) }, html("span", {}, text), shares[j].element),
        ),
      );
      const [from, to] = [middles(asks), middles(asked)];
      const lines = asked.map(() => svg("path"));
      const tall = Math.max(from.at(-1), to.at(-1)) + height / 2;
      const shape = {
        viewBox: `0 0 100 ${tall}`,
        style: `height: ${tall}px`,
        preserveAspectRatio: "none",
      };
      const picture = svg("svg", { class: "links", "aria-hidden": "true", ...shape }, ...lines);

      show = () => {
        const i = chosen.token;
        const row = heads[chosen.head][i];
        row.forEach((weight, j) => {
          set(lines[j], {
            d: `M0 ${from[i]}C50 ${from[i]} 50 ${to[j]} 100 ${to[j]}`,
            "stroke-width": (9 * weight).toFixed(2),
            "stroke-opacity": (0.25 + 0.6 * weight).toFixed(2),
          });
          shares[j].set(weight);
        });
        const order = range(row.length)
          .sort((a, b) => row[b] - row[a])
          .filter((j) => row[j] >= 0.005);
        const most = order.slice(0, 3).map((j) => `${word(asked, j)} ${fixed(row[j])}`);
        const rest =
          order.length > 3 ? `, and at ${counted(order.length - 3, "more token")} with less` : "";
        says.textContent =
          `${map().name}, layer ${chosen.layer + 1}, ${names[chosen.head]}: ` +
          `${word(asks, i)}${next ? `, before ${quoted(next[i])} is written,` : ""} looks at ${listed(most)}${rest}.`;
      };
      panel.replaceChildren(
        html("div", { class: "choices" }, layerChoice.element, headChoice.element),
        html(
          "div",
          { class: "looks" },
          words.element,
          picture,
          html("div", {}, html("p", { class: "legend" }, "Where it looks"), list),
        ),
      );
      show();
    }

    function pick(what, legend, names) {
      const change = (value) => {
        chosen[what] = value;
        chosen.layer = Math.min(chosen.layer, map().layers.length - 1);
        chosen.token = Math.min(chosen.token, map().asks.length - 1);
        build();
      };
      const options = names.map((label, value) => ({ value, label }));
      return names.length > 1 ? choice({ legend, options, value: 0, change }).element : "";
    }

    frame.append(
      html(
        "div",
        { class: "choices" },
        pick(
          "sentence",
          "Sentence",
          sentences.map((sentence) => sentence.name),
        ),
        pick(
          "kind",
          "Attention",
          sentences[0].maps.map((each) => each.name),
        ),
      ),
      panel,
      says,
    );
    build();
  };

  // == detections ===============================================================================

  styles.detections = `
    .scene { line-height: 0; margin-top: 1.1rem; position: relative; }
    .scene img { border-radius: 4px; display: block; height: auto; width: 100%; }
    .scene svg { height: 100%; inset: 0; position: absolute; width: 100%; }
    .scene rect { fill: none; vector-effect: non-scaling-stroke; }
    .scene .under { stroke: #fff; stroke-width: 4; }
    .scene rect[class]:not(.under) { stroke: rgb(var(--hue)); stroke-width: 2; }
    .scene rect.chosen { stroke-width: 3.5; } .scene rect.faint { stroke-dasharray: 5 4; }
    .shade rect { fill: #000; shape-rendering: crispEdges; }
    .tags button { background: #fff; border: 2px solid rgb(var(--hue)); border-radius: 4px; color: #1f2328; cursor: pointer;
      font-family: inherit; font-size: 12px; font-weight: 600; line-height: 20px; padding: 0 5px; position: absolute; transform: translateY(-100%); white-space: nowrap; }
    .tags button.chosen { background: #1f2328; color: #fff; }
  `;

  explorers.detections = ({ size, queries, grid, threshold }, frame, place) => {
    const [width, height] = size;
    const order = range(queries.length).sort((a, b) => queries[b].score - queries[a].score);
    const hues = ["blue", "orange", "green", "red", "purple"];
    const labels = [...new Set(order.map((i) => queries[i].label))];
    const hue = (i) => hues[labels.indexOf(queries[i].label) % hues.length];
    const percent = (number, whole) => `${((100 * number) / whole).toFixed(2)}%`;
    const kept = () => order.filter((i) => queries[i].score > threshold);
    let chosen = order[0];
    let looking = Boolean(grid);

    const boxes = svg("g");
    const shade = svg("g", { class: "shade" });
    const tags = html("div", { class: "tags" });
    const picture = html(
      "div",
      { class: "scene" },
      place.querySelector("img").cloneNode(),
      svg(
        "svg",
        { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" },
        shade,
        boxes,
      ),
      tags,
    );
    const says = status();
    const select = html("select", { id: "query" });
    order.forEach((i) =>
      select.append(
        html("option", { value: i }, `query ${i}: ${queries[i].label} ${fixed(queries[i].score)}`),
      ),
    );
    const choose = (i) => {
      chosen = i;
      select.value = i;
      draw();
    };
    select.addEventListener("change", () => choose(Number(select.value)));

    function frameOf(i, look) {
      const [left, top, right, bottom] = queries[i].box;
      const place = {
        x: left,
        y: top,
        width: Math.max(0, right - left),
        height: Math.max(0, bottom - top),
      };
      return [
        svg("rect", { ...place, class: "under" }),
        svg("rect", { ...place, class: `${hue(i)} ${look}` }),
      ];
    }

    function draw() {
      const shown = kept();
      const faint = !shown.includes(chosen);
      boxes.replaceChildren(
        ...shown.filter((i) => i !== chosen).flatMap((i) => frameOf(i, "")),
        ...frameOf(chosen, faint ? "chosen faint" : "chosen"),
      );
      tags.replaceChildren(
        ...[...shown.filter((i) => i !== chosen), chosen].map((i) => {
          const [left, top] = queries[i].box;
          return html(
            "button",
            {
              type: "button",
              class: `${hue(i)}${i === chosen ? " chosen" : ""}`,
              style: `left: ${percent(clamp(left, 0, 0.8 * width), width)}; top: ${percent(clamp(top, 0.09 * height, height), height)}`,
              "aria-label": `${queries[i].label} ${fixed(queries[i].score)}, query ${i}`,
              "aria-pressed": String(i === chosen),
              tabindex: -1, // the list of queries is the way of the keyboard
              onclick: () => choose(i),
            },
            `${queries[i].label} ${fixed(queries[i].score)}`,
          );
        }),
      );
      shade.replaceChildren();
      const { map } = queries[chosen];
      let looks = "";
      if (grid && looking) {
        const [rows, columns] = grid;
        map.forEach((level, cell) =>
          shade.append(
            svg("rect", {
              x: ((cell % columns) * width) / columns,
              y: (Math.floor(cell / columns) * height) / rows,
              width: width / columns,
              height: height / rows,
              "fill-opacity": (0.72 * (1 - level / 99)).toFixed(2),
            }),
          ),
        );
        const most = map.indexOf(Math.max(...map));
        looks = ` It looks most at row ${Math.floor(most / columns) + 1} of ${rows}, column ${(most % columns) + 1} of ${columns}.`;
      }
      const found = shown.slice(0, 6).map((i) => `${queries[i].label} ${fixed(queries[i].score)}`);
      const more = shown.length > 6 ? [counted(shown.length - 6, "more", "more")] : [];
      says.textContent =
        `At threshold ${fixed(threshold)}, ${shown.length} of ${counted(queries.length, "query", "queries")} ` +
        `${shown.length === 1 ? "is" : "are"} kept${shown.length ? `: ${listed([...found, ...more])}` : ""}. ` +
        `Query ${chosen} says ${queries[chosen].label} with ${fixed(queries[chosen].score)}${faint ? ", not above the threshold" : ""}.${looks}`;
    }

    const control = slider({
      name: "Threshold",
      min: 0,
      max: 1,
      step: 0.01,
      value: threshold,
      change(number) {
        threshold = number;
        draw();
      },
    });
    frame.append(
      html(
        "div",
        { class: "columns" },
        html("div", { class: "wide" }, picture),
        html(
          "div",
          {},
          control.element,
          html("div", { class: "select" }, html("label", { for: "query" }, "Query"), select),
          grid
            ? checkbox({
                name: "Show where the query looks: the rest is dark",
                value: looking,
                change(value) {
                  looking = value;
                  draw();
                },
              })
            : "",
          says,
        ),
      ),
    );
    draw();
  };

  // == shared ===================================================================================

  // What the page says of itself: this book (data-theme), JupyterLab, VS Code, Colab (theme).
  function isDark() {
    for (const { dataset, attributes } of [document.documentElement, document.body]) {
      const jupyter = { true: "light", false: "dark" }[dataset.jpThemeLight];
      const said =
        dataset.theme ?? jupyter ?? dataset.vscodeThemeKind ?? attributes.theme?.value ?? "";
      if (/dark|light|contrast/.test(said)) return !said.includes("light");
    }
    return matchMedia("(prefers-color-scheme: dark)").matches;
  }

  function followTheme(frame) {
    const follow = () => frame.classList.toggle("dark", isDark());
    const attributeFilter = [
      "data-theme",
      "data-jp-theme-light",
      "data-vscode-theme-kind",
      "theme",
    ];
    const observer = new MutationObserver(follow);
    for (const element of [document.documentElement, document.body])
      observer.observe(element, { attributeFilter });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", follow);
    follow();
  }

  function start(kind, key, data) {
    for (const place of document.querySelectorAll(`[data-explorer="${key}"]`)) {
      if (place.shadowRoot) continue; // it runs
      const title = html("p", { class: "title" }, html("span", {}, "Explorer"), data.title);
      const frame = html(
        "div",
        { class: "frame", role: "group", "aria-label": `Explorer: ${data.title}` },
        title,
      );
      explorers[kind](data, frame, place);
      followTheme(frame);
      place.attachShadow({ mode: "open" }).append(html("style", {}, STYLE + styles[kind]), frame);
    }
  }

  const STYLE = `
    :host { break-inside: avoid; container-type: inline-size; display: block; margin: 0.75rem 0; print-color-adjust: exact; }
    .frame {
      --ground: #fff; --ink: #1f2328; --muted: #57606a; --edge: #d0d7de; --line: #818a94; --soft: #f3f5f8; --depth: 0.55;
      --blue: 11 107 179; --orange: 184 84 0; --green: 0 120 90; --red: 192 41 59; --purple: 138 74 158;
      background: var(--ground); border: 1px solid var(--edge); border-radius: 8px; box-sizing: border-box;
      color: var(--ink); color-scheme: light; padding: 0.9rem 1rem 1rem; text-align: left;
      font: 400 15px/1.5 var(--pst-font-family-base, var(--jp-ui-font-family, system-ui, sans-serif));
      font-variant-numeric: tabular-nums;
    }
    .frame.dark {
      --ground: #191e25; --ink: #e6eaef; --muted: #a9b2bd; --edge: #3a424c; --line: #7c8692; --soft: #252c35; --depth: 0.45;
      --blue: 108 182 255; --orange: 240 163 94; --green: 76 195 138; --red: 255 141 141; --purple: 210 168 255;
      color-scheme: dark;
    }
    *, *::before { box-sizing: border-box; }
    p, figure, ol, fieldset { border: 0; margin: 0; min-width: 0; padding: 0; }
    :focus-visible { outline: 2px solid rgb(var(--blue)); outline-offset: 2px; }
    .blue { --hue: var(--blue); } .orange { --hue: var(--orange); } .green { --hue: var(--green); }
    .red { --hue: var(--red); } .purple { --hue: var(--purple); }
    span.blue, span.orange, span.green { color: rgb(var(--hue)); white-space: nowrap; }
    @container (max-width: 420px) { .frame { padding: 0.7rem 0.6rem 0.8rem; } }
    .title { font-weight: 600; margin-bottom: 0.75rem; }
    .title span { border: 1px solid var(--line); border-radius: 4px; color: var(--muted); font-size: 12px;
      font-weight: 400; margin-right: 0.6rem; padding: 0.1rem 0.4rem; }
    .note, caption, figcaption, legend, .legend { color: var(--muted); font-size: 13px; text-align: left; }
    .note { margin: 0.5rem 0; }
    .says { border-left: 3px solid rgb(var(--blue)); margin-top: 0.9rem; min-height: 3em; padding-left: 0.7rem; }
    .formula { margin-top: 0.75rem; }
    .columns, .tables, .pair { align-items: flex-start; display: flex; flex-wrap: wrap; gap: 0.75rem 1.5rem; }
    .columns > * { flex: 1 1 240px; min-width: 0; }
    .columns > .wide { flex: 1.25 1 260px; }
    .pair > * { flex: 1 1 220px; }
    .slider { align-items: center; column-gap: 0.6rem; display: grid; grid-template-columns: 1fr auto; margin-bottom: 0.3rem; }
    .slider label { color: rgb(var(--hue)); font-size: 14px; }
    .slider input { accent-color: rgb(var(--hue, var(--blue))); grid-column: 1 / -1; grid-row: 2; height: 24px; margin: 0; width: 100%; }
    .slider input:focus-visible { outline-offset: -2px; }
    .slider .output { font-size: 14px; font-weight: 600; }
    .share { align-items: center; display: flex; }
    .share b { flex: 0 0 2.4rem; font-size: 14px; font-weight: 400; }
    .share span { flex: 1; }
    .share i { background: rgb(var(--blue)); border-radius: 2px; display: block; height: 14px; min-width: 1px; }
    .checkbox { align-items: center; display: flex; font-size: 14px; gap: 0.5rem; min-height: 28px; }
    .checkbox input { accent-color: rgb(var(--blue)); height: 18px; margin: 0; width: 18px; }
    .select { align-items: center; display: flex; font-size: 14px; gap: 0.6rem; margin-bottom: 0.3rem; }
    .select select { background: var(--ground); border: 1px solid var(--line); border-radius: 6px; color: inherit;
      font: inherit; min-height: 30px; min-width: 0; padding: 0 0.4rem; }
    .buttons { display: flex; flex-wrap: wrap; gap: 0.4rem; margin: 0.5rem 0; }
    .buttons button { background: var(--soft); border: 1px solid var(--line); border-radius: 6px; color: inherit;
      cursor: pointer; font: inherit; font-size: 13.5px; min-height: 30px; padding: 0 0.65rem; }
    .buttons button:hover { border-color: var(--ink); }
    fieldset { margin: 0.4rem 0; } .tables fieldset { margin-top: 0; }
    legend { float: none; line-height: 1.5; margin: 0 0 0.15rem; padding: 0; width: auto; }
    .segments > div { display: flex; flex-wrap: wrap; gap: 0.35rem; }
    .segments label, .tokens label { cursor: pointer; display: block; position: relative; }
    .segments input, .tokens input { cursor: pointer; height: 100%; inset: 0; margin: 0; opacity: 0; position: absolute; width: 100%; }
    .segments label > span { border: 1px solid var(--line); border-radius: 6px; display: block; font-size: 13.5px;
      line-height: 28px; min-width: 34px; padding: 0 0.65rem; text-align: center; }
    .segments label:hover > span { border-color: var(--ink); }
    .segments input:checked + span { background: rgb(var(--blue)); border-color: rgb(var(--blue)); color: var(--ground); font-weight: 600; }
    :is(.segments, .tokens) input:focus-visible + span { outline: 2px solid rgb(var(--blue)); outline-offset: 2px; }
    .tables > * { max-width: 100%; overflow-x: auto; }
    table { border-collapse: separate; border-spacing: 2px; font-size: 13px; }
    caption { padding-bottom: 0.2rem; }
    th { font-weight: 400; padding: 0 1px; text-align: center; }
    th[scope="row"] { padding-right: 4px; text-align: right; }
    .heat tbody td { --hue: var(--blue); background: rgb(var(--hue) / calc(var(--level) * var(--depth))); border-radius: 3px;
      height: 30px; min-width: clamp(30px, 5.4cqw, 44px); padding: 0 1px; text-align: center; }
    .heat tbody td.negative { --hue: var(--red); }
    @media (forced-colors: active) { .segments input:checked + span, .tokens input:checked + span { outline: 3px solid; } }
  `;

  return start;
})();
