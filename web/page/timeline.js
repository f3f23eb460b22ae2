/* SPDX-License-Identifier: MIT */
/* The time line: for each stack of calls a band of rows, one a depth. It draws what it has at once, and
 * asks for what the window shows when that has come to rest. */
"use strict";

const ROW = 17, BAND_HEAD = 20, MARK_ROW = 15, OFF_STRIP = 5, BAND_GAP = 6;

function makeTimeline(overview, go) {
	const length = Math.max(overview.length, 1);
	const lanes = shownLanes(overview);
	const several = new Set(lanes.map((lane) => lane.pid)).size > 1;
	/* Processes as they began, and their stacks as they did. */
	const began = new Map();
	for (const lane of lanes)
		began.set(lane.pid, Math.min(began.get(lane.pid) ?? Infinity, lane.first));
	lanes.sort((a, b) => began.get(a.pid) - began.get(b.pid) || a.pid - b.pid || (b.tid === b.pid) - (a.tid === a.pid) ||
		a.first - b.first || a.lane - b.lane);
	/* As many levels at first as fit, but some of each. */
	let shownRows = 3;
	const bands = lanes.map((lane) => ({ lane, rows: Math.min(lane.depth, shownRows), top: 0, height: 0 }));
	const byLane = new Map(bands.map((band) => [band.lane.lane, band]));

	const axis = element("canvas", { id: "axis", "aria-hidden": "true" });
	const canvas = element("canvas", { id: "timeline", tabindex: "0", role: "img",
		"aria-label": "Time line. Keys: W and S zoom, A and D move, arrows too; F shows the chosen call." });
	const spacer = element("div", {});
	const box = element("div", { class: "canvas-box" }, canvas, spacer);
	const detail = element("div", { id: "detail", hidden: true });
	const told = element("span", { class: "told", id: "window" });
	const button = (text, title, act) => element("button", { class: "button", type: "button", title, onclick: act }, text);
	const tools = element("div", { class: "tools" },
		button("+", "Zoom in (W, or the wheel)", () => zoom(0.5)),
		button("−", "Zoom out (S)", () => zoom(2)),
		button("◀", "Earlier (A)", () => pan(-0.5)),
		button("▶", "Later (D)", () => pan(0.5)),
		button("Whole run", "Home", () => setWindow(0, length)),
		told, element("span", { class: "grow" }),
		element("span", { class: "faint optional" }, "Wheel zooms, drag moves, click shows details, double click fills the window",
			...(overview.offCpu ? ["; ", element("i", { class: "swatch" }), " above the calls: off the CPU"] : [])));
	const whole = element("div", { style: { display: "contents" } }, tools, axis, box, detail);

	let from = 0, to = length, chosen = null, lit = null;
	let answer = null, wanted = 0, asking = null, frame = 0, drawnRows = [];

	/* Places */

	let fitted = false;
	function fit() {
		if (fitted || box.clientHeight === 0)
			return;
		fitted = true;
		const room = box.clientHeight / Math.max(lanes.length, 1) - BAND_HEAD - OFF_STRIP - BAND_GAP -
			(lanes.some((lane) => lane.marks) ? MARK_ROW : 0);
		shownRows = Math.max(shownRows, Math.min(60, Math.floor(room / ROW)));
		for (const band of bands)
			band.rows = Math.max(band.rows, Math.min(band.lane.depth, shownRows));
	}

	/* The thread's name, and below it its marks. */
	const headOf = (band) => BAND_HEAD + (band.lane.marks ? MARK_ROW : 0);

	function layOut() {
		let top = 4;
		fit();
		for (const band of bands) {
			band.top = top;
			band.height = headOf(band) + (overview.offCpu ? OFF_STRIP : 0) + band.rows * ROW + BAND_GAP;
			top += band.height;
		}
		spacer.style.height = `${Math.max(0, top + 8 - box.clientHeight)}px`;
	}

	const rowTop = (band, depth) => band.top + headOf(band) + (overview.offCpu ? OFF_STRIP : 0) + depth * ROW;
	const visible = () => bands.filter((band) => band.top < box.scrollTop + box.clientHeight &&
		band.top + band.height > box.scrollTop);
	const toX = (ns, width) => (ns - from) / (to - from) * width;

	/* The window */

	function clamp(a, b) {
		const most = length * 1.02 + 10, least = -most * 0.02;
		const span = Math.min(Math.max(b - a, 20), most - least);
		a = Math.min(Math.max(a, least), most - span);
		return [a, a + span];
	}

	function setWindow(a, b, replace) {
		[from, to] = clamp(a, b);
		draw();
		askSoon();
		go({ from: Math.max(0, Math.round(from)), to: Math.round(to) }, replace ?? true);
	}

	function zoom(factor, at) {
		const middle = at ?? (chosen && chosen.start < to && chosen.start + chosen.took > from ?
			Math.min(Math.max(chosen.start + chosen.took / 2, from), to) : (from + to) / 2);
		setWindow(middle - (middle - from) * factor, middle + (to - middle) * factor);
	}

	function pan(part) {
		setWindow(from + (to - from) * part, to + (to - from) * part);
	}

	/* What the window shows is asked for a moment after it has come to rest. */
	function askSoon() {
		clearTimeout(wanted);
		wanted = setTimeout(ask, 25);
	}

	async function ask() {
		const seen = visible().slice(0, 60);
		const parameters = {
			from: Math.max(0, Math.floor(from)), to: Math.max(Math.ceil(to), 1), width: Math.max(box.clientWidth, 100),
			lanes: seen.map((band) => band.lane.lane).join(","),
			rows: Math.max(1, ...seen.map((band) => Math.min(band.rows, 96))),
		};
		asking?.abort();
		asking = new AbortController();
		try {
			const got = await source.ask("timeline", parameters, asking.signal);
			answer = got;
			answer.byLane = new Map(got.lanes.map((lane) => [lane.lane, lane]));
			draw();
			showDetail();
			const ids = got.lanes.flatMap((lane) => lane.rows.flatMap((row) => row.map((b) => b[2])));
			if (await learnNames(ids))
				draw();
		} catch (error) {
			if (error.name !== "AbortError")
				notice(`The time line cannot be read: ${error.message}`);
		}
	}

	/* Drawing */

	function prepare(target, height) {
		const ratio = devicePixelRatio || 1, width = target.parentNode?.clientWidth || innerWidth;
		if (target.width !== Math.round(width * ratio) || target.height !== Math.round(height * ratio)) {
			target.width = Math.round(width * ratio);
			target.height = Math.round(height * ratio);
			target.style.height = `${height}px`;
		}
		const context = target.getContext("2d");
		context.setTransform(ratio, 0, 0, ratio, 0, 0);
		context.clearRect(0, 0, width, height);
		return [context, width];
	}

	function niceStep(span, pieces) {
		const raw = span / pieces, power = 10 ** Math.floor(Math.log10(raw));
		return Math.max(1, [1, 2, 5, 10].find((n) => n * power >= raw) * power);
	}

	function drawAxis() {
		const [context, width] = prepare(axis, 40);
		const step = niceStep(to - from, Math.max(2, width / 130));
		/* The whole run, and the window within it. */
		context.fillStyle = css("--line");
		context.fillRect(0, 4, width, 8);
		context.fillStyle = css("--strong");
		const left = Math.max(0, from / length * width), right = Math.min(width, to / length * width);
		context.fillRect(Math.min(left, width - 3), 2, Math.max(3, right - left), 12);
		context.fillStyle = css("--text");
		context.strokeStyle = css("--line");
		context.font = "12px system-ui, sans-serif";
		context.textBaseline = "middle";
		for (let at = Math.max(0, Math.ceil(from / step) * step); at <= to; at += step) {
			const x = Math.round(toX(at, width)) + 0.5;
			context.beginPath();
			context.moveTo(x, 18);
			context.lineTo(x, 40);
			context.stroke();
			context.fillText(moment(at, step, to), x + 4, 29);
		}
		told.textContent = bands.length > 0 ? `${duration(Math.max(0, Math.min(to, length) - Math.max(from, 0)))} of ${duration(length)}` : "";
	}

	/* What stands in a box that has room for so many characters. */
	function labelOf(b, several, most) {
		const name = shortName(nameOf(b[2])), calls = several ? `${groups(b[3])} calls` : "", before = several ? `${calls}, mostly ` : "";
		return most - before.length >= 9 || !several ? before + cut(name, most - before.length) : cut(calls, most);
	}

	function drawBoxes(context, width, row, base, y, into) {
		const scale = width / (to - from);
		let last = -1;
		for (const b of row) {
			const start = base + b[0], x = (start - from) * scale, w = b[1] * scale;
			if (x > width || x + w < 0)
				continue;
			const left = Math.max(x, -2), right = Math.min(x + w, width + 2);
			if (right <= last && right - left < 0.5)
				continue;
			const several = (b[3] ?? 1) > 1;
			context.globalAlpha = several ? 0.35 + 0.65 * Math.min(1, b[5] / Math.max(b[1], 1)) : 1;
			context.fillStyle = colour(b[2], lit !== null && lit !== b[2]);
			const drawn = Math.max(right - left - (right - left > 3 ? 1 : 0), 0.8);
			context.fillRect(left, y, drawn, ROW - 2);
			context.globalAlpha = 1;
			if (b[4] & 1 && x + w <= width + 2) {
				context.fillStyle = css("--mark");
				context.fillRect(left + drawn - 2, y, 2, ROW - 2);
			}
			last = left + drawn;
			into.push({ x: left, w: drawn, start, took: b[1], id: b[2], count: b[3] ?? 1, flags: b[4] ?? 0, busy: several ? b[5] : b[1],
				calledWith: several ? null : b[5], returned: several ? null : b[6] });
			if (drawn > 30) {
				context.fillStyle = css("--text");
				context.fillText(labelOf(b, several, Math.floor((drawn - 5) / 6.93)), left + 3, y + ROW / 2);
			}
		}
	}

	function drawBand(context, width, band, scrolled) {
		const y = band.top - scrolled, seen = answer?.byLane.get(band.lane.lane);
		const lane = band.lane, more = lane.depth > band.rows;
		context.font = "600 12.5px system-ui, sans-serif";
		context.fillStyle = css("--text");
		context.fillText(`${lane.depth > shownRows || more && band.rows === 0 ? more ? "▸ " : "▾ " : ""}${laneName(lane)}`, 6, y + BAND_HEAD / 2);
		const begin = 12 + context.measureText(`▸ ${laneName(lane)}`).width;
		context.font = "12px system-ui, sans-serif";
		context.fillStyle = css("--faint");
		const deeper = more && band.rows > 0 ? `${count(lane.depth - band.rows, "more level")}: click` : "";
		const told = (several ? `process ${lane.pid}: ` : "") + (lane.calls > 0 ? `${count(lane.calls, "call")}, ${duration(lane.self)} in them` : count(lane.marks, "event")) +
			(lane.off > 0 ? `, of that ${duration(lane.off)} off the CPU` : "");
		/* Where there is no room for all, it is the end that is cut off. */
		context.fillText((width < 700 ? [deeper, told] : [told, deeper]).filter((part) => part).join(" — "), begin + 6, y + BAND_HEAD / 2);
		if (!seen) {
			if (answer?.leftOut && band.rows > 0)
				context.fillText("Its calls are not in this file: open the recording with graftrace serve.", 6,
					rowTop(band, 0) - scrolled + ROW / 2);
			return;
		}
		if (seen.off) {
			const first = seen.offFrom ?? answer.from;
			context.fillStyle = css("--mark");
			for (const [i, part] of seen.off.entries()) {
				const x = toX(first + i * seen.offCell, width), w = seen.offCell / (to - from) * width;
				if (part > 0 && x < width && x + w > 0) {
					context.globalAlpha = Math.max(0.15, part / 100);
					context.fillRect(x, y + headOf(band), w + 0.4, OFF_STRIP - 2);
				}
			}
			context.globalAlpha = 1;
		}
		context.font = "11.5px ui-monospace, 'DejaVu Sans Mono', monospace";
		for (let depth = 0; depth < Math.min(band.rows, seen.rows.length); depth++) {
			const top = rowTop(band, depth) - scrolled;
			if (top < -ROW || top > box.clientHeight)
				continue;
			const into = [];
			drawBoxes(context, width, seen.rows[depth], answer.from, top, into);
			drawnRows.push({ y: top, band, depth, boxes: into });
		}
	}

	function drawChosen(context, width, scrolled) {
		const band = chosen && byLane.get(chosen.lane);
		if (!band || chosen.depth >= band.rows)
			return;
		const x = toX(chosen.start, width), w = Math.max(chosen.took / (to - from) * width, 3);
		context.strokeStyle = css("--text");
		context.lineWidth = 2;
		context.strokeRect(Math.max(x, -5), rowTop(band, chosen.depth) - scrolled - 1, Math.min(w, width + 10 - Math.max(x, -5)), ROW);
		context.lineWidth = 1;
	}

	/* Beside the line, where there is room: below the thread's name. */
	function drawLoss(context, width, x, y, text) {
		const wide = context.measureText(text).width, left = x + wide + 9 > width ? x - wide - 7 : x + 3;
		context.fillStyle = css("--card");
		context.fillRect(left, y, wide + 6, ROW - 2);
		context.fillStyle = css("--mark");
		context.fillText(text, left + 3, y + ROW / 2);
	}

	/* Each mark is a line in its row. Where there is room until the next one, its text stands beside it, and the line
	 * goes on through the calls. */
	function drawMoments(context, width, scrolled) {
		const nextX = new Map();
		context.font = "12px system-ui, sans-serif";
		for (const [at, lane, lost, value, text] of (answer?.moments ?? []).toReversed()) {
			const band = byLane.get(lane), x = toX(at, width);
			if (!band || x < 0 || x > width)
				continue;
			const y = band.top - scrolled + BAND_HEAD, bottom = band.top - scrolled + band.height - BAND_GAP;
			context.fillStyle = css("--mark");
			if (lost) {
				context.fillRect(x, y, 1.5, bottom - y);
				drawLoss(context, width, x, rowTop(band, 0) - scrolled, value ? `${groups(value)} lost` : "a part is missing");
				continue;
			}
			const room = Math.min(nextX.get(lane) ?? Infinity, width) - x - 6;
			nextX.set(lane, x);
			context.fillRect(x, y, 1.5, room > 40 ? bottom - y : MARK_ROW - 2);
			const most = Math.floor(room / 7);
			if (room > 40)
				context.fillText(text.length > most ? text.slice(0, most - 1) + "…" : text, x + 4, y + MARK_ROW / 2);
		}
	}

	function drawNow() {
		frame = 0;
		if (!canvas.isConnected)
			return;
		layOut();
		drawAxis();
		const [context, width] = prepare(canvas, box.clientHeight), scrolled = box.scrollTop;
		context.textBaseline = "middle";
		drawnRows = [];
		for (const band of visible())
			drawBand(context, width, band, scrolled);
		if (bands.length === 0) {
			context.font = "14px system-ui, sans-serif";
			context.fillStyle = css("--faint");
			context.fillText("No calls and no events were recorded.", 16, 24);
		}
		drawMoments(context, width, scrolled);
		drawChosen(context, width, scrolled);
		document.documentElement.dataset.timeline = answer ? `${Math.round(from)}-${Math.round(to)}` : "";
	}

	function draw() {
		if (!frame)
			frame = requestAnimationFrame(drawNow);
	}

	/* The pointer */

	function hit(event) {
		const { left, top } = canvas.getBoundingClientRect();
		const x = event.clientX - left, y = event.clientY - top;
		const row = drawnRows.find((r) => y >= r.y && y < r.y + ROW);
		const found = row?.boxes.findLast((b) => x >= b.x - 1 && x < b.x + Math.max(b.w, 2));
		return found ? { ...found, lane: row.band.lane.lane, depth: row.depth } : null;
	}

	/* The strip that says when the thread was off the CPU. */
	function hoverOff(event) {
		const { left, top } = canvas.getBoundingClientRect(), y = event.clientY - top + box.scrollTop;
		const band = bands.find((b) => y >= b.top + headOf(b) - 2 && y < b.top + headOf(b) + OFF_STRIP);
		const seen = band && answer?.byLane.get(band.lane.lane);
		if (!seen?.off)
			return noTip();
		const at = from + (event.clientX - left) / canvas.clientWidth * (to - from);
		const part = seen.off[Math.floor((at - (seen.offFrom ?? answer.from)) / seen.offCell)];
		if (part === undefined)
			return noTip();
		tip(event, `${part} % of ${duration(seen.offCell)} off the CPU`, [
			`${laneName(band.lane)} slept, waited or was put aside`, `at ${moment(at, Math.max(1, (to - from) / 1000))}`]);
	}

	/* A mark or an event: its line, or its text, which is cut there. */
	function hoverMoment(event) {
		const bounds = canvas.getBoundingClientRect(), x = event.clientX - bounds.left;
		const y = event.clientY - bounds.top + box.scrollTop;
		const band = bands.find((b) => y >= b.top + BAND_HEAD && y < b.top + b.height);
		const reach = band && y < band.top + headOf(band) - 2 ? 240 : 3;
		const found = (answer?.moments ?? []).filter((mark) => mark[1] === band?.lane.lane).map((mark) =>
			({ mark, far: x - toX(mark[0], canvas.clientWidth) })).filter(({ far }) => far > -4 && far < reach)
			.sort((a, b) => Math.abs(a.far) - Math.abs(b.far))[0];
		if (!found)
			return false;
		const [at, , lost, value, text] = found.mark;
		tip(event, lost ? value ? `${groups(value)} records lost` : "a part is missing" : text, [
			`at ${moment(at, Math.max(1, (to - from) / 1000))}, ${laneName(band.lane)}`]);
		return true;
	}

	/* Arguments and results, where they were recorded, of a call of the answer. */
	function valueLines(at) {
		return [...(typeof at.calledWith === "string" ? [`called with ${at.calledWith || "nothing"}`] : []),
			...(typeof at.returned === "string" ? [`returned ${at.returned}`] : [])];
	}

	function valuesOf(at) {
		const row = answer?.byLane.get(at.lane)?.rows[at.depth] ?? [];
		const b = row.find((one) => answer.from + one[0] === at.start && (one[3] ?? 1) === 1);
		return b ? { calledWith: b[5], returned: b[6] } : {};
	}

	function hover(event) {
		const at = hit(event);
		canvas.style.cursor = at ? "pointer" : "";
		if (!at)
			return hoverMoment(event) || hoverOff(event);
		const lines = at.count > 1 ? [`${groups(at.count)} short calls drawn as one: zoom in to see each`,
			`${duration(at.busy)} in calls, within ${duration(at.took)}`] : [`took ${callTime(at.took)}`];
		const tell = (off) => tip(event, at.count > 1 ? `mostly ${shortName(nameOf(at.id))}` : shortName(nameOf(at.id)), [...lines,
			...(off ? [offWords(off, at.took)] : []), `at ${moment(at.start, Math.max(1, (to - from) / 1000))}, ${laneName(byLane.get(at.lane).lane)}`,
			...valueLines(at), ...(at.flags & 1 ? ["it did not return, as far as this was recorded"] : [])]);
		const mine = ++hovered;
		tell(offKnown.get(offKey(at)));
		if (!offKnown.has(offKey(at)))
			learnOff(at).then((off) => off && mine === hovered && !byId("tip").hidden && tell(off));
	}

	/* The time of a call that its thread was off the CPU is asked for once. */
	const offKnown = new Map();
	const offKey = (at) => `${at.lane} ${at.start} ${at.took}`;
	let hovered = 0;

	async function learnOff(at) {
		if (!overview.offCpu)
			return null;
		const off = await source.ask("offcpu", { lane: at.lane, from: at.start, to: at.start + at.took }).catch(() => null);
		if (offKnown.size > 5000)
			offKnown.clear();
		offKnown.set(offKey(at), off);
		return off;
	}

	function offWords({ off, about }, took) {
		const some = about && off > 0 && off < took ? "about " : "";
		return `${some}${duration(Math.max(0, took - off))} on the CPU, ${some}${duration(Math.min(off, took))} off it`;
	}

	function showDetail() {
		detail.hidden = chosen === null;
		if (chosen === null)
			return;
		const at = chosen, lane = byLane.get(at.lane)?.lane, values = valuesOf(at), off = offKnown.get(offKey(at));
		if (overview.offCpu && !offKnown.has(offKey(at)))
			learnOff(at).then((known) => known && chosen === at && showDetail());
		detail.replaceChildren(
			element("div", { class: "mono name", title: nameOf(at.id) }, shortName(nameOf(at.id))),
			element("dl", { class: "tiles" }, ...[
				["took", callTime(at.took)],
				...(off ? [["off the CPU", (off.about && off.off > 0 && off.off < at.took ? "about " : "") + duration(Math.min(off.off, at.took))]] : []),
				["began at", moment(at.start, Math.max(1, at.took / 1000), length)],
				["thread", lane ? laneName(lane) : "?"], ["depth", String(at.depth)],
				...(at.count > 1 ? [["calls drawn as one", groups(at.count)]] : []),
				...(typeof values.calledWith === "string" ? [["called with", values.calledWith || "nothing"]] : []),
				...(typeof values.returned === "string" ? [["returned", values.returned]] : []),
			].map(([what, value]) => element("div", {}, element("dt", {}, what), element("dd", {}, value)))),
			element("div", { class: "tools", style: { padding: "0", border: "0" } },
				button("Zoom to it (F)", "Fills the window with this call", fill),
				button("◀ call before (P)", "The call of this function before", () => step(-1)),
				button("next call ▶ (N)", "The next call of this function", () => step(1)),
				element("a", { class: "button", href: hashOf({ view: "function", id: at.id }) }, "All calls of this function"),
				element("a", { class: "button", href: hashOf({ view: "flame", of: `lane:${at.lane}` }) }, "Flame graph of this thread"),
				button("Close", "Escape", () => choose(null))));
	}

	function choose(at) {
		chosen = at;
		showDetail();
		go({ sel: at ? [at.lane, at.depth, at.start, at.took, at.id, at.count].join(".") : null }, true);
		draw();
		askSoon();
	}

	function fill() {
		if (chosen)
			setWindow(chosen.start - Math.max(chosen.took * 0.08, 10), chosen.start + Math.max(chosen.took * 1.08, 20), false);
	}

	/* Makes room for a call's row, and scrolls to it and to some of what it calls. */
	function reveal(at) {
		const band = byLane.get(at.lane);
		if (!band)
			return;
		band.rows = Math.max(band.rows, Math.min(at.depth + 4, band.lane.depth));
		layOut();
		const top = rowTop(band, at.depth);
		const bottom = rowTop(band, Math.min(at.depth + 4, band.rows));
		if (top < box.scrollTop + BAND_HEAD || bottom > box.scrollTop + box.clientHeight)
			box.scrollTop = Math.max(0, Math.min(band.top - 4, top - box.clientHeight / 2));
	}

	async function step(way) {
		const found = await source.ask("find", { id: chosen.id, from: chosen.start, way });
		if (found.start === undefined)
			return notice(way > 0 ? "That was the last call of this function." : "That was the first call of this function.");
		notice("");
		const span = to - from;
		reveal(found);
		choose({ lane: found.lane, depth: found.depth, start: found.start, took: found.took, id: chosen.id, count: 1 });
		if (found.start < from || found.start + found.took > to)
			setWindow(found.start + found.took / 2 - span / 2, found.start + found.took / 2 + span / 2);
	}

	canvas.addEventListener("pointermove", (event) => {
		if (!drag)
			return hover(event);
		const width = canvas.clientWidth, moved = (event.clientX - drag.x) / width * (drag.to - drag.from);
		drag.far ||= Math.abs(event.clientX - drag.x) + Math.abs(event.clientY - drag.y) > 4;
		if (!drag.far)
			return;
		canvas.classList.add("drag");
		box.scrollTop = drag.scroll - (event.clientY - drag.y);
		setWindow(drag.from - moved, drag.to - moved);
	});
	let drag = null;
	canvas.addEventListener("pointerdown", (event) => {
		if (event.button !== 0)
			return;
		noTip();
		drag = { x: event.clientX, y: event.clientY, from, to, scroll: box.scrollTop, far: false };
		canvas.setPointerCapture(event.pointerId);
	});
	canvas.addEventListener("pointerup", (event) => {
		const was = drag;
		drag = null;
		canvas.classList.remove("drag");
		if (!was || was.far)
			return;
		const at = hit(event), y = event.clientY - canvas.getBoundingClientRect().top + box.scrollTop;
		const band = bands.find((b) => y >= b.top && y < b.top + BAND_HEAD);
		if (at) {
			choose(at);
		} else if (band) {
			band.rows = band.rows < band.lane.depth ? Math.min(band.lane.depth, 96) :
				band.lane.depth > shownRows ? shownRows : band.rows;
			draw();
			askSoon();
		}
	});
	canvas.addEventListener("dblclick", () => fill());
	canvas.addEventListener("pointerleave", noTip);
	canvas.addEventListener("wheel", (event) => {
		event.preventDefault();
		const at = from + (event.clientX - canvas.getBoundingClientRect().left) / canvas.clientWidth * (to - from);
		if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))
			pan((event.deltaX || event.deltaY) / 800);
		else
			zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300))), at);
	}, { passive: false });
	axis.addEventListener("pointerdown", (event) => {
		const at = (event.clientX - axis.getBoundingClientRect().left) / axis.clientWidth;
		if (event.offsetY < 16)
			setWindow(at * length - (to - from) / 2, at * length + (to - from) / 2);
	});
	box.addEventListener("scroll", () => {
		draw();
		askSoon();
	});
	const watcher = new ResizeObserver(() => {
		draw();
		askSoon();
	});
	watcher.observe(box);

	const keys = {
		w: () => zoom(0.5), s: () => zoom(2), a: () => pan(-0.25), d: () => pan(0.25),
		ArrowLeft: () => pan(-0.25), ArrowRight: () => pan(0.25), "+": () => zoom(0.5), "-": () => zoom(2),
		ArrowUp: () => box.scrollBy(0, -60), ArrowDown: () => box.scrollBy(0, 60),
		Home: () => setWindow(0, length), 0: () => setWindow(0, length),
		f: fill, n: () => chosen && step(1), p: () => chosen && step(-1), Escape: () => choose(null),
	};

	return {
		whole: true,
		nodes: [whole],
		/* What the address says. */
		show(state) {
			const sel = state.sel?.split(".").map(Number);
			lit = state.lit === undefined ? null : Number(state.lit);
			[from, to] = clamp(Number(state.from ?? 0), Number(state.to ?? length));
			chosen = sel?.length >= 5 && sel.every((n) => n >= 0) ?
				{ lane: sel[0], depth: sel[1], start: sel[2], took: sel[3], id: sel[4], count: sel[5] ?? 1 } : null;
			/* The details take room from the rows: they come first. */
			showDetail();
			if (chosen) {
				reveal(chosen);
				learnNames([chosen.id]).then(() => {
					showDetail();
					if (chosen)
						reveal(chosen);
				});
			}
			if (state.lane !== undefined && byLane.has(Number(state.lane))) {
				const band = byLane.get(Number(state.lane));
				band.rows = Math.min(band.lane.depth, 96);
				layOut();
				box.scrollTop = band.top - 4;
			}
			draw();
			ask();
		},
		key: (event) => keys[event.key]?.() !== undefined || event.key in keys,
		redraw: draw,
		boxes: () => drawnRows.flatMap((row) => row.boxes.map((b) => ({ ...b, y: row.y, lane: row.band.lane.lane,
			depth: row.depth, name: nameOf(b.id) }))),
		end() {
			watcher.disconnect();
			asking?.abort();
			clearTimeout(wanted);
		},
	};
}
