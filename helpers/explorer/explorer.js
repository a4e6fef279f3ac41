// The alpha-beta explorer. What it draws it computes itself, so it needs no kernel and no network.

// helpers/price.py once more, each formula cut in two: what the messages cost, and what the bytes cost.
const ring = {
  latency: (K, M, alpha) => 2 * (K - 1) * alpha,
  bandwidth: (K, M, alpha, B) => 2 * (K - 1) / K * M / B,
};

const ceilLog2 = (K) => 32 - Math.clz32(K - 1);
const binomialTree = {
  latency: (K, M, alpha) => 2 * ceilLog2(K) * alpha,
  bandwidth: (K, M, alpha, B) => 2 * ceilLog2(K) * M / B,
};

// P is the power of two below K; the ranks beyond it fold into the others first and hear the sum at the end.
const below = (K) => 2 ** (31 - Math.clz32(K));
const fold = (K) => (K === below(K) ? 0 : 2);
const halvingDoubling = {
  latency: (K, M, alpha) => (2 * Math.log2(below(K)) + fold(K)) * alpha,
  bandwidth: (K, M, alpha, B) => (2 * (below(K) - 1) / below(K) + fold(K)) * M / B,
};

const parameterServer = {
  latency: (K, M, alpha) => 2 * alpha,
  bandwidth: (K, M, alpha, B) => 2 * Math.max(M, K * M) / B,
};

const threshold = (K, alpha, B) => K * alpha * B;

const FORMULAS = {
  "ring-allreduce": ring,
  "halving-doubling-allreduce": halvingDoubling,
  "binomial-tree-allreduce": binomialTree,
  "parameter-server": parameterServer,
};

function price(algorithm, { ranks, message, alpha, bandwidth }) {
  const formula = FORMULAS[algorithm];
  const inMessages = formula.latency(ranks, message, alpha);
  const inBytes = formula.bandwidth(ranks, message, alpha, bandwidth);
  return { algorithm, latency: inMessages, bandwidth: inBytes, total: inMessages + inBytes };
}

// Numbers in words

const TIMES = [["days", 86400], ["h", 3600], ["s", 1], ["ms", 1e-3], ["µs", 1e-6], ["ns", 1e-9]];
const SIZES = [["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3], ["B", 1]];
const BINARY = [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]];
// In sentences four digits, but no third decimal; in the table four digits.
const SAID = { maximumSignificantDigits: 4, maximumFractionDigits: 2, roundingPriority: "lessPrecision" };
const LISTED = { minimumSignificantDigits: 4, maximumSignificantDigits: 4 };

const number = (value, digits = SAID) => value.toLocaleString("en", digits);
const unit = (value, units, digits) => {
  const [name, one] = units.find(([, one]) => value >= 0.99995 * one) ?? units.at(-1); // 1 ms, not 1,000 µs
  return `${number(value / one, digits)}\u00a0${name}`;
};
const time = (seconds, digits) => unit(seconds, TIMES, digits);
const size = (bytes) =>
  unit(bytes, BINARY.some(([, one]) => bytes % one === 0 && bytes / one < 1024) ? BINARY : SIZES);
const percent = (share) => {
  if (share > 0.9995) return "over 99.9\u00a0%";
  return share < 0.0005 ? "under 0.1\u00a0%" : `${(100 * share).toFixed(1)}\u00a0%`;
};

function sentences(at, prices, labels) {
  const chosen = prices.find((each) => each.algorithm === at.algorithm);
  const best = prices.reduce((a, b) => (b.total < a.total ? b : a));
  const onRing = at.algorithm === "ring-allreduce";
  const edge = onRing
    ? threshold(at.ranks, at.alpha, at.bandwidth)
    : at.message * chosen.latency / chosen.bandwidth; // only the second term grows, and with the message
  const named = onRing ? `M* = K·α·B = ${size(edge)}` : `${size(edge)}, where its two terms are equal`;
  const off = at.message / edge - 1;
  const side = Math.abs(off) < 1e-9 ? "Neither term rules: the message is at"
    : off < 0 ? "Latency rules: the message is below" : "Bandwidth rules: the message is above";
  const where = `${labels[at.algorithm]}, ${number(at.ranks, {})} ranks, ${size(at.message)}`;
  const lead = `${where}: ${time(chosen.total)}`;
  const rest = `, of which ${time(chosen.latency)} (${percent(chosen.latency / chosen.total)}) latency and `
    + `${time(chosen.bandwidth)} bandwidth. ${side} ${named}. `
    + (best.total === chosen.total ? "None of the four is faster here."
      : `Fastest here: ${labels[best.algorithm].toLowerCase()}, ${time(best.total)}.`);
  return { lead, rest, chosen, best };
}

// What the sliders stop at: round values, evenly spread on a log scale, and some values more.
const ROUND = [1, 1.1, 1.25, 1.4, 1.6, 1.8, 2, 2.25, 2.5, 2.8, 3.2, 3.6, 4, 4.5, 5, 5.6, 6.3, 7.1, 8, 9];
const stops = {
  // Parsed, not multiplied: 2e-5 has to be the very number that Python calls 2e-05.
  round: (power) => ROUND.map((digits) => Number(`${digits}e${power}`)),
  eighths: (power) => [0, 1, 2, 3, 4, 5, 6, 7].map((i) => Math.round(2 ** (power + i / 8))),
};
function scale([low, high], more, make) {
  const values = [low, high, ...more];
  for (let power = -7; power < 14; power++) values.push(...make(power));
  return [...new Set(values)].filter((v) => v >= low && v <= high).sort((a, b) => a - b);
}
const SLIDERS = {
  ranks: { label: "Ranks K", make: stops.eighths, say: (K) => `${number(K, {})}\u00a0ranks` },
  message: { label: "Message M", make: stops.round, say: size },
  alpha: { label: "Latency α of a message", make: stops.round, say: (alpha) => time(alpha) },
  bandwidth: { label: "Bandwidth B, one way", make: stops.round, say: (B) => `${number(B / 1e9)}\u00a0GB/s` },
};

// Elements

// Something to operate. JupyterLab would take arrows and Enter for itself, were it not for the attribute.
const operable = (tag, attributes, ...children) =>
  html(tag, { ...attributes, "data-lm-suppress-shortcuts": "true" }, ...children);
const text = (x, y, words, anchor = "start", kind = "") =>
  svg("text", { x, y, "text-anchor": anchor, class: kind }, words);
const line = (x1, y1, x2, y2, kind) => svg("line", { x1, y1, x2, y2, class: kind });
const curve = (algorithm, d) => svg("path", { d, class: "explorer-curve", "data-curve": algorithm });
const SAMPLE = { class: "explorer-sample", viewBox: "0 0 34 10", "aria-hidden": "true" };
const sample = (algorithm) => svg("svg", SAMPLE, curve(algorithm, "M0 5H34"));

// A slider over stops. Its label holds the input: no ids, so explorers may stand side by side.
function slider(name, values, change) {
  const { label, say } = SLIDERS[name];
  const input = operable("input", { type: "range", name, min: 0, max: values.length - 1, step: 1 });
  const said = html("span", { class: "explorer-value", "aria-hidden": "true" });
  input.addEventListener("input", () => change({ [name]: values[input.value] }));
  const show = (value) => {
    input.value = values.indexOf(value);
    said.textContent = say(value);
    input.setAttribute("aria-valuetext", said.textContent);
  };
  return { box: html("div", { class: "explorer-control" }, html("label", {}, label, input), said), show };
}

// The plot. Its range of seconds is fixed, so that a curve moves and not the axis. It has what networks do:
// the sliders also reach 0.2 µs, and 242 days for a server. There curves are cut, and an arrow says so.
const [FASTEST, SLOWEST] = [-6, 3]; // powers of ten
const SMALLEST = 3; // 1 kB, a hair below 1 KiB
const WIDE = 560; // pixels: from here on the curves carry their names, below it a legend does
const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

function frame(width, largest) {
  const wide = width >= WIDE;
  const [left, top, right, bottom] = [60, 28, width - (wide ? 134 : 10), wide ? 358 : 276];
  const along = (right - left) / (Math.log10(largest) - SMALLEST);
  const up = (bottom - top) / (SLOWEST - FASTEST);
  return {
    wide, width, left, top, right, bottom,
    x: (bytes) => left + along * (Math.log10(bytes) - SMALLEST),
    y: (seconds) => bottom - up * (Math.log10(seconds) - FASTEST),
    bytes: (x) => 10 ** (SMALLEST + (clamp(x, left, right) - left) / along),
  };
}

function axes({ wide, left, top, right, bottom, x, y, bytes }) {
  const parts = [text(2, 11, "time"), text(right, bottom + 37, "message size M", "end")];
  for (let power = SMALLEST; 10 ** power <= bytes(right); power++) {
    const at = x(10 ** power), major = power % 3 === 0;
    parts.push(line(at, top, at, bottom, major ? "explorer-grid" : "explorer-grid is-minor"));
    if (major || wide) parts.push(text(at, bottom + 17, unit(10 ** power, SIZES), "middle"));
  }
  for (let power = FASTEST; power <= SLOWEST; power++) {
    const at = y(10 ** power), major = power % 3 === 0;
    parts.push(line(left, at, right, at, major ? "explorer-grid" : "explorer-grid is-minor"));
    parts.push(text(left - 7, at + 4, unit(10 ** power, TIMES.slice(2), {}), "end"));
  }
  return parts;
}

function curves({ left, top, right, bottom, x, y, bytes }, at, prices) {
  const steps = Array.from({ length: 81 }, (_, i) => bytes(left + (right - left) * i / 80));
  const paths = prices.map(({ algorithm }) => {
    const points = steps.map((message) =>
      `${x(message).toFixed(1)} ${y(price(algorithm, { ...at, message }).total).toFixed(1)}`);
    const path = curve(algorithm, `M${points.join("L")}`);
    path.classList.toggle("is-chosen", algorithm === at.algorithm);
    return path;
  });
  paths.sort((a, b) => b.matches(".is-chosen") - a.matches(".is-chosen")); // thick below thin: both are seen
  const [width, height] = [right - left, bottom - top];
  const viewBox = `${left} ${top} ${width} ${height}`;
  return svg("svg", { x: left, y: top, width, height, viewBox }, ...paths); // cuts what lies outside
}

// The names at the right ends of the curves, moved apart where they would lie on each other.
function names({ right, top, bottom, y, bytes }, at, labels) {
  const message = bytes(right), gap = 16;
  const ends = Object.keys(labels).map((algorithm) => {
    const end = clamp(y(price(algorithm, { ...at, message }).total), top, bottom);
    return { algorithm, end, place: end };
  }).sort((a, b) => a.end - b.end);
  ends.forEach((each, i) => { if (i) each.place = Math.max(each.place, ends[i - 1].place + gap); });
  return ends.flatMap(({ algorithm, end, place }) => [
    line(right + 1, end, right + 10, place, "explorer-leader"),
    text(right + 13, place + 4, labels[algorithm], "start", algorithm === at.algorithm ? "is-chosen" : ""),
  ]);
}

// The ring's floor, and the message at which its two terms are equal: lines below the curves, words above.
function marks({ wide, left, top, right, bottom, x, y }, at) {
  const floor = ring.latency(at.ranks, 0, at.alpha), edge = threshold(at.ranks, at.alpha, at.bandwidth);
  const middle = clamp(x(edge), left, right), inside = middle === x(edge);
  const level = Math.min(y(floor), bottom), low = level < y(floor), both = y(2 * floor);
  const lines = low ? [] : [line(left, level, right, level, "explorer-mark")];
  if (inside) lines.push(line(middle, top, middle, bottom, "explorer-mark"));
  if (inside && both <= bottom)
    lines.push(svg("path", { d: `M${middle} ${both - 7}l7 7l-7 7l-7 -7z`, class: "explorer-edge" }));
  const late = middle > (left + right) / 2; // curves leave the corners top left and bottom right free
  const arrow = inside ? "" : late ? " →" : " ←";
  const named = `${wide ? "the ring’s two terms are equal at " : ""}M* = ${size(edge)}${arrow}`;
  const flat = (wide ? "ring’s latency floor 2(K − 1)α = " : "ring’s floor ") + time(floor)
    + (low ? " ↓" : "");
  const flatBelow = level + (level + 18 > bottom ? -9 : 15); // or above, if there is no room
  const words = late
    ? [text(middle - 7, bottom - 8, named, "end"), text(left + 6, level - 8, flat)]
    : [text(middle + 7, top + 14, named), text(right - 4, flatBelow, flat, "end")];
  return { lines, words };
}

// The reader's point. Its words stand above the plot, where no curve can run through them.
function point({ left, top, right, bottom, x, y }, at, { total }) {
  const px = x(at.message), level = y(total), py = clamp(level, top, bottom);
  const words = `${size(at.message)}: ${time(total)}${level < top ? " ↑" : level > bottom ? " ↓" : ""}`;
  const place = clamp(px, left + 54, right - 54);
  return [
    line(px, top - 5, px, bottom, "explorer-cross"),
    line(left, py, right, py, "explorer-cross"),
    svg("circle", { cx: px, cy: py, r: 6, class: "explorer-point" }),
    text(place, top - 10, words, "middle", "is-chosen"),
  ];
}

function draw(f, at, prices, labels, chosen) {
  const { lines, words } = marks(f, at);
  const ends = f.wide ? names(f, at, labels) : [];
  const [down, across, ...dot] = point(f, at, chosen);
  return [...axes(f), ...lines, curves(f, at, prices), ...ends, down, across, ...words, ...dot];
}

// What makes a single server look good where messages are small.
const ALONE = "parameter-server";
const NOTE = "* The server’s messages arrive together, for one α; a real server takes them one by one.";

function table(labels) {
  const head = ["Algorithm", "Latency", "Bandwidth", "Total", "× best"];
  const rows = Object.keys(labels).map((algorithm) => {
    const cells = head.slice(1).map(() => html("td"));
    const name = html("th", { scope: "row" }, sample(algorithm),
      labels[algorithm] + (algorithm === ALONE ? "*" : ""));
    return { algorithm, cells, row: html("tr", { "data-algorithm": algorithm }, name, ...cells) };
  });
  const top = html("tr", {}, ...head.map((words) => html("th", { scope: "col" }, words)));
  const box = html("table", { class: "explorer-table" },
    html("thead", {}, top), html("tbody", {}, ...rows.map(({ row }) => row)));
  const show = (prices, chosen, best) => rows.forEach(({ row, cells }, i) => {
    const { latency, bandwidth, total } = prices[i];
    [latency, bandwidth, total].forEach((seconds, j) => {
      cells[j].textContent = time(seconds, LISTED).replace("\u00a0", " "); // may break on a phone
      cells[j].dataset.seconds = seconds; // all digits, for whoever wants them, and for the tests
    });
    cells[3].textContent = number(total / best.total, LISTED);
    row.classList.toggle("is-chosen", prices[i] === chosen);
  });
  return { box, note: html("p", { class: "explorer-note" }, NOTE), show };
}

function render({ model, el }) {
  const { start, limits, labels, presets } = model.get("state");
  let at = start, width = 0, calm;
  const button = (words, change) => {
    const made = operable("button", { type: "button" }, words);
    made.addEventListener("click", () => set(change));
    return made;
  };
  const values = (name, ...more) => scale(limits[name], [start[name], ...more], SLIDERS[name].make);
  const messages = values("message", ...Object.values(presets));
  const sliders = Object.keys(SLIDERS).map((name) =>
    [name, slider(name, name === "message" ? messages : values(name), (change) => set(change))]);
  const select = operable("select", { name: "algorithm" },
    ...Object.entries(labels).map(([value, words]) => html("option", { value }, words)));
  select.addEventListener("change", () => set({ algorithm: select.value }));

  const picture = svg("svg", { class: "explorer-plot", role: "img" });
  const readout = html("p", { class: "explorer-readout", "aria-live": "polite", "aria-atomic": "true" });
  const terms = table(labels);
  const legend = html("div", { class: "explorer-legend", "aria-hidden": "true" },
    ...Object.entries(labels).map(([algorithm, words]) => html("span", {}, sample(algorithm), words)));
  const ruler = html("div"); // as wide as the plot may be, and never higher: drawing does not change it
  const root = html("div", { class: "explorer drawn-root", role: "group", "aria-label": "Alpha-beta explorer" },
    ruler, legend, picture,
    html("div", { class: "explorer-controls" },
      html("div", { class: "explorer-row" }, html("label", {}, "Algorithm", select), button("Reset", start)),
      ...sliders.map(([, { box }]) => box),
      html("div", { class: "explorer-row", role: "group", "aria-label": "Set M to" }, "Set M to",
        ...Object.entries(presets).map(([words, message]) => button(words, { message })))),
    readout, terms.box, terms.note);

  function show() {
    const prices = Object.keys(labels).map((algorithm) => price(algorithm, at));
    const { lead, rest, chosen, best } = sentences(at, prices, labels);
    Object.assign(root.dataset, at);
    for (const [name, { show: move }] of sliders) move(at[name]);
    select.value = at.algorithm;
    readout.replaceChildren(html("strong", { "data-seconds": chosen.total }, lead), rest);
    terms.show(prices, chosen, best);
    picture.setAttribute("aria-label", `Time against message size, both on log scales. ${lead}${rest}`);
    if (!width) return; // not laid out yet: the observer calls again
    const f = frame(width, limits.message[1]);
    root.classList.toggle("is-wide", f.wide);
    fill(picture, { viewBox: `0 0 ${width} ${f.bottom + 44}` }, []);
    picture.replaceChildren(...draw(f, at, prices, labels, chosen));
  }

  function set(change) {
    at = { ...at, ...change };
    readout.setAttribute("aria-busy", "true"); // a screen reader waits until the slider rests
    clearTimeout(calm);
    calm = setTimeout(() => readout.removeAttribute("aria-busy"), 400);
    show();
  }

  // In the plot a pointer moves the message; from the keyboard its slider does.
  function pointAt(event) {
    if (event.type === "pointermove" && !event.buttons) return;
    const bytes = frame(width, limits.message[1]).bytes(event.clientX - picture.getBoundingClientRect().left);
    const off = (value) => Math.abs(Math.log(value / bytes));
    set({ message: messages.reduce((best, value) => (off(value) < off(best) ? value : best)) });
  }
  for (const kind of ["pointerdown", "pointermove"]) picture.addEventListener(kind, pointAt);

  const observer = new ResizeObserver(([{ contentRect }]) => {
    width = Math.round(contentRect.width);
    show();
  });
  show();
  el.append(root);
  observer.observe(ruler);
  return () => observer.disconnect();
}

export default { render };
