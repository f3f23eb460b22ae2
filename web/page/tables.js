/* SPDX-License-Identifier: MIT */
/* Tables of functions and calls, and bars of self times. */
"use strict";

/* A name that leads to its function; the full one on hover. */
/* A name whose beginning gives way where it has no room, not its end, the method's name. */
function nameParts(text) {
	const at = text.lastIndexOf("::");

	if (at <= 0)
		return [text];
	return [element("span", { class: "head", style: { maxWidth: `calc(100% - ${text.length - at}ch)` } }, text.slice(0, at)), text.slice(at)];
}

function functionLink(id, name) {
	return element("a", { class: "mono", href: hashOf({ view: "function", id }), title: name }, ...nameParts(shortName(name)));
}

/* A table: columns are [title, cell of a row, kind]; kind "name" is wide and to the left. */
function table(columns, rows, id) {
	return element("div", { class: "scroll" }, element("table", { id },
		element("thead", {}, element("tr", {}, ...columns.map(([title, , kind]) =>
			element("th", { class: kind ?? null, scope: "col" }, title)))),
		element("tbody", {}, ...rows.map((row) => element("tr", {}, ...columns.map(([, cell, kind]) =>
			element("td", { class: kind ?? null }, cell(row))))))));
}

/* A time, exact on hover. */
const timeCell = (ns) => element("span", { title: `${groups(ns)} ns` }, duration(ns));

/* … of one call. */
const callTimeCell = (ns) => element("span", { title: ns < GRAIN_NS ? null : `${groups(ns)} ns` }, callTime(ns));

const share = (part, all) => element("span", { title: percent(part, all) },
	element("span", { class: "bar", style: { width: `${all > 0 ? Math.max(1, 60 * part / all) : 0}px` } }), ` ${percent(part, all)}`);

/* Columns of what calls, [start, took, lane, depth, arguments, result], were called with and returned, where it was
 * recorded. */
const valueColumns = (calls) => [[4, "Called with"], [5, "Returned"]].filter(([at]) =>
	calls.some((call) => typeof call[at] === "string")).map(([at, title]) => [title, (call) => call[at] ?? "", "name"]);

/* Where a single call is shown: a little of what is around it, too. */
function callHash(start, took, lane, depth, id) {
	const around = Math.max(took * 0.15, 50);
	return hashOf({ view: "timeline", from: Math.max(0, Math.round(start - around)), to: Math.round(start + took + around),
		sel: [lane, depth, start, took, id, 1].join(".") });
}

/* Bars of self time, a piece a function; the legend below takes functions out and puts them in. */
function makeBars(overview) {
	const off = new Set();
	let by = "lane", answer = null;
	const bars = element("div", { class: "stack", id: "bars" });
	const legend = element("div", { class: "legend", id: "legend" });
	const told = element("p", { class: "faint" });
	const buttons = [["lane", "By thread"], ...(overview.offCpu ? [["lane-on-cpu", "By thread, on the CPU only"]] : []),
		["cpu", "By CPU"]].map(([value, text]) =>
		element("button", { class: "button", type: "button", "data-by": value, onclick: () => {
			by = value;
			ask();
		} }, text));
	const waits = element("button", { class: "button", type: "button", id: "waits", onclick: () => {
		const waiting = answer.functions.filter((f) => f.waits);
		const hide = waiting.some((f) => !off.has(f.id));
		for (const f of waiting)
			hide ? off.add(f.id) : off.delete(f.id);
		draw();
	} }, "Hide what sleeps or waits");
	const whole = element("section", {}, element("h2", {}, "Self time ",
		element("small", {}, "each function's time without that of the functions it calls")),
		element("div", { class: "tools" }, ...buttons, waits), element("p", {}), bars, legend, told);

	const who = (number) => by === "cpu" ? `CPU ${number}` : laneName(overview.lanes[number]);

	function piece(f, ns, most, place) {
		return element("span", { "data-function": f?.id ?? "others", style: { width: `${100 * ns / most}%`,
			background: f ? colour(f.id) : css("--line") },
			onpointermove: (event) => tip(event, f ? shortName(f.name) : "all other functions",
				[`${duration(ns)} of self time`, place]),
			onpointerleave: noTip,
			onclick: () => f && (location.hash = hashOf({ view: "function", id: f.id })) });
	}

	function draw() {
		const shown = (i) => i < answer.functions.length ? !off.has(answer.functions[i].id) : !off.has("others");
		const sums = answer.bars.map(([, , pieces]) => pieces.reduce((sum, ns, i) => sum + (shown(i) ? ns : 0), 0));
		const most = Math.max(1, ...sums);
		bars.replaceChildren(...answer.bars.flatMap(([number, , pieces], at) => [
			element("span", { class: "who", title: who(number) }, who(number)),
			element("span", { class: "pieces" }, ...pieces.flatMap((ns, i) => ns > 0 && shown(i) && ns / most > 0.0005 ?
				[piece(answer.functions[i], ns, most, who(number))] : [])),
			element("span", { class: "much", title: `${groups(sums[at])} ns` }, duration(sums[at]))]));
		const toggle = (id, text, background) => element("button", { type: "button", "aria-pressed": String(!off.has(id)), title: text,
			onclick: () => {
				off.has(id) ? off.delete(id) : off.add(id);
				draw();
			} }, element("i", { style: { background } }), element("span", {}, cut(shortName(text), 34)));
		legend.replaceChildren(...answer.functions.map((f) => toggle(f.id, f.name, colour(f.id))),
			...(answer.bars.some(([, , pieces]) => pieces.at(-1) > 0) ? [toggle("others", "all other functions", css("--line"))] : []));
		for (const button of buttons)
			button.setAttribute("aria-pressed", String(button.dataset.by === by));
		const waiting = answer.functions.filter((f) => f.waits), hidden = waiting.length > 0 && waiting.every((f) => off.has(f.id));
		waits.hidden = waiting.length === 0;
		waits.setAttribute("aria-pressed", String(hidden));
		told.textContent = (hidden ? `Hidden, by their names: ${waiting.map((f) => shortName(f.name)).join(", ")}. ` : "") +
			(answer.found > answer.bars.length ? `The ${answer.bars.length} with the most of ${groups(answer.found)} are shown.` : "");
		document.documentElement.dataset.bars = by;
	}

	async function ask() {
		answer = await source.ask("selftimes", { by });
		draw();
	}

	ask().catch((error) => notice(error.message));
	return whole;
}
