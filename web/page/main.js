/* SPDX-License-Identifier: MIT */
/* The page as a whole: which view is shown stands behind the # of the address, so that it can be kept and
 * sent. */
"use strict";

const views = {
	overview: ["Overview", makeOverview], timeline: ["Time line", makeTimeline], flame: ["Flame graph", makeFlame],
	functions: ["Functions", makeFunctions], function: [null, makeFunction],
};
let overview = null, current = null, currentName = "";

function notice(text) {
	byId("notice").hidden = !text;
	byId("notice").textContent = text;
}

function stateNow() {
	return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

function hashOf(state) {
	const kept = Object.entries(state).filter(([, value]) => value !== null && value !== undefined && value !== "");
	return `#${new URLSearchParams(kept)}`;
}

/* Changes the address; `replace`: without a step that Back would go to. */
function go(changes, replace) {
	const hash = hashOf({ ...stateNow(), ...changes });
	if (hash === location.hash)
		return;
	if (replace)
		history.replaceState(null, "", hash);
	else
		history.pushState(null, "", hash);
	if (!replace || "q" in changes || "sort" in changes || "path" in changes || "view" in changes)
		show();
}

function show() {
	const state = stateNow(), name = views[state.view] ? state.view : "overview";
	noTip();
	if (name !== currentName || name === "overview") {
		current?.end();
		current = views[name][1](overview, go);
		currentName = name;
		byId("main").className = current.whole ? "whole" : "";
		byId("main").replaceChildren(...current.nodes);
		byId("main").scrollTop = 0;
	}
	for (const tab of byId("tabs").children)
		tab.toggleAttribute("aria-current", false);
	byId("tabs").querySelector(`[data-view="${name}"]`)?.setAttribute("aria-current", "page");
	current.show(state);
	document.documentElement.dataset.view = name;
}

/* Search */

let searched = 0;
async function search() {
	const text = byId("search").value.trim(), mine = ++searched;
	if (!text) {
		byId("found").hidden = true;
		return;
	}
	const got = await source.ask("functions", { sort: "total", q: text, limit: 30 });
	if (mine !== searched)
		return;
	const threads = overview.lanes.filter((lane) => lane.calls > 0 && laneName(lane).toLowerCase().includes(text.toLowerCase()));
	byId("found").replaceChildren(
		...threads.slice(0, 8).map((lane) => element("a", { href: hashOf({ view: "timeline", lane: lane.lane }) },
			element("span", {}, `Thread ${laneName(lane)}`), element("span", { class: "faint" }, count(lane.calls, "call")))),
		...got.functions.map((f) => element("a", { href: hashOf({ view: "function", id: f.id }), title: f.name },
			element("span", { class: "mono" }, cut(shortName(f.name), 46)),
			element("span", { class: "faint" }, `${count(f.calls, "call")}, ${duration(f.total)}`))),
		...(got.functions.length + threads.length === 0 ? [element("p", {}, "No function or thread has that in its name.")] : []));
	byId("found").firstElementChild?.classList.add("at");
	byId("found").hidden = false;
}

function moveFound(way) {
	const links = [...byId("found").querySelectorAll("a")], at = links.findIndex((link) => link.classList.contains("at"));
	const next = links[Math.min(Math.max(at + way, 0), links.length - 1)];
	links[at]?.classList.remove("at");
	next?.classList.add("at");
	next?.scrollIntoView({ block: "nearest" });
}

byId("search").addEventListener("input", () => search().catch((error) => notice(error.message)));
byId("search").addEventListener("keydown", (event) => {
	if (event.key === "ArrowDown" || event.key === "ArrowUp") {
		event.preventDefault();
		moveFound(event.key === "ArrowDown" ? 1 : -1);
	} else if (event.key === "Enter") {
		byId("found").querySelector("a.at")?.click();
	} else if (event.key === "Escape") {
		byId("search").value = "";
		byId("found").hidden = true;
		byId("search").blur();
	}
});
byId("found").addEventListener("click", () => {
	byId("found").hidden = true;
	byId("search").blur();
});
document.addEventListener("pointerdown", (event) => {
	if (!byId("search-box").contains(event.target))
		byId("found").hidden = true;
});

function help() {
	const box = element("dialog", {}, element("h2", {}, "Keys"), table([["", (row) => row[0], "name"], ["", (row) => row[1]]], [
		["search", "/"], ["time line: zoom in, out", "W, S, wheel"], ["time line: earlier, later", "A, D, ← →, drag"],
		["time line: the whole run", "Home"], ["fill the window with the chosen call", "F"],
		["next, previous call of the same function", "N, P"], ["flame graph: closer, back", "click, Escape"], ["this help", "?"]]),
		element("form", { method: "dialog" }, element("button", { class: "button" }, "Close")));
	document.body.append(box);
	box.addEventListener("close", () => box.remove());
	box.showModal();
}

byId("help").addEventListener("click", help);
document.addEventListener("keydown", (event) => {
	if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName))
		return;
	if (event.key === "/") {
		event.preventDefault();
		byId("search").focus();
		byId("search").select();
	} else if (event.key === "?") {
		help();
	} else if (current?.key(event)) {
		event.preventDefault();
	}
});

/* Of a program that runs: what is shown is what was there when it was looked at last. */
async function look(seconds) {
	const before = (await source.ask("progress")).looks;
	await source.ask("look", { seconds });
	notice("Looking at what has happened …");
	for (let now = null; !now || now.looks === before && now.progress < 1;) {
		await new Promise((done) => setTimeout(done, 100));
		now = await source.ask("progress");
	}
	overview = await source.ask("overview");
	notice("");
	tellRun();
	const state = stateNow();
	currentName = "";
	/* Times and threads are others now. */
	history.replaceState(null, "", hashOf({ view: state.view, q: state.q, sort: state.sort }));
	show();
	document.documentElement.dataset.looks = String(Number(document.documentElement.dataset.looks ?? 0) + 1);
}

function makeLiveBar() {
	const button = (seconds, text) => element("button", { class: "button", type: "button", "data-seconds": String(seconds),
		onclick: () => look(seconds).catch((error) => notice(error.message)) }, text);
	return element("div", { class: "tools", id: "live" }, element("strong", { id: "running" }, "● running"),
		element("span", { class: "faint", id: "as-of" }), element("span", {}, "Look again:"),
		button(1, "last second"), button(10, "last 10 s"), button(0, "all there is"),
		element("span", { class: "told", id: "rates" }));
}

/* Who it is, in the head. */
function tellRun() {
	const name = overview.program.split("/").pop() || "graftrace";
	document.title = `${name} — graftrace`;
	byId("program").textContent = name;
	byId("subtitle").textContent = `${count(overview.calls, "call")} in ${duration(overview.length)}`;
	byId("title").title = overview.command;
	if (byId("as-of"))
		byId("as-of").textContent = `as of ${new Date(overview.asOf ?? overview.realtime).toLocaleTimeString()}`;
}

/* The start: a server may still be reading the recording. */
async function start() {
	for (;;) {
		const got = await source.ask("overview");
		if (got.progress === undefined) {
			overview = got;
			break;
		}
		byId("notice").hidden = false;
		byId("notice").replaceChildren("Reading the recording ", element("progress", { value: got.progress, max: 1 }),
			` ${Math.round(100 * got.progress)} %`);
		await new Promise((done) => setTimeout(done, 40));
	}
	notice("");
	if (source.live && (await source.ask("about")).live) {
		views.control = ["Control", makeControl];
		document.querySelector("header").after(makeLiveBar());
		/* In a kernel each request is made of calls, too: it is asked where its rates are wanted, on Control. */
		if (!source.own)
			watchRates();
	}
	tellRun();
	byId("tabs").append(...Object.entries(views).filter(([, [title]]) => title).map(([view, [title]]) =>
		element("a", { href: hashOf({ view }), "data-view": view }, title)));
	window.addEventListener("popstate", show);
	dark.addEventListener("change", () => show());
	show();
	document.documentElement.dataset.ready = "yes";
}

/* For tests: what is drawn, as figures. */
window.graftrace = { boxes: () => current.boxes?.() ?? [], get filled() { return current.filled; } };

start().catch((error) => notice(`This page cannot show the recording: ${error.message}`));
