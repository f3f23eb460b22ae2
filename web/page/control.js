/* SPDX-License-Identifier: MIT */
/* The control files of a program that runs, as a panel: they are files of the same server, below /ftrace/. */
"use strict";

const CONTROLS = [
	["set_ftrace_filter", "Only these functions", "Names and globs, * for any letters: parse* handle_?; empty: all functions"],
	["set_ftrace_notrace", "Not these functions", "Names and globs; empty: none is left out"],
	["set_graph_function", "Only below these", "These functions and all that they call; empty: no limit"],
	["tracing_thresh", "Only calls longer than (µs)", "0: all calls"],
];

async function readControl(name) {
	const response = await fetch(`ftrace/${name}`, { headers: source.headers });
	if (!response.ok)
		throw new Error((await response.text()).trim());
	return (await response.text()).trimEnd();
}

/* "": it is done; else why not. */
async function writeControl(name, value) {
	const response = await fetch(`ftrace/${name}`, { method: "PUT", headers: source.headers, body: value });
	return response.ok ? "" : (await response.text()).trim();
}

/* The counts of stats, by name. */
async function readCounts() {
	return { at: performance.now(), counts: new Map((await readControl("stats")).split("\n")
		.map((line) => /^([^:]+): *(\d+)$/.exec(line)).filter(Boolean).map((found) => [found[1], Number(found[2])])) };
}

/* In the bar of a program that runs: how many calls a second are recorded and lost. */
function watchRates() {
	const told = byId("rates");
	let before = null;

	/* Lost for good, not overwritten by newer ones; the sum is of records, two a call. */
	async function tick() {
		const now = await readCounts();
		const grown = (...names) => names.reduce((sum, name) => sum + (now.counts.get(name) ?? 0) - (before?.counts.get(name) ?? 0), 0) /
			(now.at - before?.at) * 1000;
		if (before) {
			const dropped = grown("dropped events");
			told.replaceChildren(element("span", {}, `${groups(Math.max(0, grown("entries", "overrun", "read events") / 2))} calls/s recorded`),
				...(dropped > 0 ? [element("span", {}, `, ${groups(dropped)} lost/s: the buffer is full, nothing new goes in. `),
					element("button", { class: "button", type: "button", id: "empty", title: "What is recorded up to now is thrown away",
						onclick: () => writeControl("trace", "").then((problem) => notice(problem)) }, "Empty it"),
					" (with --overwrite the newest stay)"] : []));
		}
		document.documentElement.dataset.rates = before ? "yes" : "begun";
		before = now;
	}

	function end(text) {
		byId("running").textContent = "ended";
		told.replaceChildren(text);
	}

	const again = () => source.ask("about").then(({ running }) => running === false
		? end("The program has ended. What it has recorded is still served.")
		: tick().then(() => setTimeout(again, 1000)))
		.catch(() => end("Nothing is served any more: the program has ended, or its server."));
	again();
}

/* Comments and empty lists of a control file are no values. */
const valuesOf = (text) => text.split("\n").filter((line) => line && !line.startsWith("#")).join(" ");

function makeControl() {
	const told = element("output", { id: "told" });
	const grid = element("div", { class: "control" });
	const stats = element("div", { class: "scroll" });
	let before = null, timer = 0;

	async function write(name, value) {
		told.textContent = await writeControl(name, value);
		await fill();
		document.documentElement.dataset.written = `${name} ${value.trim()}`;
	}

	function field([name, title, help], value) {
		const input = element("input", { type: "text", id: name, value, title: help, placeholder: help,
			autocomplete: "off", spellcheck: "false" });
		return [element("label", { for: name, title: `/ftrace/${name}` }, title), element("form", { onsubmit: (event) => {
			event.preventDefault();
			write(name, `${input.value.trim()}\n`).catch((error) => notice(error.message));
		} }, input, element("button", { class: "button" }, "Set"))];
	}

	async function fill() {
		const [on, tracer, tracers, ...values] = await Promise.all(["tracing_on", "current_tracer", "available_tracers",
			...CONTROLS.map(([name]) => name)].map((name) => readControl(name).catch(() => null)));
		const choice = element("select", { id: "tracer", onchange: (event) =>
			write("current_tracer", event.target.value).catch((error) => notice(error.message)) },
			...(tracers ?? "").split(/\s+/).filter(Boolean).map((name) => element("option", { value: name }, name)));
		choice.value = tracer;
		grid.replaceChildren(
			element("span", { title: "/ftrace/tracing_on" }, "Tracing"),
			element("button", { class: "button", type: "button", id: "tracing-on", "aria-pressed": String(on === "1"),
				style: { justifySelf: "start" },
				onclick: () => write("tracing_on", on === "1" ? "0" : "1").catch((error) => notice(error.message)) },
				on === "1" ? "on — click to stop" : "off — click to go on"),
			element("label", { for: "tracer", title: "/ftrace/current_tracer" }, "Tracer"),
			element("span", {}, choice),
			...CONTROLS.flatMap((control, i) => values[i] === null ? [] : field(control, valuesOf(values[i]))), told);
		document.documentElement.dataset.control = `${on} ${tracer}`;
	}

	/* Counts, and how they grow. */
	async function countNow() {
		const now = await readCounts();
		const rows = [...now.counts].map(([name, value]) => [name, value, before && before.counts.has(name) ?
			(value - before.counts.get(name)) / (now.at - before.at) * 1000 : null]);
		const always = new Set(["entries", "overrun", "dropped events", "lost calls"]);
		stats.replaceChildren(table([["What", ([name]) => name, "name"], ["Count", ([, value]) => groups(value)],
			["a second", ([, , rate]) => rate === null ? "" : groups(rate)]],
			rows.filter(([name, value]) => value > 0 || always.has(name)), "stats"));
		before = now;
		document.documentElement.dataset.entries = String(now.counts.get("entries"));
	}

	function tick() {
		countNow().catch(() => stats.replaceChildren("The program has ended, or its server.")).finally(() => {
			timer = setTimeout(tick, 1000);
		});
	}

	return {
		nodes: [element("section", {}, element("h2", {}, "Control ", element("small", {}, "takes effect at once, in the running program")), grid),
			element("section", {}, element("h2", {}, "Records ", element("small", {}, "in the ring: two a call, more or less")), stats),
			element("p", { class: "faint" }, "All control files, as on Linux: ", element("a", { href: `ftrace/${location.search}` }, "/ftrace/"))],
		show() {
			fill().catch((error) => notice(error.message));
			clearTimeout(timer);
			tick();
		},
		key: () => false,
		redraw() {},
		end: () => clearTimeout(timer),
	};
}
