// The page where it is served: runs under way on top, told by events; what is finished is fetched anew when there is more of it.

const ORDER = ["training", "measuring", "waiting", "stopped", "failed"];
const SIGNS = { training: "▶", measuring: "▶", waiting: "…", stopped: "■", failed: "✕" };
const now = document.getElementById("now");
const told = make("p", { role: "status" }, "Connecting.");
const list = make("tbody", {});
const figures = make("div", { class: "courses" });
const under = { runs: new Map(), rows: new Map(), settings: [], picked: new Picked({ settings: [] }), changed: new Set(), frame: 0, anew: false };
const server = { state: { version: "", reading: true, problem: "" }, connected: false, shown: document.querySelector("meta[name=version]").content };
const numbers = new Intl.NumberFormat("en"); // made once: toLocaleString makes one at every call
const COLUMNS = ["run", "task", "model", "training", "seed", "state", "step", "loss", "in range", "beyond", "left"];

const nameOf = (run) => [run.model, run.training, `seed ${run.seed}`, run.run.slice(0, 6)].filter(Boolean).join(", ");
const shareOf = (found) => (found ? `${found[1].toFixed(3)} at n=${found[0]}` : "–");

function cellsOf(run) {
  const steps = run.steps ? `${numbers.format(run.step)} of ${numbers.format(run.steps)}` : numbers.format(run.step);
  const state = `${SIGNS[run.state] || ""} ${run.state}${run.off && run.state === "training" ? `, ${run.off} off` : ""}`;
  const loss = run.loss === null ? "–" : String(run.loss);
  return [run.run, run.task, run.model, run.training, run.seed, state, steps, loss, shareOf(run.inside), shareOf(run.beyond), run.reason || run.left || "–"];
}

// Only what differs is set: most of a table stays as it is.
function fillRow(row, run) {
  row.className = run.state;
  cellsOf(run).forEach((text, place) => {
    const node = row.cells[place].firstChild;
    if (node.data !== text) node.data = text;
  });
  const bar = row.cells[6].querySelector("progress");
  bar.hidden = !run.steps;
  if (run.steps) [bar.max, bar.value] = [run.steps, Math.min(run.step, run.steps)];
}

function rowFor(run) {
  const row = make("tr", {}, ...COLUMNS.map(() => make("td", {}, document.createTextNode(""))));
  row.cells[6].append(make("progress", { "aria-label": "steps" }));
  fillRow(row, run);
  return row;
}

function tell() {
  const counts = ORDER.map((state) => [[...under.runs.values()].filter((run) => run.state === state).length, state]).filter(([count]) => count);
  const runs = counts.length ? counts.map(([count, state]) => `${count} ${state}`).join(", ") : "No run is under way";
  const text = !server.connected
    ? "Not connected: what is shown is the last that was heard. Trying again."
    : `Live. ${runs}.${server.state.reading ? " Still reading." : ""}${server.state.problem ? ` Trouble: ${server.state.problem}` : ""}`;
  if (told.textContent !== text) told.textContent = text;
}

// The table and its figure for another set of runs, or in another order.
function listAnew() {
  const sorted = [...under.runs].sort(([, one], [, other]) => ORDER.indexOf(one.state) - ORDER.indexOf(other.state));
  under.rows = new Map(sorted.map(([number, run]) => [number, under.rows.get(number) || rowFor(run)]));
  list.replaceChildren(...under.rows.values());
  list.closest(".scroll").hidden = !sorted.length;
  const picked = new Picked({ settings: sorted.map(([number, run]) => ({ name: nameOf(run), courses: [run.course], run: number })) });
  picked.keep(under.picked);
  const open = figures.querySelector("details[open]");
  under.picked = picked;
  if (!sorted.length) figures.replaceChildren();
  else {
    under.redraw = training(figures, picked.group, picked);
    figures.querySelector("details").open = Boolean(open);
  }
}

// Once a frame, and only what is new: the rows of runs that changed, and the figure if one of them is drawn in it.
function later(anew) {
  under.anew ||= anew;
  under.frame ||= requestAnimationFrame(() => {
    const whole = under.anew;
    const changed = [...under.changed];
    under.frame = 0;
    under.anew = false;
    under.changed.clear();
    if (whole) listAnew();
    for (const number of changed) if (under.rows.has(number)) fillRow(under.rows.get(number), under.runs.get(number));
    const drawn = new Set(under.picked.settings.map(([setting]) => setting.run));
    if (!whole && changed.some((number) => drawn.has(number))) under.redraw();
    tell();
  });
}

// Whether the set of runs, or their order, is another now.
function apply(number, patch) {
  const run = under.runs.get(number);
  under.changed.add(number);
  if (!run) return under.runs.set(number, patch), true;
  const { lines, course, ...fields } = patch;
  const moved = "state" in fields && fields.state !== run.state;
  Object.assign(run, fields);
  Object.assign(run.course, course || {});
  for (const [name, [kept, added]] of Object.entries(lines || {})) run.course[name].splice(kept, Infinity, ...added);
  return moved;
}

function hear({ runs, gone, ...state }) {
  Object.assign(server.state, state);
  let anew = false;
  for (const [number, patch] of Object.entries(runs || {})) anew = apply(number, patch) || anew;
  for (const number of gone || []) anew = under.runs.delete(number) || anew;
  later(anew);
  if (server.state.version && server.state.version !== server.shown) fetchAnew();
}

// Controls are where they were before the page was made anew.
const CONTROLS = "main > section:not(#now) .tools :is(select, input)";
const wordsOf = (control) => [...control.closest("label").childNodes].find((node) => node.nodeType === Node.TEXT_NODE).data;
const placeOf = (control) => [control.closest("section").id, control.closest("[data-group]")?.dataset.group, wordsOf(control)].join("|");
const foldOf = (fold) => `${fold.closest("section").id}|${fold.querySelector("summary").textContent}`;

function remembered() {
  const controls = [...document.querySelectorAll(CONTROLS)];
  return {
    values: new Map(controls.map((control) => [placeOf(control), control.type === "checkbox" ? control.checked : control.value])),
    open: new Set([...document.querySelectorAll("main details[open]")].map(foldOf)),
    focus: controls.includes(document.activeElement) ? placeOf(document.activeElement) : null,
    top: scrollY,
  };
}

function restore(before) {
  for (const control of document.querySelectorAll(CONTROLS)) {
    const key = placeOf(control);
    const value = before.values.get(key);
    const box = control.type === "checkbox";
    if (value !== undefined && value !== (box ? control.checked : control.value)) {
      if (box) control.checked = value;
      else control.value = value;
      if (!box && control.value !== value) control.selectedIndex = 0; // what was chosen is gone
      else control.dispatchEvent(new Event(control.type === "search" ? "input" : "change"));
    }
    if (key === before.focus) control.focus({ preventScroll: true });
  }
  for (const fold of document.querySelectorAll("main details")) if (before.open.has(foldOf(fold))) fold.open = true;
  scrollTo({ top: before.top, behavior: "instant" });
}

async function fetchAnew() {
  if (server.fetching) return;
  server.fetching = true;
  try {
    const made = new DOMParser().parseFromString(await (await fetch("./")).text(), "text/html");
    const before = remembered();
    while (now.nextSibling) now.nextSibling.remove();
    now.after(...[...made.querySelectorAll("main > section")].filter((section) => section.id !== "now"));
    for (const part of ["header p", "header nav"]) document.querySelector(part).replaceWith(made.querySelector(part));
    pickings = build(JSON.parse(made.getElementById("data").textContent), pickings);
    copies();
    restore(before);
    server.shown = made.querySelector("meta[name=version]").content;
  } catch {
    server.shown = ""; // the server is gone for now: its next event leads here again
  } finally {
    server.fetching = false;
  }
}

function listen() {
  const source = new EventSource("events");
  source.addEventListener("open", () => ((server.connected = true), tell()));
  source.addEventListener("error", () => {
    server.connected = false;
    tell();
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, 2000);
  });
  source.addEventListener("all", (event) => {
    under.runs.clear();
    under.rows.clear();
    hear(JSON.parse(event.data));
    later(true);
  });
  source.addEventListener("patch", (event) => hear(JSON.parse(event.data)));
}

const scroll = make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "runs under way", hidden: true });
scroll.append(make("table", {}, make("thead", {}, make("tr", {}, ...COLUMNS.map((name) => make("th", { scope: "col" }, name)))), list));
now.querySelector("p").replaceWith(told, scroll, figures);
listen();
