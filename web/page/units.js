/* SPDX-License-Identifier: MIT */
/* Times, counts, names and colours as people read them; small helpers of the DOM. Names come from
 * whatever was traced: they reach the page as text only (textContent), never as markup. */
"use strict";

const byId = (id) => document.getElementById(id);

/* An element with attributes, and children that are elements or text. */
function element(tag, attributes, ...children) {
	const made = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes ?? {})) {
		if (name === "style")
			Object.assign(made.style, value);
		else if (name.startsWith("on"))
			made.addEventListener(name.slice(2), value);
		else if (value === true)
			made.setAttribute(name, "");
		else if (value !== false && value !== null && value !== undefined)
			made.setAttribute(name, value);
	}
	made.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
	return made;
}

const groups = (n) => Math.round(n).toLocaleString("en");
const count = (n, word, words) => `${groups(n)} ${n === 1 ? word : words ?? word + "s"}`;

/* Three digits that count, and the unit that fits: 830 ns, 12.3 µs, 4.56 ms, 1.2 s, 3 min 5 s. */
function duration(ns) {
	const units = [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]];
	if (ns < 0)
		return "\u2212" + duration(-ns);
	if (ns >= 60e9)
		return `${Math.floor(ns / 60e9)} min ${Math.floor(ns / 1e9) % 60} s`;
	let at = 0;
	while (at < 3 && ns >= units[at + 1][0] * 0.9995)
		at++;
	const value = ns / units[at][0];
	return `${at === 0 ? Math.round(value) : Number(value.toPrecision(3))} ${units[at][1]}`;
}

/* The time of one call: below two steps of the clock it is not known (as report says it). */
const GRAIN_NS = 20;
const callTime = (ns) => ns < GRAIN_NS ? `< ${GRAIN_NS} ns` : duration(ns);

/* A point in time, to the step of what is shown around it; all up to `longest` in one unit. */
function moment(ns, step, longest = ns) {
	const unit = step >= 1e9 || longest >= 10e9 && step >= 1e6 ? [1e9, "s"] : step >= 1e6 || longest >= 10e6 && step >= 1e3 ?
		[1e6, "ms"] : step >= 1e3 || longest >= 10e3 ? [1e3, "µs"] : [1, "ns"];
	const digits = Math.max(0, Math.ceil(Math.log10(unit[0] / step) - 1e-9));
	return `${(ns / unit[0]).toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${unit[1]}`;
}

const percent = (part, all) => !(all > 0) ? "" : part > 0 && part / all < 0.00005 ? "< 0.01 %" :
	`${(100 * part / all).toFixed(part / all < 0.0995 ? 2 : 1)} %`;

/* Short names are the terminal's (export/short_names.c): std::map<…>::find, <Vec<…> as Drop>::drop. */
const SAID_SHORT = [
	["std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string"],
	["std::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string"],
	["std::basic_string_view<char, std::char_traits<char> >", "std::string_view"],
	["std::basic_ostream<char, std::char_traits<char> >", "std::ostream"],
	["std::basic_istream<char, std::char_traits<char> >", "std::istream"],
	["std::__cxx11::", "std::"], ["(anonymous namespace)::", ""], ["[abi:cxx11]", ""],
];

/* The length of "operator<<" and similar names, in which < and > are no brackets; 0: there is none. */
function operatorLength(text, at) {
	if (!text.startsWith("operator", at) || /\w/.test(text[at - 1] ?? " "))
		return 0;
	const sign = /^(<=>|<<=|>>=|->\*|<<|>>|<=|>=|->|<|>)/.exec(text.slice(at + 8, at + 11));
	return sign ? 8 + sign[0].length : 0;
}

/* The place after the bracket that closes the one at `at`, or the end. */
function behindBracket(text, at) {
	for (let depth = 0; at < text.length; at++) {
		const sign = operatorLength(text, at);

		if (sign > 0)
			at += sign - 1;
		else if (text[at] === "<")
			depth++;
		else if (text[at] === ">" && text[at - 1] !== "-" && --depth === 0)
			return at + 1;
	}
	return text.length;
}

/* "Type as Trait" at the beginning of a Rust name: the last part of each. */
function typeAsTrait(text) {
	let out = "", part = 0, depth = 0;

	for (let at = 0; at < text.length; at++) {
		if ("<([".includes(text[at]))
			depth++;
		else if (">)]".includes(text[at]))
			depth = Math.max(depth - 1, 0);
		if (depth === 0 && text.startsWith("::", at))
			part = at + 2;
		if (depth === 0 && text.startsWith(" as ", at) && at + 4 < text.length) {
			out += `${shorten(text.slice(part, at))} as `;
			part = at + 4;
			at += 3;
		}
	}
	return out + shorten(text.slice(part));
}

function shorten(text) {
	let out = "", at = 0;

	while (at < text.length) {
		const sign = operatorLength(text, at), said = SAID_SHORT.find(([full]) => text.startsWith(full, at));

		if (sign > 0 || said || text[at] !== "<") {
			out += sign > 0 ? text.slice(at, at + sign) : said ? said[1] : text[at];
			at += sign > 0 ? sign : said ? said[0].length : 1;
			continue;
		}
		const behind = behindBracket(text, at), closed = text[behind - 1] === ">";
		if (at === 0 && behind < text.length && closed)
			out += `<${typeAsTrait(text.slice(1, behind - 1))}>`;
		else if (at > 0 && text[at - 1] === ":" && !closed)
			out += text.slice(at, behind);
		else
			out += "<…>";
		at = behind;
	}
	return out;
}

const shortNames = new Map();

function shortName(name) {
	let brief = shortNames.get(name);

	if (brief === undefined) {
		brief = /[<([]|__cxx11/.test(name) ? shorten(name) : name;
		shortNames.set(name, brief);
	}
	return brief;
}

/* Cut in the middle. Of "scope::method" the method stays, and as much of the scope as there is room for. */
function cut(text, most) {
	if (text.length <= most)
		return text;
	const method = text.lastIndexOf("::");
	if (method > 0) {
		const scope = most - 1 - (text.length - method);
		return scope > 0 ? `${text.slice(0, scope)}…${text.slice(method)}` : cut(text.slice(method + 2), most);
	}
	if (most < 9)
		return most < 3 ? "" : text.slice(0, most - 1) + "…";
	const tail = Math.ceil((most - 1) * 0.6);
	return text.slice(0, Math.max(most - 1 - tail, 0)) + "…" + text.slice(text.length - tail);
}

const dark = matchMedia("(prefers-color-scheme: dark)");

/* The golden angle keeps neighbours apart. */
function colour(id, faint) {
	const hue = (216 + id * 137.508) % 360;
	const light = dark.matches ? [34, 40, 29][id % 3] : [74, 80, 68][id % 3];
	return `hsl(${hue.toFixed(0)} ${faint ? 12 : [58, 48, 66][id % 3]}% ${light}%)`;
}

function css(name) {
	return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/* The stacks with calls, and those with events of the same processes; where events alone were recorded, all with events.
 * A kernel's recording has events of tasks that only ran beside the program: they are not shown. */
function shownLanes(overview) {
	const processes = new Set(overview.lanes.filter((lane) => lane.calls > 0).map((lane) => lane.pid));
	return overview.lanes.filter((lane) => lane.calls > 0 || lane.marks > 0 && (processes.size === 0 || processes.has(lane.pid)));
}

const laneName = (lane) => `${lane.name || "thread"}-${lane.tid}${lane.stack ? ` stack ${lane.stack + 1}` : ""}`;

/* The tip beside the pointer: a title and lines. */
function tip(event, title, lines) {
	const box = byId("tip");
	box.replaceChildren(element("b", {}, title), lines.length ? "\n" + lines.join("\n") : "");
	box.hidden = false;
	const { width, height } = box.getBoundingClientRect();
	const left = event.clientX + 14 + width > innerWidth ? event.clientX - width - 10 : event.clientX + 14;
	const top = event.clientY + 16 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 16;
	box.style.left = `${Math.max(4, left)}px`;
	box.style.top = `${Math.max(4, top)}px`;
}

function noTip() {
	byId("tip").hidden = true;
}
