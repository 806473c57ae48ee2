// A virtual mote: a thread of the rack with MicroPython, a serial line and a clock.
//
// Theory of operation
//   The line is a TCP server on loopback. All hosts on it share it as they would share a wire: the mote hears each of
//   them, and they all hear the mote. What comes is handed to the program in pieces of PIECE_B, as from a serial port's
//   small buffer; while the program is busy nothing is read, and TCP holds the senders back. A host that does not read
//   loses what the mote says beyond UNREAD_B (and what the system keeps of it): that is counted and told.
//
//   The program never waits. After whatever it was called for it says in how many µs it wants to be called again.
//
// What passes between JavaScript and Python
//   Bytes go as text in hex: anything else makes a proxy that lives on. Whole numbers are cut to 32 bits on the way, so
//   that times go as numbers with a fraction. The interpreter collects garbage only after Python has returned.
import net from "node:net";
import { dirname } from "node:path";
import { parentPort, workerData } from "node:worker_threads";

import { loadMicroPython } from "@micropython/micropython-webassembly-pyscript/micropython.mjs";

const PIECE_B = 256;
const UNREAD_B = 64 * 1024;
const PRINTS_WAITING = 1000; // printed lines that the rack has not passed on yet
const HEAP_B = 64 * 1024; // to begin with: the heap grows when it is full, so this says how soon garbage is collected
const CLOSE_MS = 200; // what a line may take to empty before a reset cuts it
const REOPEN_MS = 2000; // how long to try for a port that somebody else has

const { files, boot, speed, waiting } = workerData;
const began_ms = performance.now();
const connections = new Set();
let program = null; // what the board driver registered: feed(hex), step() -> µs or null
let isResetting = false;
let unplan = () => {};
let unprinted = 0;

function print(line) {
  // Counted in memory shared with the rack: a program that prints for ever gives no time to hear of it otherwise.
  if (Atomics.add(waiting, 0, 1) >= PRINTS_WAITING) {
    Atomics.sub(waiting, 0, 1);
    unprinted += 1;
    return;
  }
  parentPort.postMessage({ print: unprinted ? `(${unprinted} lines are lost)\n${line}` : line });
  unprinted = 0;
}

function send(hex) {
  const bytes = Buffer.from(hex, "hex");
  for (const socket of connections) {
    if (socket.writableLength + bytes.length > UNREAD_B) socket.lost_B += bytes.length;
    else socket.write(bytes);
  }
}

function tellLoss(socket) {
  if (socket.lost_B) parentPort.postMessage({ lost_B: socket.lost_B });
  socket.lost_B = 0;
}

const server = net.createServer({ noDelay: true }, (socket) => {
  socket.lost_B = 0;
  connections.add(socket);
  socket.on("data", take);
  socket.on("drain", () => tellLoss(socket));
  socket.on("error", () => {}); // "close" follows: a host that went away is no fault of the mote's.
  socket.on("close", () => {
    connections.delete(socket);
    tellLoss(socket);
  });
});

function inPython(f, ...values) {
  try {
    return f(...values);
  } catch (error) {
    if (isResetting && error.type === "SystemExit") return null;
    throw error;
  }
}

function take(data) {
  for (let at = 0; at < data.length && program; at += PIECE_B) {
    inPython(program.feed, data.toString("hex", at, at + PIECE_B));
    if (program) plan(inPython(program.step));
  }
}

function plan(wait_us) {
  unplan();
  unplan = () => {};
  if (wait_us === null || !program) return;
  const wait_ms = Math.min(Math.ceil(wait_us / 1000 / speed), 2 ** 31 - 1);
  const again = () => plan(inPython(program.step));
  if (wait_ms > 0) {
    const timer = setTimeout(again, wait_ms);
    unplan = () => clearTimeout(timer);
  } else {
    const timer = setImmediate(again);
    unplan = () => clearImmediate(timer);
  }
}

function reset() {
  // What the mote said last still goes out, if somebody reads it.
  isResetting = true;
  program = null;
  unplan();
  for (const socket of connections) socket.destroySoon();
  parentPort.postMessage({ resets: true });
  server.close(() => process.exit());
  setTimeout(() => process.exit(), CLOSE_MS);
}

function listen(port, until_ms) {
  server.once("error", (error) => {
    // The port of a mote that was off may be in somebody else's use for a moment.
    if (error.code !== "EADDRINUSE" || performance.now() > until_ms) throw error;
    setTimeout(listen, 50, port, until_ms);
  });
  server.listen(port, "127.0.0.1", () => {
    server.removeAllListeners("error");
    parentPort.postMessage({ port: server.address().port, boot });
  });
}

const interpreter = await loadMicroPython({ heapsize: HEAP_B, linebuffer: true, stdout: print });
interpreter.registerJsModule("virtual", {
  boots: boot,
  // The half makes it a number with a fraction.
  now_us: () => Math.floor((performance.now() - began_ms) * 1000 * speed) + 0.5,
  send,
  reset,
  serve: (feed, step) => (program = { feed, step }),
});

function makeFolder(path) {
  if (interpreter.FS.analyzePath(path).exists) return;
  makeFolder(dirname(path));
  interpreter.FS.mkdir(path);
}

for (const [path, bytes] of files) {
  makeFolder(dirname("/" + path));
  interpreter.FS.writeFile("/" + path, bytes);
}
const { collect, mem_alloc } = interpreter.pyimport("gc");
parentPort.on("message", () => {
  collect(); // It does so when it has returned: one call for both would count the garbage.
  parentPort.postMessage({ allocated_B: mem_alloc() });
});
inPython(interpreter.runPython, "import main");
if (program) plan(inPython(program.step));
if (!isResetting) listen(workerData.port, performance.now() + REOPEN_MS);
