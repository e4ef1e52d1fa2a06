// The overview: sort, filter, group; every seed of a cell under the pointer or the keyboard's focus.

const SHADES = 20;

const shadeOf = (value, good) => `s${Math.floor((value / 1e4) * SHADES + 1e-9)}${value / 1e4 > good ? " good" : ""}`;

function barOf(reach, lengths) {
  const [first, last] = [Math.log(lengths[0]), Math.log(lengths[lengths.length - 1])];
  const wide = reach ? 15 + 85 * (last > first ? (Math.log(reach) - first) / (last - first) : 1) : 0;
  const bar = draw("rect", { width: wide, height: 10 });
  return draw("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" }, bar);
}

function overview(place, group, good) {
  const state = { question: 0, sort: "rank", words: "", by: "" };
  const table = place.querySelector("table.heat");
  const beyond = group.lengths.findIndex((length) => length > group.trained[1]);

  const cellOf = (setting, series, column) => {
    const edge = column === beyond ? " edge" : "";
    if (series.mean[column] === null) return make("td", { class: `none${edge}` }, "–");
    const small = make("small", {}, `${share(series.low[column])}–${share(series.high[column])}`);
    const cell = make("td", { class: shadeOf(series.mean[column], good) + edge, tabindex: -1 }, share(series.mean[column]), small);
    cell.told = () => [
      `${setting.name}, n = ${group.lengths[column]}`,
      [
        ...series.seeds.map((seed, row) => `seed ${seed}: ${share(series.each[row][column], 3)}`),
        `mean ${share(series.mean[column], 3)}, interval ${share(series.low[column], 3)}–${share(series.high[column], 3)}`,
        `${series.samples[column].toLocaleString("en")} samples${series.tokens ? `, tokens ${share(series.tokens[column], 3)}` : ""}`,
      ],
    ];
    return cell;
  };

  const rowOf = (setting) => {
    const series = setting.series[state.question];
    const reach = make("td", { class: "reach" }, barOf(series.reach, group.lengths), make("span", {}, series.reach ? String(series.reach) : "–"));
    const cells = group.lengths.map((_, column) => cellOf(setting, series, column));
    return make("tr", {}, make("th", { scope: "row" }, setting.name), reach, ...cells);
  };

  const key = (setting) => {
    const series = setting.series[state.question];
    if (state.sort === "rank") return state.question ? -series.reach : 0;
    return -(series.mean[Number(state.sort)] ?? -1);
  };

  const show = () => {
    const chosen = group.settings.filter((setting) => matches(`${setting.name} ${setting.values.join(" ")}`, state.words));
    if (state.sort === "name") chosen.sort((one, other) => one.name.localeCompare(other.name, "en", { numeric: true }));
    else chosen.sort((one, other) => key(one) - key(other));
    const column = group.columns.indexOf(state.by);
    const parts = new Map();
    for (const setting of chosen) {
      const value = column < 0 ? "" : setting.values[column];
      parts.set(value, [...(parts.get(value) || []), setting]);
    }
    const rows = [...parts].flatMap(([value, settings]) => {
      const head = make("th", { scope: "rowgroup" }, `${state.by}: ${value}`);
      const named = make("tr", { class: "part" }, head, make("td", { colspan: group.lengths.length + 1 }));
      return [...(column < 0 ? [] : [named]), ...settings.map(rowOf)];
    });
    table.tBodies[0].replaceChildren(...rows);
    table.caption.textContent = `${group.questions[state.question].title}: accuracy by length`;
    const cell = table.querySelector("tbody td[tabindex]");
    if (cell) cell.tabIndex = 0;
    heard.textContent = `${chosen.length} settings`;
  };

  const set = (name) => (value) => {
    state[name] = name === "question" ? Number(value) : value;
    show();
  };
  const tools = make("div", { class: "tools" });
  if (group.questions.length > 1) tools.append(choice("Question", group.questions.map((each, number) => [number, each.title]), 0, set("question")));
  if (group.settings.length > 1) {
    const lengths = group.lengths.map((length, number) => [number, `n=${length}`]);
    tools.append(
      choice("Sort by", [["rank", "reach"], ["name", "name"], ...lengths], "rank", set("sort")),
      choice("Group by", [["", "nothing"], ...group.columns.map((column) => [column, column])], "", set("by")),
      search("Filter", set("words")),
    );
  }
  tools.append(button("CSV", () => save("accuracy.csv", "text/csv", tableOf(group))));
  place.querySelector(".heat-map").before(tools);
  place.querySelectorAll(".other").forEach((each) => each.remove()); // the control shows them
  tipsOf(table);
  moves(table);
  show();
  heard.textContent = "";
}

function tipsOf(table) {
  const tell = (event, speak) => {
    const cell = event.target.closest("td");
    if (!cell || !cell.told) return hideTip();
    const [title, lines] = cell.told();
    const box = cell.getBoundingClientRect();
    showTip(title, lines, box.left, box.bottom - 8);
    if (speak) heard.textContent = `${title}: ${lines.join("; ")}`;
  };
  table.addEventListener("pointerover", (event) => tell(event, false));
  table.addEventListener("pointerleave", hideTip);
  table.addEventListener("focusin", (event) => tell(event, true));
  table.addEventListener("focusout", hideTip);
}

// One cell is reached by Tab, the others by arrow keys.
function moves(table) {
  const steps = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
  table.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hideTip();
    const cell = event.target.closest("td[tabindex]");
    if (!steps[event.key] || !cell) return;
    event.preventDefault();
    const [down, right] = steps[event.key];
    const rows = [...table.tBodies[0].rows].filter((row) => row.querySelector("td[tabindex]"));
    const row = rows[rows.indexOf(cell.parentElement) + down];
    const next = row && row.cells[cell.cellIndex + right];
    if (!next || !next.hasAttribute("tabindex")) return;
    cell.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
}

function tableOf(group) {
  const quoted = (value) => (/[",\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
  const lines = [["setting", ...group.columns, "question", "length", "seed", "accuracy", "mean", "low", "high", "samples"]];
  for (const setting of group.settings) {
    setting.series.forEach((series, question) => {
      group.lengths.forEach((length, column) => {
        series.seeds.forEach((seed, row) => {
          if (series.each[row][column] === null) return;
          const numbers = [series.each[row], series.mean, series.low, series.high].map((each) => share(each[column], 4));
          const name = group.questions[question].name;
          lines.push([setting.name, ...setting.values, name, length, seed, ...numbers, series.samples[column]]);
        });
      });
    });
  }
  return lines.map((line) => line.map(quoted).join(",")).join("\n") + "\n";
}
