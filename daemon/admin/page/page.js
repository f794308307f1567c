// SPDX-License-Identifier: BSD-2-Clause
// Reads /metrics again and again, and shows what it says.
"use strict";

const PERIOD = 2000; // milliseconds between readings
const PATIENCE = 5000; // milliseconds that an answer may take
const ANSWER_MAX = 32 << 20; // characters
const TABLE_SECONDS = 10; // that the tables look back
const RANGES = [[300, "5 min"], [900, "15 min"], [3600, "1 hour"]];

const REASONS = { in_error: "with a line or a path in error", failed: "whose path cannot be opened", unmounted: "whose file system was unmounted",
	removed: "whose directory was removed" };

const WAITS = { enforce: name => `until member ${name} grants none`, start: name => `until member ${name}, which does not run, is started or removed`,
	reclaim: name => `for clients of member ${name} to reclaim` };

const state = { readings: [], range: RANGES[0][0], failure: null, lastHeard: null };
const byId = id => document.getElementById(id);
const tiles = new Tiles(byId("tiles"));
const plots = {
	bytes: new Plot({ title: "Throughput", series: [["a", "Read"], ["b", "Written"]], format: bytesPerSecond, tick: tickBytes, binary: true, least: 1024 }),
	latency: new Plot({ title: "Latency of calls", series: [["a", "p50"], ["b", "p95"], ["c", "p99"]], format: duration, tick: tickDuration, log: true }),
	calls: new Plot({ title: "Calls", series: [["a", "Calls"], ["b", "Errors"]], format: perSecond, tick: rate, least: 4 }),
	clients: new Plot({ title: "Connections", series: [["a", "Connections"], ["b", "NFSv4 clients"]], format: count, tick: count, least: 4 }),
};
const operations = new Table(byId("operations"), "Operations", [
	["Operation", "name"], ["Calls/s", "rate", rate], ["p50", "p50", duration, "wide-only"], ["p95", "p95", duration, "wide-only"], ["p99", "p99", duration],
	["Errors/s", "errors", rate],
], "rate");
const exportTable = new Table(byId("exports"), "Exports", [
	["Number", "name"], ["Read/s", "read", bytesPerSecond], ["Written/s", "written", bytesPerSecond], ["Read", "readAll", bytes, "wide-only"],
	["Written", "writtenAll", bytes, "wide-only"],
], "read");
const cards = {};
for (const [side, titles] of [["left", ["RDMA", "Descriptors and caches"]], ["right", ["Server", "Clients and state", "Memory"]]])
	for (const title of titles)
		cards[title] = new Card(byId("cards-" + side), title);

function showTiles(interval) {
	const now = interval.now, [calls, errors] = callRates(interval), quantiles = latency(interval);
	const transports = [...now.totals("ringnfs_connections", "transport")].map(([name, n]) => `${count(n)} ${name.toUpperCase()}`);

	tiles.set("Read", bytesPerSecond(interval.rate("ringnfs_read_bytes_total")));
	tiles.set("Written", bytesPerSecond(interval.rate("ringnfs_written_bytes_total")));
	tiles.set("Calls", perSecond(calls), errors ? `${rate(errors)} errors /s` : "no errors");
	tiles.set("Latency, p99", duration(quantiles[2]), quantiles[0] === undefined ? "no calls" : `median ${duration(quantiles[0])}`);
	tiles.set("Connections", count(now.total("ringnfs_connections")), transports.join(", "));
	tiles.set("NFSv4 clients", count(now.total("ringnfs_nfs4_clients")), courtesyText(now));
}

function courtesyText(now) {
	const idle = sum([...now.totals("ringnfs_nfs4_clients", "state")].filter(([name]) => name !== "active").map(([, n]) => n));

	return idle ? `${count(idle)} without a lease` : "";
}

function addPoints(interval) {
	const now = interval.now, oldest = now.time - RANGES[RANGES.length - 1][0];

	plots.bytes.add(now.time, [interval.rate("ringnfs_read_bytes_total"), interval.rate("ringnfs_written_bytes_total")], oldest);
	plots.latency.add(now.time, latency(interval), oldest);
	plots.calls.add(now.time, callRates(interval), oldest);
	plots.clients.add(now.time, [now.total("ringnfs_connections"), now.total("ringnfs_nfs4_clients")], oldest);
}

function addGap(time) {
	for (const plot of Object.values(plots))
		plot.add(time, plot.options.series.map(() => undefined), time - RANGES[RANGES.length - 1][0]);
}

function showPlots() {
	for (const plot of Object.values(plots))
		plot.show(performance.now() / 1000, state.range);
}

function showServer(interval) {
	const now = interval.now, grace = now.total("ringnfs_grace_active"), stuck = now.total("ringnfs_stuck_threads");
	const lease = now.total("ringnfs_lease_seconds"), waits = interval.histogram(["ringnfs_queue_wait_seconds"], () => true);
	const busy = now.samples("ringnfs_event_thread_busy_ratio").map(s => s.value);
	const workers = now.total("ringnfs_workers"), working = now.total("ringnfs_workers", { state: "busy" });
	const rows = [["Grace period", grace === undefined ? NONE : grace ? "active" : "over", grace ? "warn" : ""],
		["Stuck threads", stuck === undefined ? NONE : stuck ? count(stuck) : "none", stuck ? "warn" : ""],
		["Workers, busy", workers === undefined ? NONE : `${count(working)} of ${count(workers)}`],
		["Event thread load", busy.length ? percent(Math.max(...busy)) : NONE],
		["Queue wait, p99", waits.count ? duration(waits.quantile(0.99)) : "none"],
		["Exports served", count(now.total("ringnfs_exports"))], ["Lease", lease === undefined ? NONE : age(lease)]];

	const running = now.totals("ringnfs_cluster_member_running", "member"), since = now.total("ringnfs_cluster_grace_seconds");

	if (running.size)
		rows.push(["Members that run", `${count(sum([...running.values()]))} of ${count(running.size)}`],
			["Grace of the cluster", since ? age(since) : "over", since ? "warn" : ""]);
	cards.Server.show(rows, "");
}

function showState(now) {
	const clients = [...now.totals("ringnfs_nfs4_clients", "state")].map(([name, n]) => [`Clients, ${after(name)}`, count(n)]);

	cards["Clients and state"].show([...clients, ...countsOf(now, "ringnfs_nfs4_state", "kind")], "NFSv4 is off.");
}

// Some rates of RDMA, each a family or a family by a label.
function showRdma(interval) {
	const now = interval.now, rows = [];
	const simple = [["Reads", "ringnfs_rdma_reads_total"], ["Writes", "ringnfs_rdma_writes_total"], ["Invalidations", "ringnfs_rdma_invalidations_total"],
		["Waits for the send queue", "ringnfs_rdma_send_queue_waits_total"]];

	for (const [name, family] of [["Chunks", "ringnfs_rdma_chunks_total"], ["Segments", "ringnfs_rdma_segments_total"]])
		for (const [kind, n] of interval.rates(family, s => s.labels.get("kind") || ""))
			rows.push([`${name}, ${after(kind)}`, perSecond(n)]);
	for (const [name, family] of simple)
		if (now.families.has(family))
			rows.push([name, perSecond(interval.rate(family))]);
	if (now.families.has("ringnfs_rdma_credits_granted"))
		rows.push(["Credits granted", count(now.total("ringnfs_rdma_credits_granted"))]);
	for (const s of now.samples("ringnfs_rdma_errors_total").filter(one => one.value > 0))
		rows.push([[s.labels.get("error"), s.labels.get("reason")].filter(Boolean).join(", "), `${count(s.value)} in all`, "warn"]);
	cards.RDMA.show(rows, "RDMA is off, or there is no device.");
}

// The first row of a card about something that is limited.
function limited(name, used, limit, format) {
	return limit > 0 && used >= 0 ? [name, `${format(used)} of ${format(limit)}`, "strong", used / limit] : [name, format(used), "strong"];
}

function showMemory(now) {
	const used = now.total("ringnfs_memory_used_bytes"), limit = now.total("ringnfs_memory_limit_bytes");
	const accounts = [...now.totals("ringnfs_memory_bytes", "account")];
	const [outside, within] = [true, false].map(is => accounts.filter(([name]) => (name === "replies") === is).map(([name, n]) => [words(name), bytes(n)]));

	// The first row is the sum of those up to "Beside it".
	cards.Memory.show([limited("In use", used, limit, bytes), ...within, ...outside.map(([name, text]) => ["Beside it, kept " + after(name), text]),
		["Resident", bytes(now.total("ringnfs_process_resident_memory_bytes"))]], "");
}

function showDescriptors(now) {
	const open = now.total("ringnfs_process_open_fds"), limit = now.total("ringnfs_process_max_fds");
	const uses = [...now.totals("ringnfs_file_descriptors", "kind")].map(([name, n]) => [`Descriptors, ${after(name)}`, count(n)]);
	const caches = [...now.totals("ringnfs_cache_entries", "cache")].map(([name, n]) => [`Cache, ${after(name)}`, count(n)]);

	cards["Descriptors and caches"].show([limited("Descriptors", open, limit, count), ...uses, ...caches], "");
}

function showNotices(now) {
	const notices = [], stuck = now && now.total("ringnfs_stuck_threads");

	if (state.failure)
		notices.push(["bad", `The server cannot be reached (${state.failure}). ` +
			(state.lastHeard ? `The figures are those of ${clock(state.lastHeard, true)}.` : "There are no figures yet.")]);
	const awaited = now && now.samples("ringnfs_cluster_grace_waits").filter(s => s.value > 0);

	if (awaited && awaited.length)
		notices.push(["warn", `Grace period of the cluster: new locks wait ${awaited.map(s => (WAITS[s.labels.get("reason")] || (name => `for member ${name}`))(s.labels.get("member"))).join(", ")}.`]);
	if (now && now.total("ringnfs_grace_active"))
		notices.push(["warn", "Grace period: clients reclaim what they held before the restart; new opens and locks of others wait."]);
	if (now && now.total("ringnfs_client_records_failing"))
		notices.push(["bad", "Records of clients cannot be written: after a restart they would not get their locks back. The log says why."]);
	const left = now && now.samples("ringnfs_exports_not_served").filter(s => s.value > 0 && s.labels.get("reason") !== "waiting");

	if (left && left.length)
		notices.push(["bad", `Exports are not served: ${left.map(s => `${count(s.value)} ${REASONS[s.labels.get("reason")] || "for another reason"}`).join(", ")}. ` +
			"ringnfsctl exports list names them."]);
	if (now && now.total("ringnfs_exports_reload_refused"))
		notices.push(["bad", "The last reload of the exports was refused: those before it are in force. ringnfsctl exports diff says why."]);
	if (stuck)
		notices.push(["bad", `${count(stuck)} ${stuck === 1 ? "thread waits" : "threads wait"} for a file system that does not answer. The log names it, and since when.`]);
	// An alert is read aloud when it changes, so it is left alone while it does not.
	const text = JSON.stringify(notices);

	if (text !== state.notices)
		byId("notices").replaceChildren(...notices.map(([c, t]) => el("p", { class: "notice " + c }, t)));
	state.notices = text;
}

function showHeader(now) {
	const version = now.label("ringnfs_build_info", "version"), started = now.total("ringnfs_start_time_seconds");
	const parts = [version && `version ${version}`, started && `running for ${age(Math.max(0, Date.now() / 1000 - started))}`];

	byId("about").textContent = parts.filter(Boolean).join(" · ");
}

function showLink() {
	const link = byId("link"), text = state.failure ? "Not reachable" : "Live";

	link.className = "link " + (state.failure ? "lost" : "live");
	if (byId("link-text").textContent !== text)
		byId("link-text").textContent = text;
	document.body.classList.toggle("stale", Boolean(state.failure));
	document.title = (state.failure ? "(not reachable) " : "") + `ringnfs ${location.host}`;
}

async function read() {
	const answer = await fetch("metrics", { cache: "no-store", headers: { Accept: "text/plain" }, signal: AbortSignal.timeout(PATIENCE) });

	if (!answer.ok)
		throw new Error(`it answers with status ${answer.status}`);
	const text = await answer.text(), reading = new Reading(text.slice(0, ANSWER_MAX), performance.now() / 1000);

	if (!reading.families.size)
		throw new Error("its answer has no figures");
	return reading;
}

// The interval that ends now and has lasted about that long; null without an earlier reading.
function interval(seconds) {
	const now = state.readings[state.readings.length - 1];
	const before = state.readings.find(r => r !== now && now.time - r.time <= seconds + 0.5) || state.readings[state.readings.length - 2];

	return before ? new Interval(before, now) : null;
}

function take(reading) {
	const last = state.readings[state.readings.length - 1];

	if (last && !reading.follows(last)) {
		state.readings = [];
		addGap(reading.time);
	}
	state.readings.push(reading);
	while (state.readings.length > 2 && reading.time - state.readings[1].time > TABLE_SECONDS)
		state.readings.shift();
	const short = interval(0), long = interval(TABLE_SECONDS);

	if (short) {
		addPoints(short);
		showTiles(short);
		showServer(short);
		showRdma(long);
		operations.show(operationRows(long), "No calls.");
		exportTable.show(exportRows(long), "Nothing was read or written yet.");
		byId("main").setAttribute("aria-busy", "false");
	}
	showHeader(reading);
	showState(reading);
	showMemory(reading);
	showDescriptors(reading);
}

function reasonOf(error) {
	const reasons = { TimeoutError: `no answer within ${PATIENCE / 1000} seconds`, TypeError: "no connection" };

	return reasons[error.name] || error.message;
}

async function tryRead() {
	try {
		const reading = await read();

		state.failure = null;
		state.lastHeard = new Date();
		return reading;
	} catch (error) {
		state.failure = reasonOf(error);
		return null;
	}
}

async function turn() {
	setTimeout(turn, PERIOD);
	if (state.reads)
		return;
	state.reads = true;
	const reading = await tryRead();

	state.reads = false;
	if (reading)
		take(reading);
	else
		addGap(performance.now() / 1000);
	showNotices(state.readings[state.readings.length - 1]);
	showLink();
	showPlots();
}

function chooseRange(seconds) {
	state.range = seconds;
	for (const button of byId("range").children)
		button.setAttribute("aria-pressed", String(Number(button.dataset.seconds) === seconds));
	showPlots();
}

byId("range").append(...RANGES.map(([seconds, text]) => {
	const button = el("button", { type: "button", "data-seconds": seconds }, text);

	button.addEventListener("click", () => chooseRange(seconds));
	return button;
}));
byId("plots").append(...Object.values(plots).map(plot => plot.root));
byId("host").textContent = location.host;
chooseRange(state.range);
turn();
