// Draws the charts of a page with uPlot; the tables beside them say the same without.

const language = document.documentElement.lang;
const short = new Intl.NumberFormat(language, { notation: "compact", maximumFractionDigits: 1 });
const backwards = document.documentElement.dir === "rtl";
const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const TICK = 72;

/** The colours that the style sheet gives a line just now: the theme may change while the page is open. */
function lineOf(keys, line) {
  const style = () => getComputedStyle(keys.querySelector(`[data-tone="${line.tone}"]`));
  const base = { stroke: () => style().color, width: 2, points: { show: false } };
  if (line.shape === "bars") {
    return { ...base, width: 0, fill: () => style().color, paths: uPlot.paths.bars({ size: [0.7, 48] }) };
  }
  return line.shape === "line" ? { ...base, dash: [5, 4] } : { ...base, fill: () => style().backgroundColor };
}

/** Every so many steps one that is named, counted from the last. */
function ticksOf(plot, count) {
  const every = Math.max(1, Math.ceil((count * TICK) / (plot.bbox.width / devicePixelRatio)));
  return Array.from({ length: count }, (_, step) => step).filter((step) => (count - 1 - step) % every === 0);
}

function axesOf(frame, told) {
  const soft = () => getComputedStyle(frame).color;
  const edge = () => getComputedStyle(frame).borderTopColor;
  return [
    {
      stroke: soft, font: FONT, size: 28, gap: 4, grid: { show: false }, ticks: { stroke: edge, size: 4, width: 1 },
      splits: (plot) => ticksOf(plot, told.ticks.length),
      values: (_, steps) => steps.map((step) => told.ticks[step]),
    },
    {
      stroke: soft, font: FONT, gap: 6, side: backwards ? 1 : 3, grid: { stroke: edge, width: 1 },
      ticks: { show: false }, space: 40, values: (_, amounts) => amounts.map((amount) => short.format(amount)),
      size: (_, texts) => 14 + 7 * Math.max(1, ...(texts ?? []).map((text) => text.length)),
    },
  ];
}

/** From nothing, or the deepest loss, to a little above the highest. */
function heightOf(_, lowest, highest) {
  return [Math.min(0, lowest ?? 0) * 1.08, Math.max(highest ?? 0, lowest < 0 ? 0 : 1) * 1.08];
}

function draw(frame, told, isSmall) {
  const count = told.lines[0].values.length;
  const data = [Array.from({ length: count }, (_, step) => step), ...told.lines.map((line) => line.values)];
  const ends = isSmall || told.lines[0].shape !== "bars" ? 0.02 * count : 0.6;
  return new uPlot(
    {
      width: frame.clientWidth,
      height: frame.clientHeight,
      padding: isSmall ? [2, 0, 2, 0] : [10, backwards ? 0 : 14, 0, backwards ? 14 : 0],
      legend: { show: false },
      select: { show: false },
      cursor: {
        show: !isSmall, y: false, drag: { x: false, y: false },
        points: { size: 9, width: 2, fill: () => getComputedStyle(frame).backgroundColor },
      },
      scales: {
        x: { time: false, dir: backwards ? -1 : 1, range: () => [-ends, count - 1 + ends] },
        y: { range: heightOf },
      },
      series: [{}, ...told.lines.map((line) => lineOf(isSmall ? frame : frame.parentElement, line))],
      axes: isSmall ? [{ show: false }, { show: false }] : axesOf(frame, told),
    },
    data,
    frame,
  );
}

/** What is said of one step, beside it and to a screen reader. */
function sayStep(plot, frame, told, tip) {
  const step = plot.cursor.idx;
  tip.hidden = step == null || plot.cursor.left < 0;
  if (tip.hidden) return;
  const lines = told.lines.map((line) => `${line.name}: ${line.said[step]}`);
  tip.replaceChildren();
  for (const textContent of [told.steps[step], ...lines]) {
    tip.append(Object.assign(document.createElement("div"), { textContent }));
  }
  const left = plot.over.offsetLeft + plot.valToPos(step, "x");
  const width = tip.offsetWidth;
  tip.style.left = `${Math.max(0, left + 14 + width > frame.clientWidth ? left - 14 - width : left + 14)}px`;
  frame.setAttribute("aria-valuenow", step);
  frame.setAttribute("aria-valuetext", [told.steps[step], ...lines].join(", "));
}

/** Touch and keys move to a step as a mouse does. */
function follow(plot, frame, told) {
  const last = told.steps.length - 1;
  const show = (step) => plot.setCursor({ left: plot.valToPos(step, "x"), top: 0 });
  const hide = () => plot.setCursor({ left: -10, top: -10 });
  const touched = (event) => {
    if (event.pointerType === "mouse") return;
    plot.setCursor({ left: event.clientX - plot.over.getBoundingClientRect().left, top: 0 });
  };
  plot.over.style.touchAction = "pan-y";
  plot.over.addEventListener("pointerdown", touched);
  plot.over.addEventListener("pointermove", touched);
  frame.addEventListener("focus", () => { if (frame.matches(":focus-visible")) show(last); });
  frame.addEventListener("blur", hide);
  frame.addEventListener("keydown", (event) => {
    const on = backwards ? -1 : 1;
    const now = Number(frame.getAttribute("aria-valuenow"));
    const places = { ArrowLeft: now - on, ArrowRight: now + on, ArrowDown: now - 1, ArrowUp: now + 1, Home: 0, End: last };
    if (event.key === "Escape") hide();
    if (!(event.key in places)) return;
    event.preventDefault();
    show(Math.min(last, Math.max(0, places[event.key])));
  });
}

/** A chart is one stop of the tab key: its steps are looked at as the values of a slider are. */
function makeReadable(plot, frame, told) {
  const tip = Object.assign(document.createElement("div"), { className: "plot-tip", hidden: true });
  frame.append(tip);
  const last = told.steps.length - 1;
  const says = {
    role: "slider", tabindex: 0, "aria-label": told.name, "aria-readonly": true,
    "aria-valuemin": 0, "aria-valuemax": last, "aria-valuenow": last, "aria-valuetext": told.steps[last],
  };
  for (const [name, value] of Object.entries(says)) frame.setAttribute(name, value);
  follow(plot, frame, told);
  return () => sayStep(plot, frame, told, tip);
}

const plots = [];
for (const frame of document.querySelectorAll("[data-plot]")) {
  const told = JSON.parse(frame.dataset.plot);
  const isSmall = "spark" in frame.dataset;
  const plot = draw(frame, told, isSmall);
  if (!isSmall) (plot.hooks.setCursor ??= []).push(makeReadable(plot, frame, told));
  new ResizeObserver(() => plot.setSize({ width: frame.clientWidth, height: frame.clientHeight })).observe(frame);
  plots.push(plot);
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const plot of plots) plot.redraw(false, true);
});
