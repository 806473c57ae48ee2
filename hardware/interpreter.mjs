// One MicroPython interpreter: a program in as JSON on stdin, what it prints out on stdout. Started by interpreter.py.
//
// stdin: {"files": {"path": "base64", ...}, "run": ["Python source", ...], "measure": false}. The pieces run one after the
// other in the same module. With "measure" a line with the number of bytes allocated follows what each piece prints.
// A piece that raises ends it all, with its traceback on stderr and exit code 1.
//
// One process each: several interpreters in one process share state. Garbage is collected only when no Python runs, which
// is why memory is measured here, between the pieces.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(new URL("./virtual/package.json", import.meta.url));
const home = require.resolve("@micropython/micropython-webassembly-pyscript/micropython.mjs");
const { loadMicroPython } = await import(pathToFileURL(home));

const HEAP_B = 1024 * 1024; // to begin with: the heap grows when it is full, so this limits nothing

const { files, run, measure } = JSON.parse(readFileSync(0, "utf8"));
const interpreter = await loadMicroPython({ heapsize: HEAP_B, linebuffer: true, stdout: (line) => console.log(line) });

function makeFolder(path) {
  if (interpreter.FS.analyzePath(path).exists) return;
  makeFolder(dirname(path));
  interpreter.FS.mkdir(path);
}

for (const [path, contents] of Object.entries(files)) {
  makeFolder(dirname("/" + path));
  interpreter.FS.writeFile("/" + path, Buffer.from(contents, "base64"));
}
try {
  interpreter.runPython("import sys\nsys.path.insert(0, '/')");
  const { collect, mem_alloc } = interpreter.pyimport("gc");
  for (const piece of run) {
    interpreter.runPython(piece);
    if (!measure) continue;
    collect(); // It does so when it has returned.
    console.log(mem_alloc());
  }
} catch (error) {
  console.error(String(error.message ?? error));
  process.exitCode = 1;
}
