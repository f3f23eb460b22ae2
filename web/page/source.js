/* SPDX-License-Identifier: MIT */
/* Where the figures come from: a server (/api/…, export/page/page.h says what it answers), or what stands
 * in the page itself (export/page/format_html.c). Both answer the same questions. */
"use strict";

const names = new Map();

/* Figures of a server. The token of the page's address goes along in a header. */
function makeServer() {
	const token = new URLSearchParams(location.search).get("token");
	const headers = token ? { Authorization: `Bearer ${token}` } : {};

	async function ask(question, parameters, signal) {
		const response = await fetch(`api/${question}?${new URLSearchParams(parameters ?? {})}`,
			{ headers, signal });
		if (!response.ok)
			throw new Error((await response.text()).trim() || `HTTP ${response.status}`);
		return response.json();
	}

	return {
		live: true,
		headers,
		ask,
		async fetchNames(ids) {
			for (let i = 0; i < ids.length; i += 400) {
				const found = await ask("names", { ids: ids.slice(i, i + 400).join(",") });
				for (const [id, name] of Object.entries(found))
					names.set(Number(id), name);
			}
		},
	};
}

/* The boxes that a view of the embedded time line shows: those of [from, to). */
function cutRow(row, from, to) {
	let low = 0, high = row.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (row[middle][0] + row[middle][1] > from)
			high = middle;
		else
			low = middle + 1;
	}
	const boxes = [];
	for (; low < row.length && row[low][0] < to; low++)
		boxes.push([row[low][0] - from, ...row[low].slice(1)]);
	return boxes;
}

/* Figures that stand in the page. */
function makeFile(data) {
	for (const [id, name] of Object.entries(data.names))
		names.set(Number(id), name);
	const all = data.timeline;

	function timeline({ from, to, lanes }) {
		from = Number(from);
		to = Number(to);
		const wanted = new Set(String(lanes).split(",").map(Number));
		return {
			from, to,
			leftOut: all.leftOut ?? 0,
			lanes: all.lanes.filter((lane) => wanted.has(lane.lane)).map((lane) => {
				const first = Math.max(0, Math.floor(from / (lane.offCell ?? 1)));
				return {
					lane: lane.lane,
					offCell: lane.offCell,
					offFrom: first * (lane.offCell ?? 1),
					off: lane.off?.slice(first, Math.ceil(to / lane.offCell)),
					rows: lane.rows.map((row) => cutRow(row, from, to)),
				};
			}),
			moments: all.moments.filter((mark) => mark[0] >= from && mark[0] < to),
		};
	}

	/* Below a path of the embedded flame graph. */
	function flame({ of, path }) {
		const whole = data.flame[of];
		if (!whole)
			throw new Error("This file holds no flame graph of it: open the recording with graftrace serve.");
		let nodes = whole.nodes, above = [], total = whole.all;
		for (const [depth, id] of (path ? path.split(".").map(Number) : []).entries()) {
			const at = nodes.findIndex((node) => node[0] === 0 && node[1] === id);
			if (at < 0)
				throw new Error("This stack is too short to be in this file.");
			let end = at + 1;
			while (end < nodes.length && nodes[end][0] > 0)
				end++;
			above.push([depth, ...nodes[at].slice(1)]);
			total = nodes[at][3];
			nodes = nodes.slice(at + 1, end).map((node) => [node[0] - 1, ...node.slice(1)]);
		}
		return { all: whole.all, total, path: above, nodes, leftOut: whole.leftOut };
	}

	function functions({ sort, q, limit }) {
		const found = data.functions.functions.filter((f) =>
			!q || f.name.toLowerCase().includes(q.toLowerCase()));
		found.sort((a, b) => sort === "name" ? a.name < b.name ? -1 : 1 : b[sort] - a[sort]);
		/* The file has those with the most self time; without a search it is known how many there are. */
		return { found: q ? found.length : data.functions.found, functions: found.slice(0, Number(limit)) };
	}

	function one({ id }) {
		const made = data.function[id] ?? data.functions.functions.find((f) => f.id === Number(id));
		if (!made)
			throw new Error("This file holds no figures of that function: open the recording with graftrace serve.");
		return made;
	}

	/* How long a thread was off the CPU in a window: the file has it by cells of a hundredth part each. */
	function offcpu({ lane, from, to }) {
		const { off, offCell } = all.lanes.find((one) => one.lane === Number(lane)) ?? {};
		let sum = 0;
		for (let i = Math.floor(from / offCell); off && i * offCell < to && i < off.length; i++)
			sum += (Math.min(to, (i + 1) * offCell) - Math.max(from, i * offCell)) * off[i] / 100;
		return { off: Math.round(sum), about: true };
	}

	/* The next call of a function before or behind a time. */
	function find({ id, from, way }) {
		let best = null;
		for (const lane of all.lanes)
			for (const [depth, row] of lane.rows.entries())
				for (const box of row)
					if (box[2] === Number(id) && (way > 0 ? box[0] > from && (!best || box[0] < best.start)
						: box[0] < from && (!best || box[0] > best.start)))
						best = { start: box[0], took: box[1], lane: lane.lane, depth };
		return best ?? {};
	}

	const answers = {
		overview: () => data.overview, timeline, flame, functions, function: one, find, offcpu,
		selftimes: ({ by }) => data.selftimes[by],
	};
	return {
		live: false,
		headers: {},
		ask: async (question, parameters) => answers[question](parameters ?? {}),
		async fetchNames() {},
	};
}

/* In the page stand figures, or where a recording is that the page reads; or a server has figures. */
function makeSource(text) {
	const data = text === "" ? null : JSON.parse(text);

	return !data ? makeServer() : data.recording ? makeRecording(data.recording) : makeFile(data);
}

const source = makeSource(byId("data").textContent.trim());

const nameOf = (id) => names.get(id) ?? `function ${id}`;

/* Makes sure that the names of these functions are known. True: some were not. */
async function learnNames(ids) {
	const unknown = [...new Set(ids)].filter((id) => id >= 0 && !names.has(id));
	if (unknown.length > 0)
		await source.fetchNames(unknown);
	return unknown.length > 0;
}
