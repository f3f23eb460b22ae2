/* SPDX-License-Identifier: MIT */
/*
 * The runtime-breakdown page: one stacked bar a thread, one colour a function, and a table that is
 * the legend, too. Its data stands in the page (export/html.h says how). Names come from whatever
 * was traced: they reach the page as text only, never as markup, also where plotly would read some.
 */
"use strict";
(function () {
	const data = JSON.parse(document.getElementById("data").textContent);
	const byId = (id) => document.getElementById(id);
	const chart = byId("chart");
	const count = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;
	const dark = matchMedia("(prefers-color-scheme: dark)");

	/* Functions of the chart, the most self time first; behind them what is lumped together. */
	const functions = data.functions.map((f, i) => ({
		index: i, name: f[0], calls: f[1], total: f[2], self: f[3], waits: f[4] === 1, cells: f[5],
		lump: false, shown: true, row: null,
	}));
	for (const o of data.others)
		functions.push({
			index: functions.length, name: `${o.waits ? "other that sleep or wait" : "other"} (` +
				count(o.count, "function") + ")",
			calls: o.calls, total: o.total, self: o.self, waits: o.waits === 1, cells: o.cells,
			lump: true, shown: true, row: null,
		});
	/* What "other" is made of, as far as the page holds it: found by the search only. */
	const rest = data.rest.map((f) => ({ name: f[0], calls: f[1], total: f[2], self: f[3] }));
	/* Of very many threads those with little self time are one bar, which would dwarf the others. */
	const crowd = data.threadsCount - data.threads.length + 1;
	const threads = data.threads.map((t) => t !== null ? String(t) : crowd.toLocaleString("en") + " others");
	let crowdShown = false;

	let sortKey = "self";
	let ascending = false;

	const us = (value) => value.toLocaleString("en", { minimumFractionDigits: 3, maximumFractionDigits: 3 });
	const share = (value) => (data.self > 0 ? 100 * value / data.self : 0).toFixed(2);

	/* Plotly takes <b>, <br>, <a> and %{...} in texts for markup. */
	const plain = (text) => (text.length > 120 ? text.slice(0, 119) + "\u2026" : text)
		.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/%\{/g, "%\u200b{");

	function colour(f) {
		if (f.lump)
			return f.waits ? (dark.matches ? "#7a6a52" : "#d8c9ab") : dark.matches ? "#5b6472" : "#b4bac4";
		/* The golden angle keeps neighbours apart; three shades keep the rounds apart. */
		const hue = (216 + f.index * 137.508) % 360;
		const shade = f.index % 3;
		return `hsl(${hue.toFixed(1)}, ${[62, 52, 70][shade]}%, ${[52, 64, 42][shade]}%)`;
	}

	const shownThreads = () => threads.filter((_, i) => crowdShown || data.threads[i] !== null);

	function bars() {
		return functions.map((f) => {
			const x = [], y = [];
			for (let i = 0; i < f.cells.length; i += 2) {
				if (data.threads[f.cells[i]] === null && !crowdShown)
					continue;
				x.push(threads[f.cells[i]]);
				y.push(f.cells[i + 1]);
			}
			return {
				type: "bar", name: plain(f.name), meta: [plain(f.name)], x, y,
				width: threads.length < 4 ? 0.4 : undefined,
				marker: { color: colour(f), line: { width: 0 } },
				hovertemplate: "%{meta[0]}<br>thread %{x}<br>%{y:,.3f} us<extra></extra>",
				visible: f.shown,
			};
		});
	}

	function layout() {
		const css = getComputedStyle(document.documentElement);
		const text = css.getPropertyValue("--text").trim();
		const line = css.getPropertyValue("--line").trim();
		return {
			autosize: true, barmode: "relative", bargap: 0.25, showlegend: false, hovermode: "closest",
			margin: { l: 80, r: 16, t: 16, b: 56 },
			paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
			modebar: { bgcolor: "rgba(0,0,0,0)", color: css.getPropertyValue("--faint").trim(),
				activecolor: text },
			font: { color: text, family: "system-ui, 'DejaVu Sans', sans-serif", size: 12 },
			xaxis: {
				title: { text: "Thread Idx" }, type: "category", categoryorder: "array",
				categoryarray: shownThreads(), range: [-0.5, shownThreads().length - 0.5],
				linecolor: line,
			},
			yaxis: {
				title: { text: "Latency (us)" }, gridcolor: line, zerolinecolor: line,
				rangemode: "tozero", exponentformat: "none", separatethousands: true,
				automargin: true,
			},
		};
	}

	function cell(row, text, kind) {
		const td = row.insertCell();
		td.textContent = text;
		td.className = kind;
		if (kind === "name")
			td.title = text;
		return td;
	}

	function makeRow(f) {
		const row = document.createElement("tr");
		const swatch = row.insertCell();
		if (functions.includes(f)) {
			const button = document.createElement("button");
			button.type = "button";
			button.style.background = colour(f);
			button.setAttribute("aria-label", "Show " + f.name);
			swatch.append(button);
			row.addEventListener("click", (event) => {
				if (event.detail < 2)
					setShown([f], !f.shown);
			});
			row.addEventListener("dblclick", () => {
				for (const g of functions)
					g.shown = g === f;
				redraw();
			});
		} else {
			row.className = "rest";
		}
		cell(row, f.name, "name");
		cell(row, f.calls.toLocaleString("en"), "number");
		cell(row, us(f.total), "number");
		cell(row, us(f.self), "number");
		cell(row, share(f.self), "number");
		return row;
	}

	/* Rows in order; those of "other" come only when something is searched. */
	function fill() {
		const query = byId("search").value.trim().toLowerCase();
		const found = (f) => f.name.toLowerCase().includes(query);
		const factor = ascending ? 1 : -1;
		const list = functions.filter((f) => query === "" || found(f));
		if (query !== "")
			list.push(...rest.filter(found).slice(0, 500));
		const key = sortKey === "share" ? "self" : sortKey;
		list.sort((a, b) => factor * (key === "name" ? a.name.localeCompare(b.name, "en") :
			a[key] - b[key]) || (a.index ?? 1e9) - (b.index ?? 1e9));
		const rows = list.map((f) => {
			if (!f.row)
				f.row = makeRow(f);
			return f.row;
		});
		byId("legend").replaceChildren(...rows);
		byId("hint").textContent = query !== "" && rows.length === 0 ?
			"No function's name holds that." :
			"Click a function to hide or show it, double-click to see it alone.";
	}

	function mark() {
		let calls = 0, total = 0, self = 0;
		for (const f of functions) {
			f.row.classList.toggle("hidden", !f.shown);
			f.row.querySelector("button").setAttribute("aria-pressed", String(f.shown));
			if (f.shown) {
				calls += f.calls;
				total += f.total;
				self += f.self;
			}
		}
		const cells = byId("sum").cells;
		cells[2].textContent = calls.toLocaleString("en");
		cells[3].textContent = us(total);
		cells[4].textContent = us(self);
		cells[5].textContent = share(self);
		const waiting = functions.filter((f) => f.waits);
		const hidden = waiting.length > 0 && waiting.every((f) => !f.shown);
		byId("waits").setAttribute("aria-pressed", String(hidden));
		byId("waits").disabled = waiting.length === 0;
		byId("waits").textContent = hidden ? "Show what sleeps or waits" : "Hide what sleeps or waits";
		byId("told").textContent = hidden ?
			`Hid ${waiting.length} that sleep or wait, by their names: ` +
			waiting.map((f) => f.name).join(", ") :
			waiting.length === 0 ? "No function here has the name of one that sleeps or waits." : "";
	}

	function redraw() {
		mark();
		return Plotly.restyle(chart, { visible: functions.map((f) => f.shown) }, functions.map((f) => f.index));
	}

	function setShown(list, shown) {
		for (const f of list)
			f.shown = shown;
		return redraw();
	}

	byId("search").addEventListener("input", fill);
	byId("all").addEventListener("click", () => setShown(functions, true));
	byId("none").addEventListener("click", () => setShown(functions, false));
	byId("waits").addEventListener("click", () => {
		const waiting = functions.filter((f) => f.waits);
		setShown(waiting, waiting.every((f) => !f.shown));
	});
	for (const th of document.querySelectorAll("th[data-key]")) {
		th.addEventListener("click", () => {
			ascending = sortKey === th.dataset.key ? !ascending : th.dataset.key === "name";
			sortKey = th.dataset.key;
			for (const other of document.querySelectorAll("th[aria-sort]"))
				other.removeAttribute("aria-sort");
			th.setAttribute("aria-sort", ascending ? "ascending" : "descending");
			fill();
		});
	}
	dark.addEventListener("change", () => Plotly.react(chart, bars(), layout(), config));

	function tellCrowd() {
		const self = functions.reduce((sum, f) => {
			for (let i = 0; i < f.cells.length; i += 2)
				sum += data.threads[f.cells[i]] === null ? f.cells[i + 1] : 0;
			return sum;
		}, 0);
		byId("crowd").hidden = false;
		byId("crowd").firstElementChild.textContent =
			`The chart shows the ${count(threads.length - 1, "thread")} with the most self time. ` +
			`All others together: ${count(crowd, "thread")}, ${us(self)} us.`;
		byId("others").textContent = crowdShown ? "Take their bar away" : "Show them as one bar";
		byId("others").setAttribute("aria-pressed", String(crowdShown));
	}

	byId("others").addEventListener("click", () => {
		crowdShown = !crowdShown;
		tellCrowd();
		Plotly.react(chart, bars(), layout(), config);
	});

	document.title = data.source + " \u2014 self times";
	byId("summary").textContent = `${data.source}: ${count(data.calls, "call")} of ` +
		`${count(data.functionsCount, "function")} in ${count(data.threadsCount, "thread")}, ` +
		`${us(data.self)} us of self time` +
		(data.bad > 0 ? `; ${count(data.bad, "row")} could not be read` : "");

	const config = {
		responsive: true, displaylogo: false,
		modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
	};
	fill();
	mark();
	if (data.threads.includes(null))
		tellCrowd();
	Plotly.newPlot(chart, bars(), layout(), config).then(() => {
		document.documentElement.dataset.ready = "yes";
	});
})();
