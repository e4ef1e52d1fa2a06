// Elements, controls, files and the tip. Whatever is shown is set as text: no name can become markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const make = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
const draw = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

const share = (value, digits = 2) => (value === null || value === undefined ? "–" : (value / 1e4).toFixed(digits));

function choice(label, options, chosen, change) {
  const select = make("select", { onchange: () => change(select.value) });
  for (const [value, text] of options) select.append(make("option", { value }, text));
  select.value = chosen;
  return make("label", {}, label, select);
}

function tick(label, checked, change) {
  const box = make("input", { type: "checkbox", onchange: () => change(box.checked) });
  box.checked = checked;
  return make("label", { class: "tick" }, box, label);
}

function search(label, change) {
  const box = make("input", { type: "search", oninput: () => change(box.value) });
  return make("label", {}, label, box);
}

const button = (text, click) => make("button", { type: "button", onclick: click }, text);

const matches = (text, words) => words.toLowerCase().split(/\s+/).every((word) => text.toLowerCase().includes(word));

// One tip for the whole page; what it says is also put where a screen reader hears it.
const tip = make("div", { id: "tip", role: "tooltip", hidden: true });
const heard = make("div", { class: "heard", "aria-live": "polite" });

function showTip(title, lines, x, y) {
  tip.replaceChildren(make("b", {}, title), ...lines.map((line) => make("span", {}, line)));
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(6, Math.min(x + 14, innerWidth - width - 6))}px`;
  tip.style.top = `${y + height + 24 > innerHeight ? Math.max(6, y - height - 12) : y + 16}px`;
}

function hideTip() {
  tip.hidden = true;
}

function save(name, type, content) {
  const link = make("a", { href: URL.createObjectURL(new Blob([content], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "text-anchor", "font-family", "font-size"];

// A drawing by itself: the looks that the style sheet gives it are written into its elements.
function drawingAlone(drawing) {
  const copy = drawing.cloneNode(true);
  const own = [drawing, ...drawing.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((element, place) => {
    const looks = getComputedStyle(own[place]);
    for (const style of STYLES) element.setAttribute(style, looks.getPropertyValue(style));
  });
  const box = drawing.viewBox.baseVal;
  copy.setAttribute("xmlns", SVG);
  copy.setAttribute("width", box.width);
  copy.setAttribute("height", box.height);
  copy.prepend(draw("rect", { width: "100%", height: "100%", fill: getComputedStyle(document.body).backgroundColor }));
  return new XMLSerializer().serializeToString(copy);
}

const SHARPER = 3; // dots of a picture for each of the page's

function savePicture(name, drawing) {
  const { width, height } = drawing.viewBox.baseVal;
  const picture = new Image();
  const canvas = make("canvas", { width: SHARPER * width, height: SHARPER * height });
  picture.onload = () => {
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((content) => save(name, "image/png", content), "image/png");
  };
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(drawingAlone(drawing))}`;
}

async function copyText(text, done) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make("textarea", { class: "heard" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  done();
}
