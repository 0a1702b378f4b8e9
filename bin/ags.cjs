#!/usr/bin/env node
'use strict';
// The installed command. See src/cli/main.ts. CommonJS, because Node starts it sooner, and with the compiled code of the last
// run, because compiling it again takes as long as starting the sandbox.
const fs = require('node:fs');
const Module = require('node:module');
const path = require('node:path');

const bundle = path.join(__dirname, '../dist/bundle');
// Node 22 and newer keep compiled code themselves.
const keep = Module.enableCompileCache === undefined ? loadHot() : (Module.enableCompileCache(), () => undefined);

require(`${bundle}/main.cjs`)
  .main(process.argv.slice(2))
  .then((code) => {
    process.exitCode = code;
    keep();
  });

/** Loads what every command needs. Compiled code belongs to one build and one Node; V8 refuses any other. */
function loadHot() {
  const { Script } = require('node:vm');
  const filename = `${bundle}/hot.cjs`;
  const source = fs.readFileSync(filename, 'utf8');
  const home = process.env.XDG_CACHE_HOME?.startsWith('/') ? process.env.XDG_CACHE_HOME : `${process.env.HOME}/.cache`;
  const stamp = `${process.version}-${process.arch}-${source.length}-${Math.trunc(fs.statSync(filename).mtimeMs)}`;
  const file = path.join(home, 'ags', `code-${stamp}.bin`);
  const cachedData = readIfThere(file);
  const script = new Script(Module.wrap(source), { filename, cachedData });
  const hot = new Module(filename, module);
  hot.filename = filename;
  hot.loaded = true;
  require.cache[filename] = hot;
  script.runInThisContext().call(hot.exports, hot.exports, Module.createRequire(filename), hot, filename, bundle);
  return cachedData !== undefined && script.cachedDataRejected !== true
    ? () => undefined
    : () => save(file, script.createCachedData());
}

function readIfThere(file) {
  try {
    return fs.readFileSync(file);
  } catch {
    return undefined;
  }
}

/** Only a help: where it cannot be kept, the next run compiles again. */
function save(file, data) {
  try {
    const directory = path.dirname(file);
    fs.mkdirSync(directory, { recursive: true, mode: 0o700 });
    for (const name of fs.readdirSync(directory))
      if (/^code-.*\.bin$/.test(name)) fs.rmSync(path.join(directory, name), { force: true });
    fs.writeFileSync(`${file}.${process.pid}`, data, { mode: 0o600 });
    fs.renameSync(`${file}.${process.pid}`, file);
  } catch {
    // A read-only home, a full disk.
  }
}
