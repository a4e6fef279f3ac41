// Replays a collective that Python recorded (helpers/player/__init__.py). It knows no algorithm: what moves,
// what a cell holds afterwards and what has been sent, all of it is read from the trace.

const TRAVEL = 1100; // milliseconds that a chunk is on its way
const REST = 450; // milliseconds between two steps, to see what has changed
const WIDTH = 328; // of the picture: on a phone of 360 pixels one unit is about one pixel
const LINE = 13; // height of a line of words in a card
const ICONS = {
  Play: "M4 2v12l9-6z",
  Pause: "M4 3h3v10H4zM9 3h3v10H9z",
  "Back to the start": "M12.6 9.5A5 5 0 1 1 11.2 4L13.5 2v5.5H8l1.9-2A3.1 3.1 0 1 0 10.7 9.5z",
  "One step back": "M3 3h2v10H3zM13 3v10L6 8z",
  "One step on": "M3 3v10l7-5zM11 3h2v10h-2z",
};
const calm = matchMedia("(prefers-reduced-motion: reduce)");

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
const html = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

// The trace in words.

const members = (mask) => [...Array(31).keys()].filter((rank) => (mask >> rank) & 1);
const listed = (words) => words.join(", ").replace(/, ([^,]*)$/, " and $1");
const capital = (words) => words[0].toUpperCase() + words.slice(1);
const nameOf = (trace, node) => (node < trace.ranks ? `rank ${node}` : `server ${node - trace.ranks}`);
const phaseOf = (trace, step) => trace.phases[trace.steps[step - 1].phase];
const stepOf = (trace, step) => `step ${step} of ${trace.steps.length}`;

function whereIn(trace, at, step) {
  if (!step) return "before the first step";
  return `${at < step ? "during" : "after"} ${stepOf(trace, step)}, ${phaseOf(trace, step)}`;
}

function headline(trace, at, step) {
  const [upper, lower = 1] = trace.sent[at].split("/");
  const whole = trace.sent[at] === "1" ? "gradient" : "gradients";
  const amount = `${trace.sent[at]} ${Number(upper) < Number(lower) ? "of a gradient" : whole}`;
  const sent = `${trace.even ? "each rank" : "the busiest"} has sent ${amount}`;
  const place = step ? `${stepOf(trace, step)} · ${phaseOf(trace, step)}` : `before ${stepOf(trace, 1)}`;
  return `${capital(place)}\n${upper === "0" ? "nothing sent yet" : sent}`;
}

function sentence(trace, step, complete) {
  if (!step) return "A number counts the ranks whose contributions are in a chunk. Nobody has sent anything.";
  const { moves } = trace.steps[step - 1];
  const pairs = new Map(moves.map(([from, to]) => [`${from} ${to}`, []]));
  for (const [from, to, chunk] of moves) pairs.get(`${from} ${to}`).push(chunk);
  const clauses = [...pairs].map(([pair, chunks]) => {
    const [from, to] = pair.split(" ").map((node) => nameOf(trace, node));
    return `${from} sends chunk${chunks.length > 1 ? "s" : ""} ${listed(chunks)} to ${to}`;
  });
  const adds = moves.filter((move) => move[3]).length;
  const how = { [moves.length]: "Each adds what comes.", 0: "Each overwrites its own with what comes." };
  const end = complete ? " Now every chunk is complete." : "";
  const what = `${stepOf(trace, step)}, ${phaseOf(trace, step)}: ${clauses.join(", ")}.`;
  return `${capital(what)} ${how[adds] ?? "Some add, some overwrite."}${end}`;
}

// The picture: where things are.

function planOf({ ranks, chunks, start }) {
  const columns = chunks > 8 ? Math.ceil(Math.sqrt(chunks)) : chunks;
  const rows = Math.ceil(chunks / columns);
  const cell = { width: Math.min(24, 99 / columns), height: rows > 1 ? Math.min(17, 99 / columns) : 20 };
  const head = (rows > 1 ? 1 : 2) * LINE + 4; // one row has room for the numbers of its chunks
  const card = { width: Math.max(columns * cell.width + 8, 54), height: head + rows * cell.height + 4 };
  const radius = { x: (WIDTH - card.width) / 2 - 2, y: (Math.max(60, 24 + 16 * ranks) * card.height) / 54 };
  // A ring pressed against the sides, or eight cards would not fit beside and below each other.
  const bend = (value, power) => Math.sign(value) * Math.abs(value) ** power;
  const centres = start.map((_, node) => {
    const turn = (2 * Math.PI * node) / ranks;
    const x = WIDTH / 2 + radius.x * bend(Math.sin(turn), 0.5);
    if (node < ranks) return { x, y: -radius.y * bend(Math.cos(turn), 1.6) };
    return { x: WIDTH / 2, y: (node - (ranks + start.length - 1) / 2) * (card.height + 12) };
  });
  const top = Math.min(...centres.map(({ y }) => y)) - card.height / 2 - 6;
  for (const centre of centres) centre.y -= top;
  const height = Math.max(...centres.map(({ y }) => y)) + card.height / 2 + 6;
  const cellAt = (node, chunk) => ({
    x: centres[node].x + ((chunk % columns) - (columns - 1) / 2) * cell.width,
    y: centres[node].y - card.height / 2 + head + (Math.floor(chunk / columns) + 0.5) * cell.height,
  });
  const near = (a, b) => Math.max(a, b) < ranks && [1, ranks - 1].includes(Math.abs(a - b));
  return { centres, card, cell, cellAt, height, middle: -top, near, numbered: rows === 1 };
}

/** The way from one card to another, neighbours round the outside; with cells, from cell to cell. */
function wayOf(plan, from, to, chunk) {
  const [a, b] = [plan.centres[from], plan.centres[to]];
  const bow = { x: (a.x + b.x) / 2 + 0.2 * (b.y - a.y), y: (a.y + b.y) / 2 - 0.2 * (b.x - a.x) };
  if (plan.near(from, to) && Math.abs(a.x - b.x) > 1) {
    const first = Math.abs(a.y - plan.middle) > Math.abs(b.y - plan.middle);
    const outer = first ? { x: b.x, y: a.y } : { x: a.x, y: b.y };
    bow.x += 0.75 * (outer.x - (a.x + b.x) / 2);
    bow.y += 0.75 * (outer.y - (a.y + b.y) / 2);
  }
  const [p, q] = chunk === undefined ? [a, b] : [plan.cellAt(from, chunk), plan.cellAt(to, chunk)];
  const on = (axis, t) => {
    const control = bow[axis] + (p[axis] - a[axis] + q[axis] - b[axis]) / 2;
    return (1 - t) ** 2 * p[axis] + 2 * t * (1 - t) * control + t ** 2 * q[axis];
  };
  return (t) => ({ x: on("x", t), y: on("y", t) });
}

function arrowOf(plan, from, to) {
  const inside = ({ x, y }, node) =>
    Math.abs(x - plan.centres[node].x) < plan.card.width / 2 + 3 &&
    Math.abs(y - plan.centres[node].y) < plan.card.height / 2 + 3;
  const way = wayOf(plan, from, to);
  const points = [...Array(121).keys()].map((i) => way(i / 120));
  const free = points.filter((point) => !inside(point, from) && !inside(point, to));
  const line = free.length > 1 ? free : [way(0.45), way(0.55)];
  const [before, tip] = [line.at(-Math.min(5, line.length)), line.at(-1)];
  const angle = (Math.atan2(tip.y - before.y, tip.x - before.x) * 180) / Math.PI;
  const d = line.map(({ x, y }) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L");
  const head = { d: "M0 0L-7 4.5V-4.5z", transform: `translate(${tip.x} ${tip.y}) rotate(${angle})` };
  return svg("g", { class: "player-arrow" }, svg("path", { d: `M${d}` }), svg("path", head));
}

function chipOf(plan, [from, to, chunk, add], mask, short) {
  const words = `${short ? "" : "chunk "}${chunk} ${add ? "+" : "="}${members(mask).length}`;
  const width = 6.6 * words.length + 8;
  const box = { x: -width / 2, y: -9.5, width, height: 19, rx: add ? 9.5 : 2 };
  const chip = svg("g", { class: add ? "player-chip" : "player-chip player-copy" }, svg("rect", box));
  chip.append(svg("text", { y: 4 }, words));
  const way = wayOf(plan, from, to, chunk);
  const within = (x) => Math.min(Math.max(x, width / 2 + 1), WIDTH - width / 2 - 1);
  chip.put = (t) => chip.setAttribute("transform", `translate(${within(way(t).x)} ${way(t).y})`);
  return chip;
}

function sceneOf(trace) {
  const plan = planOf(trace);
  const { card, cell } = plan;
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${plan.height.toFixed(1)}`, role: "img" });
  const pairs = trace.steps.flatMap(({ moves }) => moves.map(([from, to]) => `${from} ${to}`));
  const arrows = new Map();
  for (const pair of new Set(pairs)) arrows.set(pair, arrowOf(plan, ...pair.split(" ").map(Number)));
  picture.append(...arrows.values());
  const ring = trace.ranks > 2 && [...arrows.keys()].every((pair) => plan.near(...pair.split(" ")));
  const word = (y, name) => svg("text", { x: WIDTH / 2, y: plan.middle + y, class: name });
  const middle = [word(-2, "player-phase"), word(14, "player-how")];
  if (ring) picture.append(...middle);
  const cells = plan.centres.map(({ x, y }, node) => {
    const top = y - card.height / 2;
    const name = svg("text", { x, y: top + LINE, class: "player-name" }, nameOf(trace, node));
    const sheet = { x: x - card.width / 2, y: top, ...card, rx: 6, class: "player-card" };
    picture.append(svg("rect", sheet), name);
    return trace.start[node].map((_, chunk) => {
      const at = plan.cellAt(node, chunk);
      const index = svg("text", { x: at.x, y: top + 2 * LINE, class: "player-index" }, chunk);
      if (plan.numbered) picture.append(index);
      const box = { x: at.x - cell.width / 2 + 0.75, y: at.y - cell.height / 2 + 0.75, rx: 2 };
      const size = { width: cell.width - 1.5, height: cell.height - 1.5 };
      const text = svg("text", { x: at.x, y: at.y + 4 });
      const group = svg("g", {}, svg("rect", { ...box, ...size }), text);
      if (cell.width < 10) text.setAttribute("display", "none");
      picture.append(group);
      return { group, text };
    });
  });
  const chips = svg("g");
  picture.append(chips);

  function show(state, full, moves, arrived, how) {
    const fresh = new Set(arrived.map(([, to, chunk]) => `${to} ${chunk}`));
    state.forEach((row, node) =>
      row.forEach((mask, chunk) => {
        const { group, text } = cells[node][chunk];
        const share = members(mask).length / members(full[chunk]).length;
        group.setAttribute("class", "player-cell");
        group.classList.toggle("player-full", share === 1);
        group.classList.toggle("player-new", fresh.has(`${node} ${chunk}`));
        group.style.setProperty("--share", share);
        text.textContent = members(mask).length;
      }),
    );
    const on = new Set(moves.map(([from, to]) => `${from} ${to}`));
    for (const [pair, arrow] of arrows) arrow.classList.toggle("player-on", on.has(pair));
    middle.forEach((text, i) => (text.textContent = how[i]));
  }

  function load(moves, state) {
    const pairs = new Set(moves.map(([from, to]) => `${from} ${to}`));
    const short = pairs.size < moves.length || moves.length > 2 * plan.centres.length;
    chips.replaceChildren(...moves.map((move) => chipOf(plan, move, state[move[0]][move[2]], short)));
  }
  const put = (t) => [...chips.children].forEach((chip) => chip.put(t));
  return { picture, show, load, put };
}

// The same as a table, for whoever wants names instead of numbers.

function tableOf(trace) {
  const caption = html("caption");
  const heads = trace.start[0].map((_, chunk) => html("th", { scope: "col" }, `chunk ${chunk}`));
  const cells = trace.start.map((row) => row.map(() => html("td")));
  const nameAt = (node) => html("th", { scope: "row" }, nameOf(trace, node));
  const rows = cells.map((row, node) => html("tr", {}, nameAt(node), ...row));
  const head = html("thead", {}, html("tr", {}, html("td"), ...heads));
  const table = html("table", {}, caption, head, html("tbody", {}, ...rows));
  function show(state, when) {
    caption.textContent = `How many contributions are in each chunk ${when}, and whose`;
    state.forEach((row, node) =>
      row.forEach((mask, chunk) => {
        const inside = members(mask);
        cells[node][chunk].textContent = inside.length ? `${inside.length}: ${inside.join(", ")}` : "0";
      }),
    );
  }
  return { table, show };
}

function statesOf(trace) {
  const states = [trace.start];
  for (const { moves } of trace.steps) {
    const next = states.at(-1).map((row) => [...row]);
    for (const [, to, chunk, , mask] of moves) next[to][chunk] = mask;
    states.push(next);
  }
  return states;
}

function buttonOf(name, action) {
  const sign = svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));
  const button = html("button", { type: "button" }, sign);
  if (name === "Play") button.append(html("span", {}, name));
  else fill(button, { "aria-label": name, title: name }, []);
  button.addEventListener("click", action);
  return button;
}

function render({ model, el }) {
  const { traces, start } = model.get("state");
  let trace, states, full, scene, table; // of the number of ranks that is shown
  let at = 0; // the state that the cells show
  let clock = 0; // milliseconds of the step under way; below zero between two steps
  let auto = false; // going on at the end of a step
  let frame = 0;
  let last = 0;

  const head = html("p", { class: "player-head" });
  const stage = html("div", { class: "player-stage" });
  const words = html("p", { class: "player-words", "aria-live": "polite" });
  const box = { class: "player-scroll", tabindex: "0", role: "group", "aria-label": "Table of the state" };
  const scroll = html("div", box);
  const play = buttonOf("Play", () => (auto ? stop() : go()));
  const range = html("input", { type: "range", min: 0, step: 1, "aria-label": "State" });
  const phases = html("div", { class: "player-phases", "aria-hidden": "true" });
  const sizes = Object.keys(traces).map((size) => html("option", { value: size }, `${size} ranks`));
  const select = html("select", { "aria-label": "Number of ranks" }, ...sizes);
  select.hidden = sizes.length < 2;
  const buttons = html(
    "div",
    { class: "player-buttons" },
    buttonOf("Back to the start", () => jump(0)),
    buttonOf("One step back", back),
    play,
    buttonOf("One step on", on),
    select,
  );
  const controls = html("div", { class: "player-controls" }, range, phases, buttons);
  const details = html("details", {}, html("summary", {}, "This state as a table"), scroll);
  const root = html("div", { class: "player", role: "group" }, head, stage, controls, words, details);
  // JupyterLab would take the arrows up and down, which these two need, for its own shortcuts.
  for (const control of [range, select]) control.setAttribute("data-lm-suppress-shortcuts", "true");

  const under = () => (clock > 0 ? at + 1 : at); // the step that is shown, under way or done
  const total = () => trace.steps.length;

  /** Everything that changes from state to state, not from frame to frame. */
  function show() {
    const step = under();
    const when = whereIn(trace, at, step);
    const done = at === step;
    const moves = step ? trace.steps[step - 1].moves : [];
    const complete = done && states[at].every((row) => row.every((mask, chunk) => mask === full[chunk]));
    const kind = moves.some((move) => move[3]) ? "+ adds" : "= overwrites";
    scene.show(states[at], full, moves, done ? moves : [], step ? [phaseOf(trace, step), kind] : ["", ""]);
    scene.load(clock > 0 || calm.matches ? moves : [], states[Math.max(step - 1, 0)]);
    scene.put(calm.matches ? 0.5 : 0);
    const counts = states[at].map((row) => row.map((mask) => members(mask).length).join(" "));
    const rows = counts.map((row, node) => `${nameOf(trace, node)}: ${row}`).join("; ");
    scene.picture.setAttribute("aria-label", `${trace.name} ${when}. Contributions by chunk: ${rows}.`);
    table.show(states[at], done ? when : `before ${stepOf(trace, step)}`);
    head.textContent = headline(trace, at, step);
    const said = sentence(trace, step, complete);
    if (words.textContent !== said) words.textContent = said; // a screen reader says whatever is written here
    range.value = at;
    range.setAttribute("aria-valuetext", when);
    play.lastChild.textContent = auto ? "Pause" : "Play";
    play.querySelector("path").setAttribute("d", ICONS[auto ? "Pause" : "Play"]);
  }

  function tick(now) {
    frame = 0;
    if (!el.isConnected) return;
    // A hidden tab gets no frames: what it missed is not made up for.
    const before = under();
    clock += Math.min(now - last, 50);
    last = now;
    if (clock >= TRAVEL) {
      at += 1;
      clock = -REST;
      auto &&= at < total();
      if (!auto) clock = 0;
      show();
    } else if (under() !== before) show();
    const t = Math.max(clock, 0) / TRAVEL;
    if (!calm.matches) scene.put(t * t * (3 - 2 * t));
    if (auto || clock) frame = requestAnimationFrame(tick);
  }

  function run() {
    clock = Math.max(clock, 1);
    show();
    last = performance.now();
    frame ||= requestAnimationFrame(tick);
  }
  function stop() {
    cancelAnimationFrame(frame);
    frame = 0;
    auto = false;
    clock = Math.max(clock, 0);
    show();
  }
  function jump(state) {
    at = Math.min(Math.max(state, 0), total());
    clock = 0;
    stop();
  }
  function go() {
    if (at === total()) jump(0);
    auto = true;
    run();
  }
  function back() {
    jump(clock > 0 ? at : at - 1);
  }
  function on() {
    jump(under());
    if (at < total() && !calm.matches) run();
    else jump(at + 1);
  }

  function open(size) {
    trace = traces[size];
    states = statesOf(trace);
    full = trace.start[0].map((_, chunk) => trace.start.reduce((all, row) => all | row[chunk], 0));
    scene = sceneOf(trace);
    table = tableOf(trace);
    stage.replaceChildren(scene.picture);
    scroll.replaceChildren(table.table);
    root.setAttribute("aria-label", `Player: ${trace.name}`);
    range.max = total();
    phases.replaceChildren(
      ...trace.phases.map((name, i) => {
        const steps = trace.steps.filter(({ phase }) => phase === i).length;
        return html("span", { style: `flex-grow: ${steps}` }, name);
      }),
    );
    jump(0);
  }

  range.addEventListener("input", () => jump(Number(range.value)));
  select.addEventListener("change", () => open(select.value));
  calm.addEventListener("change", show);
  root.addEventListener("keydown", (event) => {
    const { key, target } = event;
    const [first, end] = [() => jump(0), () => jump(total())];
    const actions = { " ": () => play.click(), ArrowLeft: back, ArrowRight: on, Home: first, End: end };
    const other = event.ctrlKey || event.altKey || event.metaKey || target.closest("select, .player-scroll");
    // Buttons press themselves on Space, and a slider moves itself.
    const itself = key === " " ? target.closest("button, summary") : target === range;
    if (other || itself || !Object.hasOwn(actions, key)) return;
    event.preventDefault();
    actions[key]();
  });

  el.append(root);
  select.value = start;
  open(start);
  return () => {
    cancelAnimationFrame(frame);
    calm.removeEventListener("change", show);
  };
}

export default { render };
