// The rack: one process that holds virtual motes, each a worker thread with an interpreter of its own (mote.mjs).
//
// One thread each, because interpreters in one thread share JavaScript's globals and so leak into each other. A mote's
// line is a TCP port on loopback, which its own thread serves; the rack only starts, stops and restarts motes.
//
// Told by lines of JSON on stdin:
//   {"do": "load", "files": [[path, base64], ...], "speed": 1}   once, first: all motes' program and clock
//   {"do": "start", "mote": i}    -> {"mote": i, "port": p, "boot": n} once its program runs and its line is open;
//                                    n says how often it began before, and the port stays the same
//   {"do": "kill", "mote": i}     -> {"mote": i, "killed": true}; its line is cut
//   {"do": "memory"}              -> {"rss_B": b, "motes": {i: bytes on its heap, null if it does not answer}}
//   {"do": "stop"}                or the end of stdin: everything ends
// Tells by lines of JSON on stdout, besides the answers:
//   {"node": version}             first
//   {"mote": i, "print": text}    {"mote": i, "lost_B": n} (its bytes, which a host did not read)
//   {"mote": i, "crashed": text}  its program ended, with the traceback
//   {"mote": i, "resets": true}   it begins again by itself; its new start is told as any other
//
// Limits: a mote that never gives control back (an endless loop) holds a core, but neither the rack nor other motes; it
// can be killed. What a mote prints is dropped, and counted, when the rack cannot pass it on as fast.
import { createInterface } from "node:readline";
import { Worker } from "node:worker_threads";

const ANSWER_MS = 2000; // what a mote may take to say how full its memory is

const motes = new Map();
let program = { files: [], speed: 1 };

function tell(what) {
  process.stdout.write(JSON.stringify(what) + "\n");
}

function start(number) {
  const mote = motes.get(number) ?? { number, boot: -1, port: 0, worker: null };
  motes.set(number, mote);
  if (mote.worker) return tell({ mote: number, port: mote.port, boot: mote.boot });
  mote.boot += 1;
  mote.isKilled = mote.isResetting = false;
  mote.crash = null;
  mote.waiting = new Int32Array(new SharedArrayBuffer(4)); // lines printed and not passed on yet
  const { boot, port, waiting } = mote;
  mote.worker = new Worker(new URL("./mote.mjs", import.meta.url), { workerData: { ...program, boot, port, waiting } });
  mote.worker.on("message", (message) => hear(mote, message));
  mote.worker.on("error", (error) => (mote.crash = traceback(error)));
  mote.worker.on("exit", (code) => ended(mote, code));
}

function traceback(error) {
  return error.name === "PythonError" ? error.message : String(error.stack ?? error);
}

function hear(mote, message) {
  if ("allocated_B" in message) return mote.answer?.(message.allocated_B);
  if ("print" in message) Atomics.sub(mote.waiting, 0, 1);
  if ("resets" in message) mote.isResetting = true;
  if ("port" in message) mote.port = message.port;
  tell({ mote: mote.number, ...message });
}

function ended(mote, code) {
  mote.worker = null;
  mote.answer?.(null);
  if (mote.isKilled) return tell({ mote: mote.number, killed: true });
  if (mote.isResetting) return start(mote.number);
  tell({ mote: mote.number, crashed: mote.crash ?? `the interpreter ended with code ${code}` });
}

function kill(number) {
  const mote = motes.get(number);
  if (!mote?.worker) return tell({ mote: number, killed: true });
  mote.isKilled = true;
  mote.worker.terminate();
}

function allocated(mote) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ANSWER_MS, null);
    mote.answer = (bytes) => {
      clearTimeout(timer);
      resolve(bytes);
    };
    mote.worker.postMessage("memory");
  });
}

async function memory() {
  const running = [...motes.values()].filter((mote) => mote.worker);
  const answers = await Promise.all(running.map(async (mote) => [mote.number, await allocated(mote)]));
  tell({ rss_B: process.memoryUsage.rss(), motes: Object.fromEntries(answers) });
}

async function obey(order) {
  if (order.do === "load") {
    program = { files: order.files.map(([path, text]) => [path, Buffer.from(text, "base64")]), speed: order.speed };
  } else if (order.do === "start") start(order.mote);
  else if (order.do === "kill") kill(order.mote);
  else if (order.do === "memory") await memory();
  else if (order.do === "stop") process.exit(0);
  else throw new Error(`the rack does not know how to do ${JSON.stringify(order)}`);
}

tell({ node: process.versions.node });
for await (const line of createInterface({ input: process.stdin })) await obey(JSON.parse(line));
process.exit(0); // Whoever wanted these motes is gone.
