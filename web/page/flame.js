/* SPDX-License-Identifier: MIT */
/* The flame graph: calls merged by their stacks, callers above callees, the longest first. A click makes a
 * call's stack the whole width. */
"use strict";

const FLAME_ROW = 19;

function makeFlame(overview, go) {
	const canvas = element("canvas", { id: "flame", tabindex: "0", role: "img",
		"aria-label": "Flame graph. Click a call to see what is below it; Escape goes back." });
	const spacer = element("div", {});
	const box = element("div", { class: "canvas-box" }, canvas, spacer);
	const crumbs = element("div", { class: "crumbs", id: "crumbs" });
	const told = element("span", { class: "told", id: "flame-told" });
	const lanes = overview.lanes.filter((lane) => lane.calls > 0);
	/* A process has the name of its first thread, or of the first one that is there. */
	const processes = [...new Map([...lanes].reverse().sort((a, b) => (a.tid === a.pid) - (b.tid === b.pid))
		.map((lane) => [lane.pid, lane])).values()].sort((a, b) => a.pid - b.pid);
	const whose = element("select", { id: "whose", "aria-label": "Whose calls", onchange: () =>
		go({ of: whose.value, path: null }, false) },
		element("option", { value: "all" }, "All threads"),
		...(processes.length > 1 ? processes.map((lane) =>
			element("option", { value: `pid:${lane.pid}` }, `Process ${lane.name}-${lane.pid}`)) : []),
		...lanes.slice(0, 500).map((lane) => element("option", { value: `lane:${lane.lane}` }, `Thread ${laneName(lane)}`)));
	const inOrder = element("button", { class: "button", type: "button", id: "in-order",
		title: "The same calls side by side as they came, not merged",
		onclick: () => go({ view: "timeline", of: null, path: null,
			lane: whose.value.startsWith("lane:") ? whose.value.slice(5) : null }, false) }, "In order of time");
	const merged = element("button", { class: "button", type: "button", "aria-pressed": "true" }, "Merged");
	const whole = element("div", { style: { display: "contents" } },
		element("div", { class: "tools" }, whose, merged, inOrder, told, element("span", { class: "grow" }),
			element("span", { class: "faint optional" }, "Width is time, callers stand above whom they call. Click to look closer.")),
		element("div", { class: "tools" }, crumbs), box);

	let state = {}, answer = null, boxes = [], frame = 0, lit = null;

	async function ask() {
		const wanted = state;
		try {
			const got = await source.ask("flame", { of: state.of ?? "all", path: state.path ?? "",
				width: Math.max(200, box.clientWidth || innerWidth) });
			if (wanted !== state)
				return;
			answer = got;
			lay();
			await learnNames([...got.nodes, ...got.path].map((node) => node[1]));
			tellPath();
			draw();
		} catch (error) {
			notice(`The flame graph cannot be read: ${error.message}`);
			if (state.path)
				go({ path: null }, true);
		}
	}

	/* Each node gets its place: children side by side from where their caller begins. */
	function lay() {
		const above = answer.path, ends = [];
		boxes = above.map((node, i) => ({ depth: i, id: node[1], calls: node[2], total: node[3], self: node[4], off: node[5],
			from: 0, part: 1, path: above.slice(0, i + 1).map((n) => n[1]), above: i < above.length - 1 }));
		const path = above.map((node) => node[1]), base = path.length, from = [0];
		for (const [depth, id, calls, total, self, off] of answer.nodes) {
			path.length = base + depth;
			path.push(id);
			const start = from[depth] ?? 0, part = answer.total > 0 ? total / answer.total : 0;
			boxes.push({ depth: base + depth, id, calls, total, self, off, from: start, part, path: [...path], above: false });
			from[depth] = start + part;
			from[depth + 1] = start;
			ends[depth] = true;
		}
		const levels = Math.max(1, ...boxes.map((b) => b.depth + 1));
		spacer.style.height = `${Math.max(0, levels * FLAME_ROW + 12 - box.clientHeight)}px`;
	}

	function tellPath() {
		const path = answer.path;
		crumbs.replaceChildren(
			element("a", { href: hashOf({ view: "flame", of: state.of, path: null }) }, "All"),
			...path.flatMap((node, i) => [" › ", i === path.length - 1 ?
				element("strong", { title: nameOf(node[1]) }, cut(shortName(nameOf(node[1])), 60)) :
				element("a", { title: nameOf(node[1]), href: hashOf({ view: "flame", of: state.of,
					path: path.slice(0, i + 1).map((n) => n[1]).join(".") }) }, cut(shortName(nameOf(node[1])), 40))]));
		const last = path.at(-1);
		if (last)
			crumbs.append(element("a", { class: "button", href: hashOf({ view: "function", id: last[1] }) }, "All calls of this function"));
		const of = state.of ?? "all";
		told.textContent = `${duration(answer.total)}${last ? `, ${percent(answer.total, answer.all)} of ${duration(answer.all)}` : ` in calls${of.startsWith("lane:") ? "" : of.startsWith("pid:") ? ", of the process's threads together" : ", of all threads together"}`}` +
			(answer.leftOut > 0 ? "; the thinnest are left out" : "");
	}

	function drawNow() {
		frame = 0;
		if (!canvas.isConnected || !answer)
			return;
		const ratio = devicePixelRatio || 1, width = box.clientWidth, height = box.clientHeight;
		canvas.width = Math.round(width * ratio);
		canvas.height = Math.round(height * ratio);
		canvas.style.height = `${height}px`;
		const context = canvas.getContext("2d");
		context.setTransform(ratio, 0, 0, ratio, 0, 0);
		context.clearRect(0, 0, width, height);
		context.font = "12px ui-monospace, 'DejaVu Sans Mono', monospace";
		context.textBaseline = "middle";
		const text = css("--text");
		for (const b of boxes) {
			b.x = b.from * width;
			b.w = Math.max(b.part * width - (b.part * width > 3 ? 1 : 0), 0.6);
			b.y = b.depth * FLAME_ROW + 6 - box.scrollTop;
			if (b.y < -FLAME_ROW || b.y > height)
				continue;
			context.globalAlpha = b.above ? 0.55 : 1;
			context.fillStyle = colour(b.id, lit !== null && lit !== b.id);
			context.fillRect(b.x, b.y, b.w, FLAME_ROW - 1);
			context.globalAlpha = 1;
			if (b.w > 30) {
				const share = ` ${percent(b.total, answer.all)}`, most = Math.floor((b.w - 8) / 7.3);
				const name = shortName(nameOf(b.id));
				context.fillStyle = text;
				context.fillText(name.length + share.length <= most ? name + share : cut(name, most), b.x + 4, b.y + FLAME_ROW / 2);
			}
		}
		document.documentElement.dataset.flame = `${state.of ?? "all"} ${state.path ?? ""}`;
	}

	function draw() {
		if (!frame)
			frame = requestAnimationFrame(drawNow);
	}

	function hit(event) {
		const { left, top } = canvas.getBoundingClientRect();
		const x = event.clientX - left, y = event.clientY - top;
		return boxes.findLast((b) => y >= b.y && y < b.y + FLAME_ROW && x >= b.x && x < b.x + Math.max(b.w, 1.5));
	}

	canvas.addEventListener("pointermove", (event) => {
		const at = hit(event);
		canvas.style.cursor = at ? "pointer" : "";
		if (!at)
			return noTip();
		tip(event, shortName(nameOf(at.id)), [
			`${duration(at.total)} in ${count(at.calls, "call")}, ${percent(at.total, answer.all)} of all`,
			`of that ${duration(at.self)} in itself` + (at.off > 0 ? `, ${duration(at.off)} of it off the CPU` : ""),
			`${duration(at.total / Math.max(at.calls, 1))} a call`]);
	});
	canvas.addEventListener("pointerleave", noTip);
	canvas.addEventListener("click", (event) => {
		const at = hit(event);
		noTip();
		if (at)
			go({ path: at.path.join(".") }, false);
	});
	const up = () => go({ path: state.path?.includes(".") ? state.path.slice(0, state.path.lastIndexOf(".")) : null }, false);
	box.addEventListener("scroll", draw);
	const watcher = new ResizeObserver(() => answer && (lay(), draw()));
	watcher.observe(box);

	return {
		whole: true,
		nodes: [whole],
		show(next) {
			state = next;
			lit = next.lit === undefined ? null : Number(next.lit);
			whose.value = next.of ?? "all";
			ask();
		},
		key(event) {
			if (event.key === "Escape" || event.key === "s" || event.key === "ArrowUp") {
				if (state.path)
					up();
			} else if (event.key === "w" || event.key === "ArrowDown") {
				const first = boxes.find((b) => b.depth === (answer?.path.length ?? 0));
				if (first)
					go({ path: first.path.join(".") }, false);
			} else if (event.key === "Home" || event.key === "0") {
				go({ path: null }, false);
			} else {
				return false;
			}
			return true;
		},
		redraw: draw,
		boxes: () => boxes.filter((b) => b.x !== undefined).map((b) => ({ ...b, name: nameOf(b.id) })),
		end: () => watcher.disconnect(),
	};
}
