// Replays a collective that Python recorded (helpers/player/__init__.py). It knows no algorithm: what moves,
// what a cell holds afterwards and what has been sent, all of it is read from the trace.

const TRAVEL = 1100; // milliseconds that a chunk is on its way
const REST = 450; // milliseconds between two steps, to see what has changed
const WIDTH = 328; // of the picture: on a phone of 360 pixels one unit is about one pixel
const LINE = 13; // height of a line of words in a card
const ONE_ROW = 8; // chunks that lie beside each other in a card
const LONG = 5; // ranks up to which a chip has room for the word chunk, and may lie over a card
// By the number of ranks, between their cards: where the words begin, and how many letters a line has.
const MIDDLE = { 3: [-14, 24], 6: [-2, 14] };
const ICONS = {
  Play: "M4 2v12l9-6z",
  Pause: "M4 3h3v10H4zM9 3h3v10H9z",
  "Back to the start": "M12.6 9.5A5 5 0 1 1 11.2 4L13.5 2v5.5H8l1.9-2A3.1 3.1 0 1 0 10.7 9.5z",
  "One step back": "M3 3h2v10H3zM13 3v10L6 8z",
  "One step on": "M3 3v10l7-5zM11 3h2v10h-2z",
};
const calm = matchMedia("(prefers-reduced-motion: reduce)");


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
  const who = trace.even ? "each rank" : "the busiest";
  const place = step ? `${stepOf(trace, step)} · ${phaseOf(trace, step)}` : `before ${stepOf(trace, 1)}`;
  if (upper === "0") return [capital(place), step ? "before it, nothing was sent" : "nothing sent yet"];
  return [capital(place), at < step ? `before it, ${who} sent ${amount}` : `${who} has sent ${amount}`];
}

function meaningOf({ ranks, chunks, start }) {
  const server = start.length > ranks ? " or a server" : "";
  const above = chunks > ONE_ROW ? "" : "above it the number of the chunk, ";
  const inside = `${above}inside how many ranks’ contributions are in it`;
  const card = `Each card is a rank${server}, each box a chunk of its vector`;
  return `${card}: ${inside}. Each rank holds only its own.`;
}

function sentence(trace, step) {
  if (!step) return meaningOf(trace);
  const { moves } = trace.steps[step - 1];
  const pairs = new Map(moves.map(([from, to]) => [`${from} ${to}`, []]));
  for (const [from, to, chunk] of moves) pairs.get(`${from} ${to}`).push(chunk);
  const clauses = [...pairs].map(([pair, chunks]) => {
    const [from, to] = pair.split(" ").map((node) => nameOf(trace, node));
    return `${from} sends chunk${chunks.length > 1 ? "s" : ""} ${listed(chunks)} to ${to}`;
  });
  const adds = moves.filter((move) => move[3]).length;
  const how = { [moves.length]: "Each adds what comes.", 0: "Each overwrites its own with what comes." };
  const what = `${stepOf(trace, step)}, ${phaseOf(trace, step)}: ${clauses.join(", ")}.`;
  return `${capital(what)} ${how[adds] ?? "Some add, some overwrite."}`;
}

const labelOf = (chunk, add, mask, short) =>
  `${short ? "" : "chunk "}${chunk} ${add ? "+" : "="}${members(mask).length}`;

/** What a chip says, in words, as lines of so many letters. */
function decoded([, , chunk, add], mask, short, wide) {
  const count = members(mask).length;
  const inside = `chunk ${chunk} with ${count} rank${count > 1 ? "s" : ""} in it`;
  const words = `${labelOf(chunk, add, mask, short)}: ${inside}, ${add ? "added" : "copied"}`;
  return words.match(new RegExp(`.{1,${wide}}(?: |$)`, "g"));
}

// The picture: where things are.

function planOf({ ranks, chunks, start }) {
  const columns = chunks > ONE_ROW ? Math.ceil(Math.sqrt(chunks)) : chunks;
  const rows = Math.ceil(chunks / columns);
  const cell = { width: Math.min(24, 99 / columns), height: rows > 1 ? Math.min(17, 99 / columns) : 20 };
  const head = (rows > 1 ? 1 : 2) * LINE + 4; // one row has room for the numbers of its chunks
  const card = { width: Math.max(columns * cell.width + 8, 54), height: head + rows * cell.height + 4 };
  const radius = { x: (WIDTH - card.width) / 2 - 2, y: (Math.max(60, 24 + 16 * ranks) * card.height) / 54 };
  const pair = start.length === 2; // one above the other, and what is said in the middle beside them
  const x0 = WIDTH * (pair ? 0.36 : 0.5);
  // A ring pressed against the sides, or eight cards would not fit beside and below each other.
  const bend = (value, power) => Math.sign(value) * Math.abs(value) ** power;
  const centres = start.map((_, node) => {
    const turn = (2 * Math.PI * node) / ranks;
    const x = x0 + radius.x * bend(Math.sin(turn), 0.5);
    if (node < ranks) return { x, y: -radius.y * bend(Math.cos(turn), 1.6) };
    return { x: x0, y: (node - (ranks + start.length - 1) / 2) * (card.height + 12) };
  });
  const top = Math.min(...centres.map(({ y }) => y)) - card.height / 2 - 6;
  for (const centre of centres) centre.y -= top;
  const height = Math.max(...centres.map(({ y }) => y)) + card.height / 2 + 6;
  const cellAt = (node, chunk) => ({
    x: centres[node].x + ((chunk % columns) - (columns - 1) / 2) * cell.width,
    y: centres[node].y - card.height / 2 + head + (Math.floor(chunk / columns) + 0.5) * cell.height,
  });
  const near = (a, b) => Math.max(a, b) < ranks && [1, ranks - 1].includes(Math.abs(a - b));
  return { centres, card, cell, cellAt, height, middle: -top, near, pair, numbered: rows === 1 };
}

/** The way from one card to another, neighbours round the outside; with cells, from cell to cell. */
function wayOf(plan, from, to, chunk) {
  const [a, b] = [plan.centres[from], plan.centres[to]];
  const bend = plan.pair ? 0.6 : 0.2; // so that the chips of two ranks do not meet
  const bow = { x: (a.x + b.x) / 2 + bend * (b.y - a.y), y: (a.y + b.y) / 2 - bend * (b.x - a.x) };
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

/** Points of the way from card to card that stay so far from both. */
function between(plan, from, to, far) {
  const inside = ({ x, y }, node) =>
    Math.abs(x - plan.centres[node].x) < plan.card.width / 2 + far.x &&
    Math.abs(y - plan.centres[node].y) < plan.card.height / 2 + far.y;
  const way = wayOf(plan, from, to);
  const points = [...Array(121).keys()].map((i) => way(i / 120));
  const free = points.filter((point) => !inside(point, from) && !inside(point, to));
  return free.length > 1 ? free : [way(0.45), way(0.55)];
}

function arrowOf(plan, from, to) {
  const line = between(plan, from, to, { x: 3, y: 3 });
  const [before, tip] = [line.at(-Math.min(5, line.length)), line.at(-1)];
  const angle = (Math.atan2(tip.y - before.y, tip.x - before.x) * 180) / Math.PI;
  const d = line.map(({ x, y }) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L");
  const head = { d: "M0 0L-7 4.5V-4.5z", transform: `translate(${tip.x} ${tip.y}) rotate(${angle})` };
  return svg("g", { class: "player-arrow" }, svg("path", { d: `M${d}` }), svg("path", head));
}

function chipOf(plan, [from, to, chunk, add], mask, short, outside) {
  const words = labelOf(chunk, add, mask, short);
  const width = 6.6 * words.length + 8;
  const box = { x: -width / 2, y: -9.5, width, height: 19, rx: add ? 9.5 : 2 };
  const chip = svg("g", { class: add ? "player-chip" : "player-chip player-copy" }, svg("rect", box));
  chip.append(svg("text", { y: 4 }, words));
  const line = outside && between(plan, from, to, { x: width / 2 - 4, y: 7 });
  const way = outside ? (t) => line[Math.round(t * (line.length - 1))] : wayOf(plan, from, to, chunk);
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
  const ring = [...arrows.keys()].every((pair) => plan.near(...pair.split(" ")));
  const [top, wide] = MIDDLE[trace.ranks] ?? [-26, 14];
  const x = plan.pair ? 0.82 * WIDTH : WIDTH / 2;
  const word = (y, name) => svg("text", { x, y: plan.middle + top + y, class: name });
  const middle = [word(0, "player-phase"), ...[15, 32, 45, 58, 71].map((y) => word(y, "player-how"))];
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

  function show(state, full, moves, done, how) {
    const marked = new Set(moves.map(([from, to, chunk]) => `${done ? to : from} ${chunk}`));
    state.forEach((row, node) =>
      row.forEach((mask, chunk) => {
        const { group, text } = cells[node][chunk];
        const share = members(mask).length / members(full[chunk]).length;
        group.setAttribute("class", "player-cell");
        group.classList.toggle("player-full", share === 1);
        group.classList.toggle(done ? "player-new" : "player-from", marked.has(`${node} ${chunk}`));
        group.style.setProperty("--share", share);
        text.textContent = members(mask).length;
      }),
    );
    const on = new Set(moves.map(([from, to]) => `${from} ${to}`));
    for (const [pair, arrow] of arrows) arrow.classList.toggle("player-on", on.has(pair));
    middle.forEach((text, i) => (text.textContent = how[i] ?? ""));
  }

  const crowded = (moves) => new Set(moves.map(([from, to]) => `${from} ${to}`)).size < moves.length;
  const isShort = (moves) =>
    trace.ranks > LONG || crowded(moves) || moves.length > 2 * plan.centres.length;
  function load(moves, state) {
    const outside = trace.ranks > LONG && !crowded(moves);
    const chip = (move) => chipOf(plan, move, state[move[0]][move[2]], isShort(moves), outside);
    chips.replaceChildren(...moves.map(chip));
  }
  const put = (t) => [...chips.children].forEach((chip) => chip.put(t));
  return { picture, show, load, put, isShort, wide };
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
  const [said, end] = [html("span"), html("span")];
  const words = html("p", { class: "player-words", "aria-live": "polite" }, said, end);
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
  const root = html("div", { class: "player drawn-root", role: "group" }, head, stage, controls, words, details);
  // JupyterLab would take the arrows up and down, which these two need, for its own shortcuts.
  for (const control of [range, select]) control.setAttribute("data-lm-suppress-shortcuts", "true");

  const under = () => (clock > 0 ? at + 1 : at); // the step that is shown, under way or done
  const total = () => trace.steps.length;

  function howOf(step, moves, before) {
    const [move] = moves;
    const kind = moves.some(([, , , add]) => add) ? "+ adds" : "= overwrites";
    const note = decoded(move, before[move[0]][move[2]], scene.isShort(moves), scene.wide);
    return [phaseOf(trace, step), kind, ...note];
  }

  /** A screen reader says whatever is written here: while playing nothing, and once where that ends. */
  function say(...sentences) {
    const again = words.getAttribute("aria-live") === "off" && !auto;
    words.setAttribute("aria-live", auto ? "off" : "polite");
    [said, end].forEach((span, i) => {
      if (again || span.textContent !== sentences[i]) span.textContent = sentences[i];
    });
  }

  function place() {
    const t = Math.max(clock, 0) / TRAVEL;
    scene.put(calm.matches ? 0.5 : t * t * (3 - 2 * t));
  }

  /** Everything that changes from state to state, not from frame to frame. */
  function show() {
    const step = under();
    const when = whereIn(trace, at, step);
    const done = at === step;
    const moves = step ? trace.steps[step - 1].moves : [];
    const before = states[Math.max(step - 1, 0)];
    const complete = done && states[at].every((row) => row.every((mask, chunk) => mask === full[chunk]));
    scene.show(states[at], full, moves, done, step ? howOf(step, moves, before) : []);
    scene.load(done ? [] : moves, before);
    place();
    const counts = states[at].map((row) => row.map((mask) => members(mask).length).join(" "));
    const rows = counts.map((row, node) => `${nameOf(trace, node)}: ${row}`).join("; ");
    scene.picture.setAttribute("aria-label", `${trace.name} ${when}. Contributions by chunk: ${rows}.`);
    table.show(states[at], done ? when : `before ${stepOf(trace, step)}`);
    const [where, sent] = headline(trace, at, step);
    head.replaceChildren(`${where} `, html("span", {}, sent));
    say(sentence(trace, step), complete ? " Now every chunk is complete." : "");
    range.value = at;
    range.setAttribute("aria-valuetext", when);
    play.lastChild.textContent = auto ? "Pause" : "Play";
    play.querySelector("path").setAttribute("d", ICONS[auto ? "Pause" : "Play"]);
  }

  function tick(now) {
    frame = 0;
    if (!el.isConnected) return;
    // A hidden tab gets no frames: what it missed is not made up for. And a frame may be stamped before the
    // press that asked for it: a clock that went back would say once more what came before.
    const before = under();
    clock += Math.min(Math.max(now - last, 0), 50);
    last = now;
    if (clock >= TRAVEL) {
      at += 1;
      clock = -REST;
      auto &&= at < total();
      if (!auto) clock = 0;
      show();
    } else if (under() !== before) show();
    place();
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
    if (at === total()) at = 0;
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
