// Puts it together: what was written into the page stays as it is wherever something is missing.

function rules(place, data, group) {
  const table = place.querySelector("table");
  const rows = [...table.tBodies[0].rows];
  const show = (column) => {
    group.rules[column].forEach((values, row) => values.forEach((value, rule) => (rows[row].cells[rule + 1].textContent = share(value, 3))));
    const gaps = group.flattery[column];
    gaps.forEach((gap, rule) => (rows[rows.length - 1].cells[rule + 1].textContent = gap === null ? "–" : `${gap < 0 ? "−" : "+"}${share(Math.abs(gap), 3)}`));
    const apart = group.several ? (column === group.telling ? ", where the best seed and the mean are furthest apart" : "") : "; of one seed all rules are one";
    said.textContent = `Accuracy at n = ${group.lengths[column]}${apart}.`;
  };
  const said = place.querySelector("p");
  const lengths = group.lengths.map((length, number) => [number, `n=${length}`]);
  said.after(make("div", { class: "tools" }, choice("Length", lengths, group.telling, (value) => show(Number(value)))));
}

function themes() {
  const root = document.documentElement;
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const turn = button("", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    name();
  });
  const name = () => (turn.textContent = dark() ? "Light" : "Dark");
  turn.className = "theme";
  name();
  document.querySelector("header").prepend(turn);
}

function copies() {
  for (const text of document.querySelectorAll("pre.copied")) {
    const turn = button("Copy", () => copyText(text.textContent, () => ((turn.textContent = "Copied"), (heard.textContent = "copied"))));
    text.after(turn);
  }
}

// What is folded is printed, too, but for the table of every run; the theme on paper is light.
function printing() {
  let folded = [];
  let theme;
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("#tasks details:not([open])")];
    folded.forEach((each) => (each.open = true));
    paper = 700;
    redraws.forEach(({ show }) => show());
    theme = document.documentElement.dataset.theme;
    document.documentElement.dataset.theme = "light";
  });
  addEventListener("afterprint", () => {
    folded.forEach((each) => (each.open = false));
    paper = 0;
    redraws.forEach(({ show }) => show());
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
  });
}

// What the data says, in the sections that are there; returns what is picked. `before`: what was picked in a page before this.
function build(data, before = []) {
  return data.groups.map((group, number) => {
    const picked = new Picked(group);
    const alike = before.find((other) => other.group.title === group.title);
    if (alike) picked.keep(alike);
    const within = (section) => document.querySelector(`#${section} [data-group="${number}"]`);
    overview(within("overview"), group, data.good);
    curves(within("curves").querySelector(".curves"), group, picked);
    const course = within("training");
    if (course) training(course.querySelector(".courses"), group, picked);
    rules(within("selection"), data, group);
    return picked;
  });
}

function start() {
  document.documentElement.classList.add("live");
  document.body.append(tip, heard);
  themes();
  copies();
  printing();
  return build(JSON.parse(document.getElementById("data").textContent));
}

let pickings = start();
