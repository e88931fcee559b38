// @ts-check
// What the user does: the mouse, the wheel, keys, buttons and the search.

import { lockName, rowAt, threadName, LANE, WAITERS } from "./layout.js";
import { Painter } from "./paint.js";
import { h, NAMES, pick, sure } from "./panel.js";
import { said } from "./said.js";
import { LEFT } from "./scene.js";
import { around, duration, moment, pan } from "./view.js";

/** @typedef {import("./main.js").Timeline} Timeline */
/** @param {Timeline} timeline */
export function controls(timeline) {
  const { head } = timeline;
  const states = head.states.map((state) => state === "running" && head.runs ? "running (execution trace: between the gaps that the thread saw)" : NAMES[state] ?? state);
  const gaps = head.gaps ? [h("span", {}, h("b", { class: "tl-dot tl-thin" }), "gap that a thread saw in its own time")] : [];
  timeline.part("legend").replaceChildren(...[...states, "CPUs: recorded threads", "CPUs: others"].map((name) => h("span", {}, h("b", { class: "tl-dot" }), name)), ...gaps);
  controlsAgain(timeline);
  const select = /** @type {HTMLSelectElement} */ (timeline.part("incidents"));
  select.replaceChildren(h("option", { value: "-1" }, `${head.incidents.length} places worth a look …`), ...head.incidents.map((incident, i) => h("option", { value: i }, incident.says)));
  select.addEventListener("change", () => timeline.visit(Number(select.value)));
  /** @type {Record<string, () => void>} */
  const buttons = {
    whole: () => timeline.show({ from: 0, to: head.span }),
    in: () => timeline.zoom(0.5), out: () => timeline.zoom(2),
    before: () => timeline.visit(timeline.incident - 1), after: () => timeline.visit(timeline.incident + 1),
    keys: () => timeline.part("help").toggleAttribute("hidden"),
  };
  for (const [name, act] of Object.entries(buttons)) timeline.part(name).addEventListener("click", act);
  const input = /** @type {HTMLInputElement} */ (timeline.part("search"));
  input.addEventListener("input", () => find(timeline, input.value));
  input.addEventListener("keydown", (e) => {
    if (e.key === "Enter") /** @type {HTMLElement | null} */ (timeline.part("found").querySelector("button"))?.click();
    if (e.key === "Escape") { input.value = ""; find(timeline, ""); timeline.stage.focus(); }
    e.stopPropagation();
  });
}

/** Names that contain a text. @param {Timeline} timeline @param {string} text */
function find(timeline, text) {
  const { head } = timeline, wanted = text.trim().toLowerCase();
  /** @type {[string, () => void][]} */
  const found = [];
  /** @param {string} name */
  const fits = (name) => wanted !== "" && name.toLowerCase().includes(wanted);
  head.threads.forEach((thread, i) => fits(threadName(thread)) && found.push([`thread ${threadName(thread)}`, () => timeline.toRow("thread", i)]));
  head.locks.forEach((lock, i) => (fits(lockName(lock)) || fits(lock.address)) && found.push([`lock ${lockName(lock)}`, () => timeline.toRow("lock", i)]));
  head.events.forEach(({ name, count }, i) => fits(name) && found.push([`event ${name} (${count})`, () => timeline.nextEvent(i, false)]));
  head.incidents.forEach(({ says }, i) => fits(says) && found.push([says, () => timeline.visit(i)]));
  timeline.part("found").replaceChildren(...found.slice(0, 30).map(([label, act]) => h("li", {}, h("button", { type: "button", click: act }, label))));
  timeline.part("status").textContent = wanted === "" ? "" : found.length === 0 ? "nothing of that name" : found.length > 30 ? `${found.length} found, 30 shown` : `${found.length} found`;
}

/** @param {Timeline} timeline */
export function listen(timeline) {
  addEventListener("hashchange", () => timeline.follow());
  // A link to where the address is already changes no hash.
  document.addEventListener("click", ({ target }) => {
    const link = target instanceof Element ? target.closest("a") : null;
    if (link?.hash && link.hash === location.hash) timeline.follow();
  });
  new ResizeObserver(() => { timeline.totals = undefined; timeline.draw(); }).observe(timeline.stage);
  const restyle = () => { timeline.theme = timeline.readTheme(); timeline.draw(); said(timeline); controlsAgain(timeline); };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restyle);
  timeline.stage.addEventListener("scroll", () => timeline.draw());
  timeline.stage.addEventListener("wheel", (e) => wheel(timeline, e), { passive: false });
  timeline.part("axis").addEventListener("wheel", (e) => wheel(timeline, e, true), { passive: false });
  timeline.section.addEventListener("keydown", (e) => key(timeline, e));
  drags(timeline);
  timeline.stage.addEventListener("mousemove", (e) => hover(timeline, e));
  timeline.stage.addEventListener("mouseleave", () => { timeline.part("tip").hidden = timeline.part("cross").hidden = true; });
}

/** Colours of the legend: of the states, of the rows of CPUs, and of gaps. @param {Timeline} timeline */
function controlsAgain({ part, theme }) {
  const colors = [...theme.states, theme.accent, theme.other, theme.ink];
  part("legend").querySelectorAll("b").forEach((dot, i) => (dot.style.background = colors[i]));
}

/** @param {Timeline} timeline @param {WheelEvent} e @param {boolean} [always] */
function wheel(timeline, e, always = false) {
  const x = e.clientX - timeline.stage.getBoundingClientRect().left;
  const sideways = e.shiftKey ? e.deltaY || e.deltaX : Math.abs(e.deltaX) > Math.abs(e.deltaY) ? e.deltaX : 0;
  if (sideways) timeline.show(pan(timeline.view, sideways / timeline.width, timeline.head.span));
  else if (e.ctrlKey || e.metaKey || always) timeline.zoom(Math.exp(Math.max(-80, Math.min(80, e.deltaY)) / 160), timeline.time(x));
  else return;
  e.preventDefault();
}

/** @param {Timeline} timeline @param {KeyboardEvent} e */
function key(timeline, e) {
  if (e.ctrlKey || e.metaKey || e.altKey || e.target instanceof HTMLSelectElement || e.target instanceof HTMLInputElement) return;
  /** @type {Record<string, () => void>} */
  const keys = {
    ArrowLeft: () => timeline.show(pan(timeline.view, -0.2, timeline.head.span)), a: () => keys.ArrowLeft(),
    ArrowRight: () => timeline.show(pan(timeline.view, 0.2, timeline.head.span)), d: () => keys.ArrowRight(),
    ArrowUp: () => timeline.zoom(0.6), w: () => keys.ArrowUp(), "+": () => keys.ArrowUp(),
    ArrowDown: () => timeline.zoom(1 / 0.6), s: () => keys.ArrowDown(), "-": () => keys.ArrowDown(),
    Home: () => timeline.show({ from: 0, to: timeline.head.span }), "0": () => keys.Home(),
    n: () => timeline.visit(timeline.incident + 1), p: () => timeline.visit(timeline.incident - 1),
    f: () => timeline.picked && timeline.show(around(timeline.picked.from, timeline.picked.to, timeline.head.span)),
    m: () => { if (timeline.picked && timeline.picked.to > timeline.picked.from) timeline.measure(timeline.picked.from, timeline.picked.to); },
    "/": () => timeline.part("search").focus(), "?": () => timeline.part("help").toggleAttribute("hidden"),
    Escape: () => { timeline.ruler = timeline.picked = undefined; timeline.focus = []; timeline.place(); said(timeline); timeline.draw(); },
  };
  if (!Object.hasOwn(keys, e.key)) return;
  keys[e.key]();
  e.preventDefault();
}

/** Drags of the mouse: of the picture, of the scale, and of the overview; a drag of no length is a click. @param {Timeline} timeline */
function drags(timeline) {
  /** @param {HTMLElement} of @param {(e: PointerEvent) => ((e: PointerEvent, moved: boolean) => void) | undefined} begin */
  const drag = (of, begin) => of.addEventListener("pointerdown", (e) => {
    if (e.button !== 0) return;
    const move = begin(e);
    if (!move) return;
    let moved = false;
    const on = (/** @type {PointerEvent} */ next) => {
      moved ||= Math.abs(next.clientX - e.clientX) > 3;
      if (moved) move(next, true);
    };
    const done = (/** @type {PointerEvent} */ last) => {
      removeEventListener("pointermove", on);
      removeEventListener("pointerup", done);
      if (!moved) move(last, false);
    };
    addEventListener("pointermove", on);
    addEventListener("pointerup", done);
  });
  /** @param {PointerEvent} e */
  const x = (e) => e.clientX - timeline.stage.getBoundingClientRect().left;
  /** @param {PointerEvent} e */
  const ruler = (e) => {
    const from = timeline.time(x(e));
    return (/** @type {PointerEvent} */ next, /** @type {boolean} */ moved) => {
      if (moved) timeline.measure(from, timeline.time(x(next)));
      else { timeline.ruler = undefined; said(timeline); timeline.draw(); }
    };
  };
  drag(timeline.part("axis"), ruler);
  drag(timeline.stage, (e) => {
    if (e.target !== timeline.canvas) return undefined;
    if (e.shiftKey) return ruler(e);
    const { from, to } = timeline.view, x0 = x(e);
    return (next, moved) => {
      const by = ((x0 - x(next)) / (timeline.width - LEFT)) * (to - from);
      if (moved) timeline.show({ from: from + by, to: to + by });
      else click(timeline, next);
    };
  });
  drag(timeline.part("overview"), () => (e) => {
    const t = ((x(e) - LEFT) / (timeline.width - LEFT)) * timeline.head.span, half = (timeline.view.to - timeline.view.from) / 2;
    timeline.show({ from: t - half, to: t + half });
  });
}

/** What is under the mouse. @param {Timeline} timeline @param {MouseEvent} e */
function under(timeline, e) {
  const box = timeline.stage.getBoundingClientRect();
  const x = e.clientX - box.left, y = e.clientY - box.top + timeline.stage.scrollTop;
  const found = rowAt(timeline.rows, y);
  if (!found) return undefined;
  const { row, band } = found, t = timeline.time(x);
  const slack = (3 * (timeline.view.to - timeline.view.from)) / (timeline.width - LEFT);
  const painter = painterOfPlaces(timeline);
  const lanes = band?.lane === "waits" ? WAITERS : Math.round((band?.height ?? 0) / LANE);
  const pitch = (band?.height ?? 0) / lanes;
  const nested = band !== undefined && ((row.kind === "thread" && band.lane !== "state") || band.lane === "waits");
  const place = band ? Math.floor((y - row.y - band.y) / pitch) : 0;
  // The triangles of events stand on the bar.
  const event = row.kind === "thread" && y - row.y < 7
    ? pick(timeline.model, row, "events", t, slack, (_, lane, i) => !timeline.hidden.has(lane.a[i])) : undefined;
  if (event?.mark && x >= LEFT) return { row, t, picked: event };
  const picked = x < LEFT || row.kind === "group" ? undefined
    : pick(timeline.model, row, band?.lane, t, slack, (_, lane, i) => !nested || painter.places(lane, lanes)[i] === place);
  return { row, t, picked };
}

/** @param {Timeline} timeline */
function painterOfPlaces(timeline) {
  const ctx = /** @type {CanvasRenderingContext2D} */ (timeline.canvas.getContext("2d"));
  return new Painter(ctx, timeline.model, timeline.theme, timeline.view, LEFT, timeline.width);
}

/** @param {Timeline} timeline @param {MouseEvent} e */
function click(timeline, e) {
  const found = under(timeline, e);
  timeline.stage.focus({ preventScroll: true });
  if (!found) return;
  if (found.row.kind === "group") {
    const label = found.row.label.slice(2);
    if (!timeline.folded.delete(label)) timeline.folded.add(label);
    timeline.place();
  } else {
    timeline.picked = found.picked ?? { kind: found.row.kind, index: found.row.index, at: found.t, from: timeline.view.from, to: timeline.view.to, what: found.row.hint, mark: "", ...(found.row.kind === "thread" && { thread: found.row.index }), ...(found.row.kind === "lock" && { lock: found.row.index }) };
    said(timeline);
  }
  timeline.draw();
}

/** @param {Timeline} timeline @param {MouseEvent} e */
function hover(timeline, e) {
  const tip = timeline.part("tip"), cross = timeline.part("cross");
  const frame = timeline.part("frame").getBoundingClientRect();
  const x = e.clientX - timeline.stage.getBoundingClientRect().left;
  cross.hidden = x < LEFT;
  cross.style.left = `${e.clientX - frame.left}px`;
  const found = under(timeline, e);
  const step = (timeline.view.to - timeline.view.from) / 1000;
  tip.hidden = !found || x < LEFT || found.row.kind === "group";
  if (!found?.picked) return;
  const { what, from, to, mark } = found.picked;
  tip.replaceChildren(h("strong", {}, what), h("br", {}), to > from ? `${duration(to - from)}, ` : "", `at ${moment(found.t + timeline.head.offset, step)}`, ...(mark && mark !== "exact" ? [h("br", {}), sure(mark)] : []));
  const room = frame.width - (e.clientX - frame.left);
  tip.style.left = room > 280 ? `${e.clientX - frame.left + 14}px` : "";
  tip.style.right = room > 280 ? "" : `${room + 14}px`;
  tip.style.top = `${e.clientY - frame.top + 16}px`;
}
