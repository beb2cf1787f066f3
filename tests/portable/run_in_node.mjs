// Run the golden vectors on MicroPython's own WebAssembly build: run_in_node.mjs MODULE BOARD FILE...
// BOARD is a folder as it would be on a device; its files are copied into the interpreter's.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [module, board, ...vectors] = process.argv.slice(2);
const { loadMicroPython } = await import(pathToFileURL(module).href);
const python = await loadMicroPython({ linebuffer: true, stdout: (line) => console.log(line) });

function copy(from, to) {
  if (statSync(from).isDirectory()) {
    python.FS.mkdir(to);
    for (const name of readdirSync(from)) copy(join(from, name), `${to}/${name}`);
  } else {
    python.FS.writeFile(to, readFileSync(from));
  }
}

copy(board, "/board");
const paths = vectors.map((path, at) => {
  const there = `/vectors-${at}.json`;
  python.FS.writeFile(there, readFileSync(path));
  return there;
});
try {
  python.runPython(`
import sys
sys.path.insert(0, "/board")
import run_vectors
run_vectors.main(${JSON.stringify(paths)})
`);
} catch (error) {
  console.log(String(error.message).slice(0, 2000)); // the rest is the interpreter's own source
  process.exit(1);
}
