// SPDX-License-Identifier: MIT
// What makes V8 walk its stack while traced functions are on it: deep recursion and its end by a
// RangeError, exceptions through C++ and back, garbage collections in callbacks of C++, code that is
// thrown away while it runs, regular expressions, stack traces, generators, workers, other contexts.
'use strict';
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const vm = require('vm');
const zlib = require('zlib');
const rounds = Number(process.argv[2] || 3);

function depth(n) { return n === 0 ? 0 : 1 + depth(n - 1); }
function endless() { return 1 + endless(); }

function throughC(n) {
	if (n === 0) throw new Error('at the bottom');
	return [n].map(() => JSON.parse(`[${n}]`, (key, value) => key === '0' ? throughC(n - 1) : value))[0];
}

function garbage(amount) {
	let kept = [];
	for (let i = 0; i < amount; i++) {
		kept.push({ i, text: 'x'.repeat(i % 50), more: [i, { i }] });
		if (kept.length > 2000) kept = kept.filter((one) => one.i % 3 === 0);
	}
	return kept.length;
}

function sortWithGarbage() {
	const list = Array.from({ length: 300 }, (_, i) => (i * 7919) % 1009);
	list.sort((a, b) => { garbage(20); return a - b; });
	return list.slice(0, 5).join();
}

function add(a, b) { return a + b; }
function changeOfMind() {
	let sum = 0;
	for (let i = 0; i < 20000; i++) sum = add(sum, i);
	return add(String(sum), { toString() { garbage(100); return '!'; } });
}

function expressions() {
	const text = 'aab'.repeat(2000);
	let count = 0;
	text.replace(/(a+)(b)/g, (all, a, b) => { count += a.length; if (count % 500 === 0) garbage(500); return b; });
	return count + ' ' + /^(?:(a|ab)*)+c/.test('ab'.repeat(10));
}

function* counting(n) { for (let i = 0; i < n; i++) { try { yield i; } finally { garbage(3); } } }

function traces() {
	const error = (() => { try { [1].forEach(() => { throwIt(); }); } catch (caught) { return caught; } })();
	return error.stack.split('\n').slice(0, 3).map((line) => line.replace(/\(.*[/\\]/, '(')).join('|');
}
function throwIt() { throw new TypeError('thrown'); }

function one(round) {
	const said = [depth(3000)];
	try { endless(); } catch (error) { said.push(error.constructor.name); }
	try { throughC(50); } catch (error) { said.push(error.message); }
	said.push(garbage(8000), sortWithGarbage(), changeOfMind(), expressions());
	let sum = 0;
	for (const i of counting(200)) { sum += i; if (i === 150) break; }
	said.push(sum, traces());
	said.push(vm.runInNewContext('try { null.x } catch (e) { e.constructor.name + list.length }', { list: [round] }));
	said.push(zlib.gunzipSync(zlib.gzipSync('y'.repeat(10000))).length);
	said.push(new Function('a', 'return a * 2')(round));
	return said.join(' ');
}

if (isMainThread) {
	const start = async () => {
		for (let round = 0; round < rounds; round++) console.log(round, one(round));
		const workers = Array.from({ length: 2 }, (_, i) => new Promise((resolve, reject) => {
			const worker = new Worker(__filename, { workerData: i, argv: process.argv.slice(2) });
			worker.on('message', resolve);
			worker.on('error', reject);
		}));
		for (const said of await Promise.all(workers)) console.log(said);
		await Promise.reject(new Error('late')).catch((error) => console.log(error.message));
		if (process.argv[3] === 'loop') {
			console.log('looping');
			process.stdin.on('data', () => { console.log(one(7)); process.exit(5); });
			const again = () => { one(1); setImmediate(again); };
			again();
			return;
		}
		process.exitCode = 9;
	};
	start();
} else {
	parentPort.postMessage(`worker ${workerData} ${one(workerData)}`);
}
