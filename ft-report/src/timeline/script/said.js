// @ts-check
// The cards below the picture: what was clicked, the interval, and the events.

import { threadName } from "./layout.js";
import { decomposition, facts, h, lockUse } from "./panel.js";
import { around, duration, grouped, link, moment } from "./view.js";

/** @typedef {import("./main.js").Timeline} Timeline */
/** @typedef {import("./panel.js").Pick} Pick */

/** Events that are listed on either side of a click. */
const NEAR = 8;

/** @param {Timeline} timeline */
export function said(timeline) {
  const { model, head, theme } = timeline;
  const chosen = timeline.part("chosen"), measure = timeline.part("measure");
  const found = timeline.picked;
  const lost = head.losses.filter(({ from, to }) => found && from <= found.to && to >= found.from);
  chosen.replaceChildren(...(found ? [facts(found, model), ...lost.slice(0, 3).map(({ says }) => h("p", { class: "tl-sure" }, says)), actions(timeline, found)] : [h("p", { class: "tl-hint" }, "Click something in the picture: what it is, who did it, and how sure that is.")]));
  neighbours(timeline);
  const interval = timeline.ruler ?? (found && found.to > found.from ? { from: found.from, to: found.to } : undefined);
  const thread = timeline.measured;
  if (!interval || thread === undefined) {
    measure.replaceChildren(h("p", { class: "tl-hint" }, "Drag on the scale of time, or with Shift anywhere: how long it is, and where the time of a thread went in it."));
  } else {
    const { from, to } = interval;
    measure.replaceChildren(
      h("p", {}, h("strong", {}, duration(to - from)), ` of ${threadName(head.threads[thread])}, from ${moment(from + head.offset, Math.max((to - from) / 1000, 1))}`),
      decomposition(model, thread, from, to, theme.states),
      ...(found?.lock !== undefined ? [lockUse(model, found.lock, from, to)] : []),
    );
  }
  kinds(timeline);
}

/** @param {Timeline} timeline @param {Pick} found */
function actions(timeline, found) {
  return h("p", { class: "tl-actions" },
    h("button", { type: "button", click: () => timeline.show(around(found.from, found.to, timeline.head.span)) }, "Zoom to it"),
    h("button", { type: "button", click: () => { timeline.bringTogether(found); } }, "Bring together who is involved"),
    h("a", { href: link({ from: found.from + timeline.head.offset, to: found.to + timeline.head.offset, ...names(timeline, found) }) }, "Link"));
}

/** What a link says of a pick. @param {Timeline} timeline @param {Pick} found */
function names(timeline, { thread, lock }) {
  const tid = thread === undefined ? 0 : timeline.head.threads[thread].tid;
  return { ...(tid !== 0 && { tid }), ...(lock !== undefined && { lock: timeline.head.locks[lock].address }) };
}

/** The events beside a click. @param {Timeline} timeline */
export function neighbours(timeline) {
  const box = timeline.part("near"), found = timeline.picked;
  if (!found) return box.replaceChildren();
  const { head, model } = timeline;
  const thread = timeline.allThreads ? undefined : found.thread;
  const near = model.near(found.at, thread, NEAR, (kind) => !timeline.hidden.has(kind));
  const all = h("label", {}, h("input", { type: "checkbox", ...(timeline.allThreads && { checked: true }), change: () => { timeline.allThreads = !timeline.allThreads; neighbours(timeline); } }), " of all threads");
  const rows = near.map((e) => h("tr", { click: () => timeline.goTo(e.t, e.thread) },
    h("td", { class: "n" }, `${e.t < found.at ? "−" : "+"}${duration(Math.abs(e.t - found.at))}`),
    h("td", {}, h("b", { class: "tl-dot", style: `background:${timeline.theme.hue(e.kind + 11)}` }), head.events[e.kind].name),
    ...(timeline.allThreads ? [h("td", {}, threadName(head.threads[e.thread]))] : []), h("td", { class: "tl-says", title: e.says }, e.says)));
  const none = model.windowAt(Math.min(found.at, head.span - 1)) ? "No event is shown near it." : "The events of this time are not in the page.";
  box.replaceChildren(h("h4", {}, "Events beside it ", all), rows.length > 0 ? h("table", {}, h("tbody", {}, ...rows)) : h("p", { class: "tl-hint" }, none));
}

/** Each kind of event: how often, and whether it is shown. @param {Timeline} timeline */
export function kinds(timeline) {
  const { head, model } = timeline;
  const { counts, about } = model.count(timeline.view.from, timeline.view.to);
  const rows = head.events.map(({ name, count }, kind) => h("tr", {},
    h("td", {}, h("input", { type: "checkbox", "aria-label": `show ${name}`, ...(!timeline.hidden.has(kind) && { checked: true }), change: () => timeline.toggle(timeline.hidden, kind) })),
    h("td", {}, h("button", { type: "button", class: "tl-kind", "aria-pressed": String(timeline.markedKinds.has(kind)), title: `mark each ${name} by a line, stronger where there are many`, click: () => timeline.toggle(timeline.markedKinds, kind) },
      h("b", { class: "tl-dot", style: `background:${timeline.theme.hue(kind + 11)}` }), name)),
    h("td", { class: "n", ...(about[kind] && { title: "as if a bucket that an end of the view cuts were even" }) }, `${about[kind] ? "≈ " : ""}${grouped(counts[kind])}`), h("td", { class: "n" }, grouped(count)),
    h("td", {}, h("button", { type: "button", title: "previous", click: () => timeline.nextEvent(kind, true) }, "◂"), h("button", { type: "button", title: "next", click: () => timeline.nextEvent(kind, false) }, "▸"))));
  timeline.part("kinds").replaceChildren(...rows);
}
