/* SPDX-License-Identifier: MIT */
/* A recording read by the page itself: a kernel serves this page and the bytes of its ring
 * (ftrace/trace.data, doc/format.md), and has nobody who would make figures of them. The answers are those of
 * export/page/page.h, made of calls in the browser's memory: some 25 bytes each. */
"use strict";

const CLOCK = 1, UNWOUND = 2, CONTEXT = 3, CPU = 4, SKIP = 5, EVENT = 6, LOST = 7, STOPPED = 8; /* special words */
const FIRST_SPECIAL = 0x7fffff00, INTERRUPTS = 0x40000000;
const OPEN_AT_END = 6; /* flags of a call: it has not returned, and is open at the end */
const SLOWEST = 12, BAR_PIECES = 20, OFF_CELLS = 2000;

/* Numbers that grow. */
class Column {
	constructor(type) {
		this.items = new type(64);
		this.length = 0;
	}
	push(value) {
		if (this.length === this.items.length) {
			const grown = new this.items.constructor(this.length * 2);
			grown.set(this.items);
			this.items = grown;
		}
		this.items[this.length++] = value;
	}
}

/* The blocks of a file: names, clock, writers with their sub-buffers. */
class RecordingFile {
	constructor(buffer) {
		this.view = new DataView(buffer);
		this.words = new Uint32Array(buffer, 0, buffer.byteLength >> 2);
		this.names = [];
		this.threads = new Map();
		this.writers = new Map();
		this.strings = {};
		this.lost = 0;
		this.ended = false;
		const magic = String.fromCharCode(...new Uint8Array(buffer, 0, Math.min(14, buffer.byteLength)));
		if (magic !== "graftrace.data")
			throw new Error("what came is no recording");
		for (let at = 16; at + 64 <= buffer.byteLength;)
			at = this.block(at);
	}
	u64(at) {
		return this.view.getUint32(at, true) + this.view.getUint32(at + 4, true) * 4294967296;
	}
	text(at, bytes) {
		return new TextDecoder().decode(new Uint8Array(this.view.buffer, at, bytes));
	}
	block(at) {
		const type = this.view.getUint16(at + 24, true), flags = this.view.getUint32(at + 28, true);
		const bytes = this.u64(at + 32), next = at + 64 + Math.ceil(bytes / 8) * 8;
		if (this.view.getUint32(at, true) !== 0x54465247 || next > this.view.byteLength)
			return Infinity; /* cut off */
		if (flags & 1)
			throw new Error("this recording is compressed: open it with graftrace serve");
		at += 64;
		if (type === 1)
			this.start(at);
		else if (type === 4)
			this.functions(at);
		else if (type === 5)
			this.writerList(at);
		else if (type === 6)
			this.subBuffers(at);
		else if (type === 7)
			this.end(at);
		return next;
	}
	clockAt(at) {
		this.mult = this.u64(at + 16);
		this.shift = this.view.getUint32(at + 24, true);
	}
	start(at) {
		this.clockAt(at + 8);
		this.realtime = this.u64(at + 40) / 1e6;
		const end = at + 64 + this.view.getUint32(at + 60, true);
		for (let one = at + 64; one + 8 <= end;) {
			const tag = this.view.getUint32(one, true), bytes = this.view.getUint32(one + 4, true);
			this.strings[tag] ??= this.text(one + 8, bytes);
			one += 8 + Math.ceil((bytes + 1) / 8) * 8;
		}
	}
	functions(at) {
		const first = this.view.getUint32(at + 4, true), count = this.view.getUint32(at + 8, true);
		const names = at + 16 + 16 * count, bytes = new Uint8Array(this.view.buffer);
		for (let i = 0; i < count; i++) {
			const from = names + this.view.getUint32(at + 16 + 16 * i + 12, true);
			this.names[first + i] = this.text(from, bytes.indexOf(0, from) - from);
		}
	}
	writerList(at) {
		const count = this.view.getUint32(at, true), size = this.view.getUint32(at + 4, true);
		for (let one = at + 8; one < at + 8 + count * size; one += size) {
			const generation = this.view.getUint32(one, true);
			if (generation >= INTERRUPTS)
				this.threads.set(generation - INTERRUPTS, this.text(one + 16, 16).split("\0")[0]);
		}
	}
	end(at) {
		this.ended = true;
		/* By cause: 0 the ring was full, 2, 4, 5, 6 in other ways; 7 calls that were overwritten. */
		for (const cause of [0, 2, 4, 5, 6, 7])
			this.lost += this.u64(at + 48 + 8 * cause);
		this.clockAt(at + 112);
	}
	subBuffers(at) {
		const groups = this.view.getUint32(at, true), count = this.view.getUint32(at + 4, true);
		let entry = at + 16 + 32 * groups, body = entry + 16 * count;
		for (let group = at + 16; group < at + 16 + 32 * groups; group += 32) {
			const generation = this.view.getUint32(group, true), own = this.view.getUint32(group + 4, true);
			const sequence = this.u64(group + 8), stored = this.view.getUint32(group + 20, true);
			if (this.view.getUint32(group + 16, true) !== 0)
				throw new Error("this recording is compressed: open it with graftrace serve");
			if (!this.writers.has(generation))
				this.writers.set(generation, []);
			for (let i = 0, head = body; i < own; i++, entry += 16) {
				const words = this.view.getUint32(entry + 8, true), open = this.view.getUint16(entry + 12, true);
				this.writers.get(generation).push({ sequence: sequence + i, clock: this.u64(entry), head, open,
					first: head + 128 + 16 * open, words });
				head += 128 + 16 * open + 8 * words;
			}
			body += stored;
		}
	}
	ns(ticks) {
		return ticks * this.mult / 2 ** this.shift;
	}
}

/* One writer's records, one after the other: `clock`, `kind` ("entry", "return", …), `fn`, `value`. */
class Cursor {
	constructor(file, subs) {
		this.file = file;
		this.subs = subs.sort((a, b) => a.sequence - b.sequence);
		this.at = -1;
		this.word = this.count = this.clock = 0;
		this.gap = false;
	}
	nextSub() {
		const sub = this.subs[++this.at];
		if (!sub)
			return false;
		const view = this.file.view;
		this.gap = this.at > 0 && sub.sequence !== this.subs[this.at - 1].sequence + 1;
		this.sub = sub;
		this.word = sub.first >> 2;
		this.end = this.word + 2 * sub.words;
		this.upper = Math.floor(sub.clock / 4294967296);
		this.cpu = view.getUint32(sub.head + 24, true);
		this.context = view.getUint32(sub.head + 28, true);
		this.depth = view.getUint32(sub.head + 48, true);
		this.step = view.getUint16(sub.head + 52, true) === 1 ? 2 : 1; /* the tracer function has two words a record */
		this.tell("begin", 0, sub.clock, 0);
		return true;
	}
	tell(kind, fn, clock, value) {
		this.kind = kind;
		this.fn = fn;
		this.clock = Math.max(clock, 0);
		this.value = value;
	}
	full(low) {
		const clock = this.upper * 4294967296 + low;
		return clock < this.clock - 2147483648 ? clock + 4294967296 : clock;
	}
	/* False: there are no more. */
	next() {
		const words = this.file.words;
		for (;;) {
			if (!this.sub || this.word >= this.end) {
				if (!this.nextSub())
					return false;
				return true;
			}
			const low = words[this.word], high = words[this.word + 1], fn = high >>> 1;
			this.word += 2 * this.step;
			if (low === 0 && high === 0) {
				continue;
			} else if (fn < FIRST_SPECIAL) {
				this.tell(high & 1 ? "return" : "entry", fn, this.full(low), 0);
				return true;
			} else if (fn - FIRST_SPECIAL === CLOCK) {
				this.upper = low;
			} else if (fn - FIRST_SPECIAL === CONTEXT) {
				this.context = low;
			} else if (fn - FIRST_SPECIAL === CPU) {
				this.cpu = low;
			} else if (fn - FIRST_SPECIAL === SKIP) {
				this.word += 2 * low;
			} else if (fn - FIRST_SPECIAL === UNWOUND || fn - FIRST_SPECIAL === STOPPED || fn - FIRST_SPECIAL === LOST) {
				this.tell(["", "", "unwound", "", "", "", "", "lost", "stopped"][fn - FIRST_SPECIAL], 0, this.clock, low);
				return true;
			} else if (fn - FIRST_SPECIAL === EVENT) {
				const type = low >>> 16, data = this.word, length = low & 0xffff;
				this.word += 2 * length;
				if (type === 1 && length >= 3) {
					this.entered = words[data + 2] + words[data + 3] * 4294967296;
					this.tell("late", words[data + 1] >>> 1, this.full(words[data]), words[data + 4]);
					return true;
				}
				if (type === 2 && length >= 1) {
					this.tell("call", words[data + 1] >>> 1, this.full(words[data]), 0);
					return true;
				}
				/* Others begin with a full clock. */
				if (length >= 2) {
					this.tell("other", 0, words[data] + words[data + 1] * 4294967296, 0);
					return true;
				}
			}
		}
	}
}

/* What is known of a recording: lanes, functions, trees. Times in ns since its beginning. */
class Figures {
	/* missed: by lane the calls whose entries were not recorded, if that is known: [clock, function]. */
	constructor(file, seconds, missed) {
		this.file = file;
		this.missed = missed;
		this.found = new Map();
		this.readAt = Date.now();
		this.lanes = [];
		this.byContext = new Map();
		this.running = []; /* by CPU: the lane of its thread */
		this.functions = [];
		this.byNumber = new Map();
		this.calls = this.returned = this.withoutReturn = this.entriesOnly = this.gaps = this.lostHere = 0;
		const cursors = [...file.writers.values()].map((subs) => new Cursor(file, subs)).filter((cursor) => cursor.next());
		this.begin = cursors.length > 0 ? Math.min(...cursors.map((cursor) => cursor.clock)) : 0;
		for (const calls of missed?.values() ?? [])
			this.begin = Math.min(this.begin, calls[0][0]);
		this.last = this.begin;
		if (seconds > 0 && cursors.length > 0) {
			const ends = [...file.writers.values()].map((subs) => subs[subs.length - 1].clock);
			this.begin = Math.max(this.begin, Math.max(...ends) - seconds * 1e9 / (file.mult / 2 ** file.shift));
		}
		while (cursors.length > 0) {
			let best = 0;
			for (let i = 1; i < cursors.length; i++)
				if (cursors[i].clock < cursors[best].clock)
					best = i;
			this.take(cursors[best]);
			if (!cursors[best].next())
				cursors.splice(best, 1);
		}
		for (const lane of this.lanes) {
			this.back(lane, this.last);
			while (lane.stack.length > 0)
				this.leave(lane, this.last, OPEN_AT_END);
		}
		this.length = this.ns(this.last);
	}
	ns(clock) {
		return Math.max(0, Math.round(this.file.ns(clock - this.begin)));
	}
	laneOf(context, cpu) {
		const key = context === 0 ? -1 - cpu : context; /* each CPU has an idle thread, all with this number */
		let lane = this.byContext.get(key);
		if (!lane) {
			const thread = context < INTERRUPTS;
			lane = { lane: this.lanes.length, pid: 0, tid: thread && context > 0 ? context : cpu, stack: 0, first: 0, last: 0, calls: 0,
				self: 0, off: 0, name: context === 0 ? "idle of CPU" : thread ? this.file.threads.get(context) ?? "thread" :
				"interrupts of CPU", rows: [],
				known: false, root: this.node(-1, null) };
			lane.stack = [];
			lane.idle = context === 0;
			lane.cpu = cpu;
			lane.left = -1; /* clock since when it has been off the CPU */
			lane.offs = { start: new Column(Float64Array), took: new Column(Float64Array), before: new Column(Float64Array) };
			lane.pending = this.missed?.get(key) ?? [];
			this.found.set(key, lane.unknown = []);
			this.byContext.set(key, lane);
			this.lanes.push(lane);
		}
		return lane;
	}
	node(fn, parent) {
		return { fn, parent, calls: 0, total: 0, self: 0, off: 0, children: new Map() };
	}
	/* A record of a thread: it runs, on that CPU, and the one that ran there does not. */
	runs(lane, cpu, clock) {
		const before = this.running[cpu];
		if (before === lane)
			return;
		if (this.running[lane.cpu] === lane)
			this.running[lane.cpu] = null;
		if (before && !before.idle)
			before.left = clock;
		this.back(lane, clock);
		lane.cpu = cpu;
		this.running[cpu] = lane;
	}
	/* It was off the CPU up to now: that was a part of its innermost call. */
	back(lane, clock) {
		const top = lane.stack[lane.stack.length - 1], { start, took, before } = lane.offs;
		if (lane.left < 0)
			return;
		const from = this.ns(lane.left), off = this.ns(clock) - from, last = start.length - 1;
		lane.left = -1;
		if (off <= 0)
			return;
		before.push(last < 0 ? 0 : before.items[last] + took.items[last]);
		start.push(from);
		took.push(off);
		if (top)
			top.off += off;
	}
	functionOf(number) {
		let fn = this.byNumber.get(number);
		if (fn === undefined) {
			fn = this.functions.length;
			this.byNumber.set(number, fn);
			this.functions.push({ id: fn, name: this.file.names[number] ?? `function#${number}`, object: "kernel", calls: 0,
				returned: 0, sum: 0, total: 0, self: 0, off: 0, min: 0, max: 0, entriesOnly: 0, took: new Column(Float64Array),
				slowest: [], cpus: [] });
		}
		return fn;
	}
	take(cursor) {
		const lane = this.laneOf(cursor.context, cursor.cpu), stack = lane.stack;
		this.last = Math.max(this.last, cursor.clock);
		while (lane.pending.length > 0 && lane.pending[0][0] <= cursor.clock) {
			const [clock, number] = lane.pending.shift();
			this.enter(lane, this.functionOf(number), clock, cursor.cpu, 1);
		}
		if (cursor.context < INTERRUPTS)
			this.runs(lane, cursor.cpu, cursor.clock);
		switch (cursor.kind) {
		case "begin":
			this.gaps += cursor.gap;
			if (cursor.gap || !lane.known)
				this.openOf(lane, cursor);
			break;
		case "entry":
			this.enter(lane, this.functionOf(cursor.fn), cursor.clock, cursor.cpu, 0);
			break;
		case "return":
			this.leaveFunction(lane, this.byNumber.get(cursor.fn), cursor.clock);
			break;
		case "late": {
			/* Which call it ends, the clock of its entry says; what is open inside of it has ended. */
			const fn = this.functionOf(cursor.fn);
			while (stack.length > 0 && stack[stack.length - 1].clock > cursor.entered)
				this.leave(lane, cursor.clock, 2);
			const top = stack[stack.length - 1];
			if (!top || top.fn !== fn || top.clock !== cursor.entered) {
				lane.unknown.push([cursor.entered, cursor.fn]);
				this.enter(lane, fn, cursor.entered, cursor.cpu, 1);
			}
			this.leave(lane, cursor.clock, 0);
			break;
		}
		case "call": {
			const fn = this.functions[this.functionOf(cursor.fn)];
			if (cursor.clock >= this.begin) {
				fn.calls++;
				fn.entriesOnly++;
				this.entriesOnly++;
			}
			break;
		}
		case "unwound":
			for (let i = 0; i < cursor.value && stack.length > 0; i++)
				this.leave(lane, cursor.clock, 2);
			break;
		case "stopped":
			while (stack.length > cursor.value)
				this.leave(lane, cursor.clock, 2);
			break;
		case "lost":
			this.lostHere += cursor.value;
			break;
		}
		lane.known = true;
	}
	/* What a sub-buffer says of the calls that were open when it began. */
	openOf(lane, cursor) {
		const view = this.file.view;
		while (lane.stack.length > 0)
			this.leave(lane, cursor.clock, 2);
		for (let i = 0; i < cursor.sub.open; i++) {
			const at = cursor.sub.head + 128 + 16 * i;
			this.enter(lane, this.functionOf(view.getUint32(at + 8, true)), this.file.u64(at), cursor.cpu, 1);
		}
	}
	enter(lane, fn, clock, cpu, flags) {
		const stack = lane.stack, above = stack[stack.length - 1];
		const parent = above ? above.node : lane.root;
		let node = parent.children.get(fn);
		if (!node)
			parent.children.set(fn, node = this.node(fn, parent));
		stack.push({ fn, clock, start: Math.max(clock, this.begin), node, below: 0, off: 0, cpu, flags, depth: stack.length });
	}
	leaveFunction(lane, fn, clock) {
		const stack = lane.stack;
		let at = stack.length - 1;
		while (at >= 0 && stack[at].fn !== fn)
			at--;
		if (at < 0)
			return; /* nobody knows when it began */
		while (stack.length > at + 1)
			this.leave(lane, clock, 2);
		this.leave(lane, clock, 0);
	}
	leave(lane, clock, flags) {
		const call = lane.stack.pop(), above = lane.stack[lane.stack.length - 1];
		if (clock < this.begin)
			return;
		flags |= call.flags;
		const start = this.ns(call.start), took = Math.max(0, this.ns(clock) - start), self = Math.max(0, took - call.below);
		const off = Math.min(call.off, self);
		const f = this.functions[call.fn], again = lane.stack.some((other) => other.fn === call.fn);
		if (above)
			above.below += took;
		lane.first = lane.calls++ === 0 ? start : Math.min(lane.first, start);
		lane.last = Math.max(lane.last, start + took);
		this.calls++;
		f.calls++;
		call.node.calls++;
		if (flags & 2) {
			this.withoutReturn++;
		} else {
			this.returned++;
			f.returned++;
			f.sum += took;
			f.total += again ? 0 : took;
			f.self += self;
			f.off += off;
			f.min = f.returned === 1 ? took : Math.min(f.min, took);
			f.max = Math.max(f.max, took);
			f.took.push(took);
			f.cpus[call.cpu] = (f.cpus[call.cpu] ?? 0) + self;
			if (f.slowest.length < SLOWEST || took > f.slowest[f.slowest.length - 1][1]) {
				f.slowest.push([start, took, lane.lane, call.depth]);
				f.slowest.sort((a, b) => b[1] - a[1]);
				f.slowest.length = Math.min(f.slowest.length, SLOWEST);
			}
		}
		/* Where the time went also has calls that did not return. */
		lane.self += self;
		lane.off += off;
		call.node.total += took;
		call.node.self += self;
		call.node.off += off;
		const row = lane.rows[call.depth] ??= { start: new Column(Float64Array), took: new Column(Float64Array),
			fn: new Column(Uint32Array), flags: new Column(Uint8Array) };
		row.start.push(start);
		row.took.push(took);
		row.fn.push(call.fn);
		row.flags.push(flags);
	}
}

/* Read twice where a return tells of a call whose entry was not recorded: then it is entered in its place. */
function figuresOf(file, seconds) {
	const figures = new Figures(file, seconds), missed = [...figures.found].filter(([, calls]) => calls.length > 0);
	if (missed.length === 0)
		return figures;
	for (const [, calls] of missed)
		calls.sort((a, b) => a[0] - b[0]);
	return new Figures(file, seconds, new Map(missed));
}

/* How long a thread was off the CPU before a time. */
function offBefore({ start, took, before }, at) {
	let low = 0, high = start.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (start.items[middle] < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low === 0 ? 0 : before.items[low - 1] + Math.min(took.items[low - 1], at - start.items[low - 1]);
}

/* Which part of each cell of a window a thread was off the CPU, in percent. Before its first call and after its last
 * one nothing is known of it. */
function offOf(lane, from, to, cells) {
	const cell = Math.floor((to - from) / cells) + 1, off = [];
	let before = offBefore(lane.offs, from);
	for (let at = from; at < to; at += cell) {
		const behind = offBefore(lane.offs, at + cell);
		off.push(at + cell <= lane.first || at >= lane.last ? 0 : Math.min(100, Math.floor((behind - before) * 100 / cell)));
		before = behind;
	}
	return { offCell: cell, off };
}

/* The boxes of a row that a window shows; short ones together, as many as fill `grain`. */
function windowOf(row, from, to, grain) {
	const boxes = [], starts = row?.start.items, tooks = row?.took.items;
	let low = 0, high = row?.start.length ?? 0;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (starts[middle] + tooks[middle] > from)
			high = middle;
		else
			low = middle + 1;
	}
	let several = null;
	for (; low < (row?.start.length ?? 0) && starts[low] < to; low++) {
		const start = starts[low], took = tooks[low];
		if (several && start + took - several[0] <= grain) {
			several[1] = start + took - several[0];
			several[3]++;
			several[5] += took;
			if (took > several.most) {
				several.most = took;
				several[2] = row.fn.items[low];
			}
			continue;
		}
		several = null;
		boxes.push([start, took, row.fn.items[low]]);
		if (took < grain) {
			several = boxes[boxes.length - 1];
			several.push(1, row.flags.items[low], took);
			several.most = took;
		} else if (row.flags.items[low]) {
			boxes[boxes.length - 1].push(1, row.flags.items[low]);
		}
	}
	for (const one of boxes)
		one[0] -= from;
	return boxes;
}

/* Answers out of figures, as the server's. */
function makeAnswers(figures) {
	const quantile = (sorted, part) => sorted.length > 0 ? sorted[Math.ceil(part * sorted.length) - 1] : 0;
	const rows = figures.functions.map((f) => {
		const sorted = f.took.items.subarray(0, f.took.length).slice().sort();
		names.set(f.id, f.name);
		return { id: f.id, name: f.name, object: f.object, calls: f.calls, returned: f.returned, total: f.total, self: f.self, off: f.off,
			average: f.returned > 0 ? Math.round(f.sum / f.returned) : 0, min: f.min, max: f.max, p50: quantile(sorted, 0.5), p90: quantile(sorted, 0.9), p99: quantile(sorted, 0.99),
			waits: /sleep|wait|idle|halt/.test(f.name), sorted };
	});
	const listed = ({ sorted, ...row }) => row;
	const merged = mergeTrees(figures.lanes.map((lane) => lane.root));

	function overview() {
		const { file } = figures;
		const little = figures.length / 100;
		const isWholeRun = ([start, took]) => start <= little && start + took + little >= figures.length;
		/* As export/page/answers.c chooses them. */
		const listOutliers = (which) => rows.filter((f) => f.returned >= 10)
			.map((f) => [f, figures.functions[f.id].slowest.find(which)]).filter(([f, slow]) => slow && slow[1] >= 10 * f.p50 && slow[1] > 0)
			.map(([f, slow]) => [f.id, ...slow, f.p50]).sort((a, b) => b[2] - b[5] - a[2] + a[5]).slice(0, 60);
		const within = listOutliers((slow) => !isWholeRun(slow)), outliers = within.length > 0 ? within : listOutliers(() => true);
		return { program: file.strings[2] ?? "kernel", command: file.strings[1] ?? "", host: file.strings[5] ?? "", madeBy: file.strings[7] ?? "",
			realtime: file.realtime, asOf: figures.readAt, length: figures.length, calls: figures.calls + figures.entriesOnly, returned: figures.returned,
			withoutReturn: figures.withoutReturn, lost: figures.lostHere + file.lost, gaps: figures.gaps,
			functions: rows.filter((f) => f.calls > 0).length, grain: 0, tooDeep: 0, offCpu: true, kernel: true,
			problem: file.ended ? "" : "it was cut off on its way here", outliers,
			/* Lanes have the time of calls that did not return, too: most of a kernel's threads wait in one. */
			self: rows.reduce((sum, f) => sum + f.self, 0),
			lanes: figures.lanes.map((lane) => ({ lane: lane.lane, pid: 0, tid: lane.tid, stack: 0, name: lane.name, first: lane.first,
				last: lane.last, calls: lane.calls, depth: lane.rows.length, self: lane.self, off: lane.off })) };
	}

	function timeline({ from, to, width, lanes, rows: most }) {
		from = Number(from);
		to = Number(to);
		const grain = (to - from) * 2 / Number(width ?? 1000);
		const wanted = String(lanes).split(",").flatMap((part) => {
			const [first, last] = part.split("-").map(Number);
			return Array.from({ length: (last ?? first) - first + 1 }, (_, i) => first + i);
		});
		const cells = Math.min(Math.floor(Number(width ?? 1000) / 2) + 1, OFF_CELLS);
		return { from, to, moments: [], lanes: wanted.filter((number) => figures.lanes[number]).map((number) => ({ lane: number,
			...offOf(figures.lanes[number], from, to, cells),
			rows: Array.from({ length: Math.min(figures.lanes[number].rows.length, Number(most ?? 96)) },
				(_, depth) => windowOf(figures.lanes[number].rows[depth], from, to, grain)) })) };
	}

	function flame({ of, path, width }) {
		let top = of.startsWith("lane:") ? figures.lanes[Number(of.slice(5))].root : merged;
		const all = sumOf(top), above = [], nodes = [];
		for (const [depth, id] of (path ? path.split(".").map(Number) : []).entries()) {
			top = top.children.get(id);
			if (!top)
				throw new Error("This stack is not there any more.");
			above.push([depth, id, top.calls, top.total, top.self, top.off]);
		}
		const total = above.length > 0 ? top.total : all, least = total / (2 * Number(width ?? 1000));
		let leftOut = 0;
		const put = (node, depth) => {
			for (const child of [...node.children.values()].sort((a, b) => b.total - a.total)) {
				if (child.total < least || depth > 500) {
					leftOut++;
					continue;
				}
				nodes.push([depth, child.fn, child.calls, child.total, child.self, child.off]);
				put(child, depth + 1);
			}
		};
		put(top, 0);
		return { all, total, path: above, nodes, leftOut };
	}

	function functions({ sort, q, limit }) {
		const found = rows.filter((f) => f.calls > 0 && (!q || f.name.toLowerCase().includes(q.toLowerCase())));
		found.sort((a, b) => sort === "name" ? a.name < b.name ? -1 : 1 : b[sort] - a[sort]);
		return { found: found.length, functions: found.slice(0, Number(limit ?? 200)).map(listed) };
	}

	function one({ id }) {
		const f = rows[Number(id)], callers = new Map(), callees = new Map(), lanes = [];
		if (!f)
			throw new Error("There is no such function in what was read last.");
		const add = (map, key, node, again) => {
			const sum = map.get(key) ?? [key, 0, 0];
			sum[1] += node.calls;
			sum[2] += again ? 0 : node.total;
			map.set(key, sum);
		};
		for (const lane of figures.lanes) {
			const sums = [lane.lane, 0, 0, 0];
			const walk = (node, inside) => {
				for (const child of node.children.values()) {
					if (child.fn === f.id) {
						add(callers, node.fn, child, inside);
						sums[1] += child.calls;
						sums[2] += inside ? 0 : child.total;
						sums[3] += child.self;
					}
					if (node.fn === f.id)
						add(callees, child.fn, child, false);
					walk(child, inside || child.fn === f.id);
				}
			};
			walk(lane.root, false);
			if (sums[1] > 0)
				lanes.push(sums);
		}
		const sorted = (map) => [...map.values()].sort((a, b) => b[2] - a[2]);
		return { ...listed(f), entriesOnly: figures.functions[f.id].entriesOnly, selfUpper: 0, times: barsOf(f.sorted),
			slowest: figures.functions[f.id].slowest, callers: sorted(callers), callees: sorted(callees), lanes };
	}

	function selftimes({ by }) {
		const shown = rows.filter((f) => f.self > 0).sort((a, b) => b.self - a.self).slice(0, BAR_PIECES);
		const place = new Map(shown.map((f, i) => [f.id, i])), bars = new Map();
		const add = (number, fn, self) => {
			if (!bars.has(number))
				bars.set(number, [number, 0, Array(shown.length + 1).fill(0)]);
			const bar = bars.get(number);
			bar[1] += self;
			bar[2][place.get(fn) ?? shown.length] += self;
		};
		const walk = (number, node) => {
			for (const child of node.children.values()) {
				add(number, child.fn, by === "lane-on-cpu" ? child.self - child.off : child.self);
				walk(number, child);
			}
		};
		if (by === "cpu")
			figures.functions.forEach((f) => f.cpus.forEach((self, cpu) => add(cpu, f.id, self)));
		else
			figures.lanes.forEach((lane) => walk(lane.lane, lane.root));
		const sorted = [...bars.values()].filter((bar) => bar[1] > 0).sort((a, b) => b[1] - a[1]);
		return { functions: shown.map(listed), bars: sorted.slice(0, 64), found: sorted.length };
	}

	/* How long a thread was off the CPU in a window. */
	function offcpu({ lane, from, to }) {
		const { offs } = figures.lanes[Number(lane)];
		return { off: Math.round(offBefore(offs, Number(to)) - offBefore(offs, Number(from))) };
	}

	/* The next call of a function before or behind a time. */
	function find({ id, from, way }) {
		let best = null;
		for (const lane of figures.lanes)
			lane.rows.forEach((row, depth) => {
				for (let i = 0; i < row.start.length; i++) {
					const start = row.start.items[i];
					if (row.fn.items[i] === Number(id) && (way > 0 ? start > from && (!best || start < best.start)
						: start < from && (!best || start > best.start)))
						best = { start, took: row.took.items[i], lane: lane.lane, depth };
				}
			});
		return best ?? {};
	}

	return { overview, timeline, flame, functions, function: one, selftimes, find, offcpu };
}

const sumOf = (root) => [...root.children.values()].reduce((sum, child) => sum + child.total, 0);

/* One tree of several: equal stacks are one. */
function mergeTrees(roots) {
	const merged = { fn: -1, calls: 0, total: 0, self: 0, off: 0, children: new Map() };
	const add = (into, node) => {
		for (const child of node.children.values()) {
			let there = into.children.get(child.fn);
			if (!there)
				into.children.set(child.fn, there = { fn: child.fn, calls: 0, total: 0, self: 0, off: 0, children: new Map() });
			there.calls += child.calls;
			there.total += child.total;
			there.self += child.self;
			there.off += child.off;
			add(there, child);
		}
	};
	roots.forEach((root) => add(merged, root));
	return merged;
}

/* [[from, to, calls], …]: four bars from a power of two to the next. */
function barsOf(sorted) {
	const bars = [];
	for (const took of sorted) {
		const octave = 2 ** Math.floor(Math.log2(Math.max(took, 1))), step = octave / 4;
		const low = took < 4 ? took : octave + Math.floor((took - octave) / step) * step, last = bars[bars.length - 1];
		if (last?.[0] === low)
			last[2]++;
		else
			bars.push([low, took < 4 ? took + 1 : low + step, 1]);
	}
	return bars;
}

/* A source of figures that reads the recording at an address, as often as it is asked to look. */
function makeRecording(address) {
	const progress = { looks: 0, progress: 1 };
	let answers = null, reading = null, failed = null;

	async function read(seconds) {
		const response = await fetch(address);
		if (!response.ok)
			throw new Error((await response.text()).trim() || `HTTP ${response.status}`);
		const file = new RecordingFile(await response.arrayBuffer());
		answers = makeAnswers(figuresOf(file, seconds));
		progress.looks++;
	}

	async function ask(question, parameters) {
		if (question === "about")
			return { live: true };
		if (question === "look" || !answers) {
			failed = null;
			reading ??= read(Number(parameters?.seconds ?? 0)).catch((error) => failed = error).finally(() => reading = null);
			if (question !== "look")
				await reading;
		}
		if (failed)
			throw failed;
		if (question === "look" || question === "progress")
			return { ...progress, progress: reading ? 0.5 : 1 };
		return answers[question](parameters ?? {});
	}

	return { live: true, own: true, headers: {}, ask, async fetchNames() {} };
}
