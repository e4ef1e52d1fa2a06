// A line chart in SVG, as wide as its place; pointer or arrow keys read the values at a point.

const COLOURS = 7;
const DASHES = 4;
const HIGH = 330;
const EDGE = { left: 54, right: 16, top: 32, bottom: 44 };
const APART = 36;
const MOST_KEYS = 16;
let paper = 0; // the width on paper, while the page is printed

const looks = (kind, look) => `${kind} c${look % COLOURS} d${look % DASHES}`;
const written = (value) => (Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(4))));

function axis({ low, high, log }, start, end) {
  const on = (value) => (log ? Math.log10(value) : value);
  const span = on(high) - on(low) || 1;
  return (value) => start + ((on(value) - on(low)) / span) * (end - start);
}

function ticks({ low, high, log }) {
  if (log) {
    const powers = [];
    for (let power = Math.ceil(Math.log10(low) - 1e-9); power <= Math.log10(high) + 1e-9; power++) powers.push(10 ** power);
    return powers.length > 1 ? powers : [low, high];
  }
  const rough = (high - low) / 5 || 1;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * [1, 2, 5, 10].find((times) => unit * times >= rough * 0.999);
  const found = [];
  for (let number = Math.ceil(low / step - 1e-9); number * step <= high * (1 + 1e-9); number++) found.push(number * step);
  return found;
}

const path = (points) => (points.length ? "M" + points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L") : "M0 0");

// `lines`: {points, kind, look, label, band, quiet}. `strips`: {look, name, parts: [[start, end, off]]}.
function chart(host, spec) {
  const wide = paper || Math.max(340, Math.round(host.clientWidth || 760));
  const strips = spec.strips || [];
  const top = EDGE.top + strips.length * 9;
  const keys = spec.lines.filter((line, place) => line.label && spec.lines.findIndex((other) => other.label === line.label) === place);
  const room = keys.length <= MOST_KEYS ? keys.length * 17 : 0;
  const high = HIGH + strips.length * 9;
  const x = axis(spec.x, EDGE.left, wide - EDGE.right);
  const y = axis(spec.y, high - EDGE.bottom, top);
  const drawing = draw("svg", { class: "chart", viewBox: `0 0 ${wide} ${high + room}`, role: "img", tabindex: 0, "aria-label": spec.title });
  if (spec.shade) {
    const [start, end] = spec.shade.map((value) => Math.min(Math.max(x(value), EDGE.left), wide - EDGE.right));
    drawing.append(
      draw("rect", { class: "shade", x: start, y: top, width: end - start, height: high - EDGE.bottom - top }),
      draw("text", { class: "faint", x: start, y: top - 5 }, "trained"),
    );
  }
  frame(drawing, spec, x, y, wide, high);
  strips.forEach((strip, place) => drawing.append(...stripOf(strip, x, EDGE.top - 8 + place * 9)));
  for (const { points, band, look } of spec.lines) {
    if (!band) continue;
    const lows = points.map(([at], place) => [x(at), y(band[place][0])]);
    const highs = points.map(([at], place) => [x(at), y(band[place][1])]);
    drawing.append(draw("path", { class: looks("band", look), d: `${path([...lows, ...highs.reverse()])}Z` }));
  }
  for (const { points, kind, look } of spec.lines) {
    const at = points.map(([here, value]) => [x(here), y(value)]);
    drawing.append(draw("path", { class: kind === "level" ? kind : looks(kind, look), d: path(at) }));
    if (kind === "mean" || (kind.startsWith("run") && at.length <= 12)) at.forEach(([cx, cy]) => drawing.append(draw("circle", { class: `dot c${look % COLOURS}`, cx, cy, r: kind === "mean" ? 3 : 2 })));
  }
  if (room) keys.forEach((line, place) => drawing.append(...keyOf(line, wide, high + 8 + place * 17)));
  readable(drawing, spec, x, wide, top, high);
  host.replaceChildren(drawing);
  return drawing;
}

function frame(drawing, spec, x, y, wide, high) {
  for (const value of ticks(spec.y)) {
    drawing.append(
      draw("line", { class: "rule", x1: EDGE.left, x2: wide - EDGE.right, y1: y(value), y2: y(value) }),
      draw("text", { class: "tick end", x: EDGE.left - 8, y: y(value) + 4 }, written(value)),
    );
  }
  let before = -APART;
  for (const value of spec.x.marks || ticks(spec.x)) {
    const place = x(value);
    drawing.append(draw("line", { class: "rule", x1: place, x2: place, y1: high - EDGE.bottom, y2: high - EDGE.bottom + 4 }));
    if (place - before < APART) continue;
    drawing.append(draw("text", { class: "tick middle", x: place, y: high - EDGE.bottom + 18 }, written(value)));
    before = place;
  }
  drawing.append(
    draw("text", { class: "name end", x: wide - EDGE.right, y: high - 6 }, spec.x.name),
    draw("text", { class: "name", x: 6, y: 11 }, spec.y.name),
  );
}

// Which line is which, below the axis: it goes along where the drawing is printed or kept.
function keyOf({ kind, look, label }, wide, top) {
  const letters = Math.floor((wide - 110) / 6.6);
  const text = label.length > letters ? `${label.slice(0, letters - 1)}…` : label;
  const line = draw("path", { class: kind === "level" ? kind : looks(kind.split(" ")[0], look), d: `M${EDGE.left} ${top}l26 0` });
  return [line, draw("text", { x: EDGE.left + 34, y: top + 4 }, text)];
}

// When something was off: hollow; when everything was on: filled.
function stripOf({ look, name, parts }, x, top) {
  return parts.map(([start, end, off]) =>
    draw(
      "rect",
      { class: `strip c${look % COLOURS}${off ? " off" : ""}`, x: x(start), y: top, width: Math.max(0, x(end) - x(start)), height: 5 },
      draw("title", {}, `${name}, steps ${written(start)} to ${written(end)}: ${off ? `${off} off` : "everything on"}`),
    ),
  );
}

// What every line says at the point that is nearest to the pointer, or that arrow keys have come to.
function readable(drawing, spec, x, wide, top, high) {
  const told = spec.lines.filter((line) => line.label && !line.quiet);
  const places = [...new Set(told.flatMap((line) => line.points.map(([at]) => at)))].sort((one, other) => one - other);
  if (!places.length) return;
  const cursor = draw("line", { class: "cursor", y1: top, y2: high - EDGE.bottom, visibility: "hidden" });
  drawing.append(cursor);
  let here = -1;
  const read = (place, speak) => {
    here = place;
    const at = places[place];
    cursor.setAttribute("x1", x(at));
    cursor.setAttribute("x2", x(at));
    cursor.setAttribute("visibility", "visible");
    const values = told.flatMap((line) => line.points.filter(([step]) => step === at).map((point) => [point, line]));
    const lines = values.sort((one, other) => other[0][1] - one[0][1]).map(([point, line]) => line.tell(point));
    const shown = lines.length > 14 ? [...lines.slice(0, 13), `and ${lines.length - 13} more`] : lines;
    const box = drawing.getBoundingClientRect();
    showTip(`${spec.x.name} = ${written(at)}`, shown, box.left + (x(at) / wide) * box.width, box.top + 0.3 * box.height);
    if (speak) heard.textContent = `${spec.x.name} ${written(at)}: ${shown.join("; ")}`;
  };
  drawing.addEventListener("pointermove", (event) => {
    const box = drawing.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * wide;
    const gaps = places.map((place) => Math.abs(x(place) - at));
    read(gaps.indexOf(Math.min(...gaps)), false);
  });
  const leave = () => {
    cursor.setAttribute("visibility", "hidden");
    hideTip();
  };
  drawing.addEventListener("pointerleave", leave);
  drawing.addEventListener("blur", leave);
  drawing.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "Escape") leave();
    if (!step) return;
    event.preventDefault();
    read(Math.min(Math.max(here + step, 0), places.length - 1), true);
  });
}
