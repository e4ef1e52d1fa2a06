// Curves and training: pick settings, compare them, on an axis of one's choice.

const DRAWN = 6;

// Which settings of a group are drawn, and in which look; both figures of a group share it.
class Picked {
  constructor(group) {
    this.group = group;
    this.look = new Map(group.settings.slice(0, DRAWN).map((_, number) => [number, number]));
    this.watchers = [];
    this.chosen = false;
  }

  // What a reader chose in another group stays chosen, by name.
  keep(other) {
    if (!other.chosen) return;
    const names = new Set(other.settings.map(([setting]) => setting.name));
    this.chosen = true;
    this.look.clear();
    this.group.settings.forEach((setting, number) => names.has(setting.name) && this.set(number, true));
  }

  set(number, on) {
    this.chosen = true;
    if (!on) this.look.delete(number);
    else if (!this.look.has(number)) {
      const taken = new Set(this.look.values());
      let free = 0;
      while (taken.has(free)) free++;
      this.look.set(number, free);
    }
  }

  all(numbers) {
    this.chosen = true;
    this.look = new Map(numbers.map((number, place) => [number, place]));
    this.tell();
  }

  tell() {
    this.watchers.forEach((watcher) => watcher());
  }

  // [setting, look], the best first.
  get settings() {
    return [...this.look].sort((one, other) => one[0] - other[0]).map(([number, look]) => [this.group.settings[number], look]);
  }
}

function picker(picked, kind) {
  const { group } = picked;
  const list = make("ul", {});
  const boxes = group.settings.map((setting, number) => {
    const box = make("input", { type: "checkbox", onchange: () => (picked.set(number, box.checked), picked.tell()) });
    const line = draw("path", { d: "M1 6L27 6" });
    const sample = draw("svg", { viewBox: "0 0 28 12", class: "sample", "aria-hidden": "true" }, line);
    const item = make("li", {}, make("label", {}, box, sample, make("span", {}, setting.name)));
    list.append(item);
    return { box, line, item, name: setting.name };
  });
  const show = () =>
    boxes.forEach(({ box, line }, number) => {
      box.checked = picked.look.has(number);
      line.setAttribute("class", looks(kind, picked.look.get(number) || 0));
    });
  picked.watchers.push(show);
  show();
  const tools = make("div", {}, button(`First ${Math.min(DRAWN, boxes.length)}`, () => picked.all(group.settings.slice(0, DRAWN).map((_, number) => number))));
  tools.append(button("None", () => picked.all([])));
  if (boxes.length > 2 * DRAWN) {
    tools.append(search("Filter ", (words) => boxes.forEach(({ item, name }) => (item.hidden = !matches(name, words)))));
  }
  const summary = make("summary", {}, `Pick settings (${boxes.length})`);
  return make("details", { class: "picker" }, summary, make("fieldset", {}, make("legend", { class: "heard" }, "Settings that are drawn"), tools, list));
}

const redraws = [];

// A place for a figure that is drawn anew when it changes, and when the page becomes wider or narrower.
function figureOf(title, name) {
  const picture = make("div", { class: "picture" });
  const caption = make("figcaption", {}, title);
  const drawn = () => picture.querySelector("svg");
  const keep = [
    button("SVG", () => save(`${name}.svg`, "image/svg+xml", drawingAlone(drawn()))),
    button("PNG", () => savePicture(`${name}.png`, drawn())),
  ];
  const note = make("p", { class: "faint" });
  const whole = make("figure", {}, caption, picture, note);
  return { whole, picture, caption, note, keep };
}

const onWidth = (place, show) => {
  redraws.splice(0, Infinity, ...redraws.filter((each) => each.place.isConnected), { place, show }); // not those of a page before
  let wide = 0;
  new ResizeObserver(() => {
    if (Math.abs(place.clientWidth - wide) < 2) return;
    wide = place.clientWidth;
    requestAnimationFrame(show);
  }).observe(place);
};

function curves(place, group, picked) {
  const [first, last] = [group.lengths[0], group.lengths[group.lengths.length - 1]];
  const state = { question: 0, scale: last > 20 * first ? "log" : "linear", measure: "exact", seeds: true, bands: true };
  const { whole, picture, caption, note, keep } = figureOf("", "accuracy");
  const hasTokens = group.settings.some((setting) => setting.series.some((series) => series.tokens));

  const linesOf = ([setting, look]) => {
    const series = setting.series[state.question];
    const exact = state.measure === "exact";
    const means = exact ? series.mean : series.tokens || [];
    const known = group.lengths.map((_, column) => column).filter((column) => Number.isInteger(means[column]));
    const at = (values) => known.filter((column) => values[column] !== null).map((column) => [group.lengths[column], values[column] / 1e4]);
    const tell = (point) => `${point[1].toFixed(3)} ${setting.name}`;
    const mean = { points: at(means), kind: "mean", look, label: setting.name, tell };
    if (exact && state.bands) mean.band = known.map((column) => [series.low[column] / 1e4, series.high[column] / 1e4]);
    const thin = exact && state.seeds && series.seeds.length > 1 ? series.each : [];
    return [...thin.map((each) => ({ points: at(each), kind: "seed", look })), mean];
  };

  const show = () => {
    const question = group.questions[state.question];
    const chance = group.lengths.map((length, column) => [length, question.chance[column]]).filter(([, value]) => value !== null);
    const level = { points: chance.map(([length, value]) => [length, value / 1e4]), kind: "level", look: 0, label: "chance", tell: ([, value]) => `${value.toFixed(3)} chance` };
    const lines = picked.settings.flatMap(linesOf);
    const what = state.measure === "exact" ? "accuracy" : "token accuracy";
    caption.textContent = `${question.title}: ${what} over length`;
    const counted = state.measure === "exact" || picked.settings.some(([setting]) => setting.series[state.question].tokens);
    note.textContent = !counted ? "Tokens of this question were not counted." : `${chance.length ? "Dotted: chance. " : ""}Thick: the mean over seeds. Thin: each seed. Band: Wilson's interval at 95 % over samples. Shaded: the training range.`;
    chart(picture, {
      title: `${caption.textContent}; ${picked.settings.length} settings. Arrow keys read the values.`,
      x: { low: first, high: last, log: state.scale === "log", marks: group.lengths, name: "length n" },
      y: { low: 0, high: 1, name: what },
      shade: [Math.max(group.trained[0], first), group.trained[1]],
      lines: [...lines, ...(chance.length && state.measure === "exact" ? [level] : [])],
    });
  };

  const set = (name) => (value) => {
    state[name] = name === "question" ? Number(value) : value;
    show();
  };
  const tools = make("div", { class: "tools" });
  if (group.questions.length > 1) tools.append(choice("Question", group.questions.map((each, number) => [number, each.title]), 0, set("question")));
  if (hasTokens) tools.append(choice("Right", [["exact", "whole answers"], ["tokens", "tokens"]], "exact", set("measure")));
  tools.append(
    choice("Lengths", [["log", "logarithmic"], ["linear", "linear"]], state.scale, set("scale")),
    tick("seeds", true, set("seeds")),
    tick("bands", true, set("bands")),
    ...keep,
  );
  place.replaceChildren(tools, whole, picker(picked, "mean"));
  picked.watchers.push(show);
  onWidth(picture, show);
}

function training(place, group, picked) {
  const state = { measure: "loss" };
  const { whole, picture, caption, note, keep } = figureOf("", "training");
  const MEASURES = { loss: "loss", accuracy: "accuracy, in the range and beyond", rates: "learning rate" };

  const linesOf = ([setting, look]) =>
    setting.courses.flatMap((course) => {
      const line = (points, far, what) => ({
        points,
        kind: far ? "run far" : "run",
        look,
        label: setting.name,
        tell: (point) => `${Number(point[1].toPrecision(3))} ${setting.name}, seed ${course.seed}${what}`,
      });
      if (state.measure !== "accuracy") return [line(course[state.measure].map(([step, value]) => [step, Math.max(value, 1e-9)]), false, "")];
      const shares = (points) => points.map(([step, value]) => [step, value / 1e4]);
      const [inside, beyond] = course.watched;
      return [line(shares(course.inside), false, `, n = ${inside}`), line(shares(course.beyond), true, `, n = ${beyond}`)];
    });

  const show = () => {
    const lines = picked.settings.flatMap(linesOf).filter((line) => line.points.length);
    caption.textContent = `Training: ${MEASURES[state.measure]} over steps`;
    if (!lines.length) {
      note.textContent = "Nothing to draw: the picked settings have no such numbers.";
      picture.replaceChildren();
      return;
    }
    const values = lines.flatMap((line) => line.points.map(([, value]) => value));
    const last = Math.max(...lines.map((line) => line.points[line.points.length - 1][0]));
    const strips = picked.settings.filter(([setting]) => setting.courses.some((course) => course.phases.some(([, off]) => off)));
    const [low, high] = [Math.min(...values), Math.max(...values)];
    chart(picture, {
      title: `${caption.textContent}; ${picked.settings.length} settings. Arrow keys read the values.`,
      x: { low: 0, high: last, name: "step" },
      y: state.measure === "accuracy" ? { low: 0, high: 1, name: "accuracy" } : { low, high: Math.max(high, low * 1.01), log: true, name: MEASURES[state.measure] },
      lines,
      strips: strips.slice(0, 8).map(([setting, look]) => ({ look, name: setting.name, parts: partsOf(setting.courses[0].phases) })),
    });
    note.textContent =
      "A line a seed." +
      (state.measure === "accuracy" ? " Solid: at the longest training length. Dashed: beyond it." : "") +
      (state.measure === "loss" ? " Each point is the mean of the log lines up to it." : "") +
      (strips.length ? " Bars on top: hollow while a part is off, filled once everything is on." : "");
  };

  const tools = make("div", { class: "tools" }, choice("Show", Object.entries(MEASURES), "loss", (value) => ((state.measure = value), show())), ...keep);
  place.replaceChildren(tools, whole, picker(picked, "run"));
  picked.watchers.push(show);
  onWidth(picture, show);
  return show;
}

const partsOf = (phases) => phases.map(([end, off], place) => [place ? phases[place - 1][0] : 0, end, off]);
