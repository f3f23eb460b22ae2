/* SPDX-License-Identifier: MIT */
/* The views that are text and tables: overview, functions, one function. */
"use strict";

const tiles = (list) => element("dl", { class: "tiles" }, ...list.filter(Boolean).map(([what, value, title]) =>
	element("div", { title }, element("dt", {}, what), element("dd", {}, value))));

function problems(overview) {
	return [
		overview.calls === 0 && (overview.lanes.some((lane) => lane.marks) ?
			"No calls were recorded, events alone: the time line shows them." : "No calls were recorded in this time."),
		overview.problem && `${overview.problem[0].toUpperCase()}${overview.problem.slice(1)}.`,
		overview.lost > 0 && `${count(overview.lost, "record")} lost: the calls are not in these figures.`,
		overview.gaps > 0 && `${count(overview.gaps, "part")} of threads' traces missing.`,
		overview.withoutReturn > 0 && `${count(overview.withoutReturn, "call")} did not return while this was recorded: ` +
			"on the time line up to where that was seen, in no function's times.",
		overview.grain > 0 && `So many calls that those shorter than ${duration(overview.grain)} are kept together on the time line.`,
		overview.tooDeep > 0 && `${count(overview.tooDeep, "call")} deeper than 512 levels not on the time line.`,
	].filter(Boolean);
}

/* Of calls within each other that took about as long, the innermost is told: it made the others slow. Outliers are
 * [function, start, took, lane, depth, usual]; the result is {call, around: [outliers, the nearest caller first]}. */
function outOfTheOrdinary(outliers) {
	const isAround = (a, b) => a[3] === b[3] && a[4] < b[4] && a[1] <= b[1] && a[1] + a[2] >= b[1] + b[2] && b[2] * 2 >= a[2];
	const byDepth = (a, b) => b[4] - a[4];
	const inner = outliers.filter((call) => !outliers.some((other) => isAround(call, other)));
	return inner.map((call) => ({ call, around: outliers.filter((other) => isAround(other, call)).sort(byDepth) }));
}

function makeOverview(overview) {
	const started = overview.realtime ? new Date(overview.realtime) : null;
	const lanes = shownLanes(overview).length > 0 ? shownLanes(overview) : overview.lanes;
	const processes = new Set(lanes.map((lane) => lane.pid)).size;
	const threads = new Set(lanes.map((lane) => `${lane.pid}.${lane.tid}`)).size;
	const told = problems(overview);
	const outliers = element("section", {}, element("h2", {}, "Calls that stand out ",
		element("small", {}, "the slowest call of functions that are mostly much faster; not those as long as the run")));
	const top = element("section", {}, element("h2", {}, "Most self time"));

	async function fillTop() {
		const { functions } = await source.ask("functions", { sort: "self", limit: 10 });
		const all = overview.self ?? overview.lanes.reduce((sum, lane) => sum + lane.self, 0);
		top.append(table([
			["Function", (f) => functionLink(f.id, f.name), "name"],
			["Calls", (f) => groups(f.calls)], ["Self", (f) => timeCell(f.self)],
			["", (f) => share(f.self, all), "share optional"],
		], functions, "top"), element("p", {}, element("a", { href: hashOf({ view: "functions" }) }, "All functions")));
	}

	async function fillOutliers() {
		await learnNames(overview.outliers.map((o) => o[0]));
		const told = outOfTheOrdinary(overview.outliers).slice(0, 12);
		if (told.length === 0)
			outliers.append(element("p", { class: "faint" }, "None: no function has a call that took ten times as long as half of its calls."));
		else
			outliers.append(table([
				["Function", ({ call: [id] }) => functionLink(id, nameOf(id)), "name"],
				["Slow callers", ({ around }) => element("span", { title: around.map(([id]) => nameOf(id)).join("\n") },
					around.length === 0 ? "" : cut(shortName(nameOf(around[0][0])), 17) +
						(around.length > 1 ? ` + ${around.length - 1}` : "")), "around optional"],
				["Slowest", ({ call: [, , took] }) => callTimeCell(took)],
				["Half below", ({ call: [, , , , , usual] }) => callTimeCell(Math.max(usual, GRAIN_NS)), "optional"],
				["At", ({ call: [, start] }) => moment(start, overview.length / 1000, overview.length), "optional"],
				["", ({ call: [id, start, took, lane, depth] }) =>
					element("a", { href: callHash(start, took, lane, depth, id) }, "Show")],
			], told, "outliers"));
	}

	const filled = Promise.all([fillTop(), fillOutliers()]);
	filled.catch((error) => notice(error.message));
	return {
		nodes: [
			element("section", {}, element("h2", {}, overview.program ? overview.program.split("/").pop() : "This run"),
				tiles([
					["calls", groups(overview.calls)], ["length", duration(overview.length)],
					["threads", groups(threads)], processes > 1 && ["processes", groups(processes)],
					["functions called", groups(overview.functions)], ["lost records", groups(overview.lost)],
					started && [source.live && byId("live") ? "as of" : "recorded", started.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" })],
					overview.host && ["on", overview.host],
				]),
				overview.command && overview.command !== overview.program && element("p", { class: "mono faint fullname", id: "command", tabindex: "0", title: "the command that was traced" }, overview.command),
				...told.map((text) => element("p", { class: "faint" }, text)),
				element("div", { class: "tools" },
					element("a", { class: "button", href: hashOf({ view: "timeline" }) }, "Time line: what happened when"),
					element("a", { class: "button", href: hashOf({ view: "flame" }) }, "Flame graph: where the time went"))),
			element("div", { class: "columns" }, outliers, top),
			makeBars(overview),
		],
		filled,
		show() {},
		key: () => false,
		redraw() {},
		end() {},
	};
}

/* The table of all functions. */
function makeFunctions(overview, go) {
	const columns = [["name", "Function"], ["calls", "Calls"], ["total", "Total"], ["self", "Self"], ["average", "Average"],
		["p99", "99 % below"], ["max", "Slowest"]];
	const search = element("input", { type: "search", id: "filter", placeholder: "Part of a name", "aria-label": "Part of a name",
		oninput: () => go({ q: search.value || null }, true) });
	const told = element("span", { class: "faint" });
	const body = element("tbody", {});
	const heads = columns.map(([key, title]) => element("th", { scope: "col", class: key === "name" ? "name" :
		key === "average" || key === "p99" ? "optional" : null, "data-key": key },
		element("button", { type: "button", onclick: () => go({ sort: key }, false) }, title)));
	const whole = element("section", {}, element("h2", {}, "Functions ",
		element("small", {}, "total: with all that they call, recursion once; self: without")),
		element("div", { class: "tools" }, search, told),
		element("div", { class: "scroll" }, element("table", { id: "functions" },
			element("thead", {}, element("tr", {}, ...heads)), body)));
	let asked = 0;

	async function ask(state) {
		const mine = ++asked;
		const got = await source.ask("functions", { sort: state.sort ?? "self", q: state.q ?? "", limit: 500 });
		if (mine !== asked)
			return;
		for (const head of heads)
			head.toggleAttribute("aria-sort", false);
		const sorted = heads.find((head) => head.dataset.key === (state.sort ?? "self"));
		sorted?.setAttribute("aria-sort", sorted.dataset.key === "name" ? "ascending" : "descending");
		told.textContent = got.found > got.functions.length ? `${groups(got.found)} functions, the first ${got.functions.length} are shown` :
			count(got.found, "function");
		body.replaceChildren(...got.functions.map((f) => element("tr", {},
			element("td", { class: "name" }, functionLink(f.id, f.name)), element("td", {}, groups(f.calls)),
			element("td", {}, timeCell(f.total)), element("td", {}, timeCell(f.self)),
			element("td", { class: "optional" }, timeCell(f.average)),
			element("td", { class: "optional" }, callTimeCell(f.p99)), element("td", {}, callTimeCell(f.max)))));
		document.documentElement.dataset.functions = `${state.sort ?? "self"} ${state.q ?? ""}`;
	}

	return {
		nodes: [whole],
		show(state) {
			if (search.value !== (state.q ?? ""))
				search.value = state.q ?? "";
			ask(state).catch((error) => notice(error.message));
		},
		key: () => false,
		redraw() {},
		end() {},
	};
}

/* How the durations are distributed: each bar is a quarter of the way to twice the time. */
function histogram(times) {
	/* How long calls took that are below the clock's grain is not known: one bar is of them all. */
	const short = times.filter(([, to]) => to <= GRAIN_NS + 4);
	if (short.length > 0)
		times = [[0, short.at(-1)[1], short.reduce((sum, [, , calls]) => sum + calls, 0)], ...times.slice(short.length)];
	const most = Math.max(1, ...times.map((t) => t[2]));
	const bars = [];
	let at = times[0][0];
	for (const [from, to, calls] of times) {
		/* Times that no call took have their place, too. */
		for (let gaps = 0; at < from && gaps < 60; gaps++) {
			bars.push(element("span", { style: { height: "0" } }));
			at = at < 32 ? at + 8 : at * 1.19;
		}
		bars.push(element("span", { style: { height: `${Math.max(2, 100 * Math.sqrt(calls / most))}%` },
			onpointermove: (event) => tip(event, count(calls, "call"), [`took ${duration(from)} to ${duration(to)}`]),
			onpointerleave: noTip }));
		at = to;
	}
	return [element("div", { class: "hist", id: "hist", role: "img", "aria-label": "Distribution of durations" }, ...bars),
		element("div", { class: "hist-axis" }, element("span", {}, duration(times[0][0])),
			element("span", {}, "how long the calls took (height: root of their number)"), element("span", {}, duration(times.at(-1)[1])))];
}

/* All about one function. */
function makeFunction(overview, go) {
	const whole = element("div", {});

	const neighbours = (title, help, list, id, none) => element("section", {}, element("h2", {}, title, " ", element("small", {}, help)),
		list?.length ? table([
			["Function", ([other]) => other < 0 ? element("span", { class: "faint" }, "(outermost)") : functionLink(other, nameOf(other)), "name"],
			["Calls", ([, calls]) => groups(calls)], ["Time", ([, , total]) => timeCell(total)],
		], list.slice(0, 100), id) : element("p", { class: "faint" }, none));

	async function ask(id) {
		const f = await source.ask("function", { id });
		names.set(f.id, f.name);
		await learnNames([...(f.callers ?? []), ...(f.callees ?? [])].map((other) => other[0]));
		const left = f.calls - f.returned;
		whole.replaceChildren(
			element("section", {},
				element("h2", { class: "mono fullname", id: "name" }, f.name),
				f.object && element("p", { class: "faint fullname" }, `in ${f.object}`),
				f.file && element("p", { class: "fullname", id: "source" }, `${f.file}:${f.line} `, f.source && element("code", {}, f.source)),
				tiles([["calls", groups(f.calls)], ["total", timeCell(f.total), "with all that it calls; recursion counts once"],
					["self", timeCell(f.self), "without what it calls"],
					overview.offCpu && ["of self, off the CPU", timeCell(f.off), "sleeping, waiting, or put aside for others"],
					["average", timeCell(f.average)]]),
				tiles([["fastest", callTimeCell(f.min)], ["half below (p50)", callTimeCell(f.p50)], ["90 % below", callTimeCell(f.p90)],
					["99 % below", callTimeCell(f.p99)], ["slowest", callTimeCell(f.max)]]),
				left > 0 && element("p", { class: "faint" }, `${count(left, "call")} without a known end: in no time here.`),
				f.selfUpper > 0 && element("p", { class: "faint" }, `Within ${count(f.selfUpper, "call")} records are missing: self is at most this.`),
				element("div", { class: "tools" },
					element("a", { class: "button", href: hashOf({ view: "timeline", lit: f.id }) }, "Light it up on the time line"),
					element("a", { class: "button", href: hashOf({ view: "flame", lit: f.id }) }, "Light it up in the flame graph"))),
			element("div", { class: "columns" },
				element("section", {}, element("h2", {}, "How long its calls take"),
					...(f.times?.length ? histogram(f.times) : [element("p", { class: "faint" }, "No call is known from begin to end.")])),
				element("section", {}, element("h2", {}, "Slowest calls"), table([
					["Took", ([, took]) => callTimeCell(took)], ["At", ([start]) => moment(start, 1e3, overview.length)],
					["Thread", ([, , lane]) => laneName(overview.lanes[lane]), "name"],
					...valueColumns(f.slowest ?? []),
					["", ([start, took, lane, depth]) => element("a", { href: callHash(start, took, lane, depth, f.id) }, "Show")],
				], f.slowest ?? [], "slowest"))),
			element("div", { class: "columns" },
				neighbours("Callers", "who calls it", f.callers, "callers", "Not in this file."),
				neighbours("Callees", "whom it calls", f.callees, "callees", "It calls no traced function.")),
			(f.lanes?.length ?? 0) > 1 ? element("section", {}, element("h2", {}, "By thread"), table([
				["Thread", ([lane]) => laneName(overview.lanes[lane]), "name"], ["Calls", ([, calls]) => groups(calls)],
				["Total", ([, , total]) => timeCell(total)], ["Self", ([, , , self]) => timeCell(self)],
			], f.lanes.slice(0, 200), "by-thread")) : "");
		document.documentElement.dataset.function = String(id);
	}

	return {
		nodes: [whole],
		show(state) {
			ask(state.id).catch((error) => {
				whole.replaceChildren(element("p", {}, error.message));
			});
		},
		key: () => false,
		redraw() {},
		end() {},
	};
}
