#!/usr/bin/env node
'use strict';
// What the command is, once Node runs. See src/cli/main.ts. CommonJS, because Node starts it sooner, and with the compiled code
// of the last run, because compiling it again takes as long as starting the sandbox.
const fs = require('node:fs');
const path = require('node:path');

// The class itself: "node:module" would load more than we need.
const Module = module.constructor;

const { env } = process;
if (env.AGS_NODE_EXTRA_CA_CERTS !== undefined) {
  env.NODE_EXTRA_CA_CERTS = env.AGS_NODE_EXTRA_CA_CERTS;
  delete env.AGS_NODE_EXTRA_CA_CERTS;
}

const bundle = path.join(__dirname, '../dist/bundle');
const cache = cacheDirectory();
const { load, keep } = loader();

load('hot.cjs')
  .main(process.argv.slice(2))
  .then((code) => {
    process.exitCode = code;
    keep(code);
    // Reached when nothing is left to write. To take its memory apart first costs Node a millisecond or two.
    process.on('exit', () => process.exit());
  });

/**
 * What loads the files of the bundle, and what keeps their compiled code for the next run: whatever was used of it, which is why each
 * command has a file of its own.
 */
function loader() {
  // Node 22 and newer keep compiled code themselves, but would do so in a directory that everybody can write.
  if (Number.parseInt(process.versions.node, 10) >= 22) {
    if (cache !== null) require('node:module').enableCompileCache?.(path.join(cache, 'compiled'));
    return { load: (name) => require(`${bundle}/${name}`), keep: () => undefined };
  }
  const { Script } = require('node:vm');
  const elsewhere = Module.createRequire(`${bundle}/hot.cjs`);
  // Not the time of the last change, which every package of npm has the same.
  const changed = (name) => Math.trunc(fs.statSync(`${bundle}/${name}`).ctimeMs);
  const build = `code-${process.version}-${process.arch}-${changed('hot.cjs')}-`;
  const command = /^[a-z_]{1,20}$/.exec(process.argv[2] ?? '')?.[0] ?? 'other';
  const file = `${cache}/${build}${command}.bin`;
  const kept = cache === null ? new Map() : unpack(readOwn(file));
  const loaded = new Map();
  const load = (name) => {
    if (loaded.has(name)) return loaded.get(name).exports;
    const filename = `${bundle}/${name}`;
    // The build leaves nothing but ASCII in the one that every start loads.
    const source = fs.readFileSync(filename, name === 'hot.cjs' ? 'latin1' : 'utf8');
    const key = `${name} ${changed(name)}`;
    const cachedData = kept.get(key);
    // Compiled code belongs to one build and one Node; V8 refuses any other.
    const script = new Script(Module.wrap(source), { filename, cachedData });
    const made = { exports: {}, key, script, isNew: cachedData === undefined || script.cachedDataRejected === true };
    loaded.set(name, made);
    script.runInThisContext().call(made.exports, made.exports, requireHere, made, filename, bundle);
    return made.exports;
  };
  const requireHere = (id) => (id.startsWith('./') ? load(id.slice(2)) : elsewhere(id));
  const keep = (code) => {
    // What failed may be no command at all, of which there are many.
    if (cache === null || code !== 0 || [...loaded.values()].every(({ isNew }) => !isNew)) return;
    for (const { key, script } of loaded.values()) kept.set(key, script.createCachedData());
    save(file, build, pack(kept));
  };
  return { load, keep };
}

/** One line that says what follows it, each part at a multiple of eight bytes, where V8 takes it without a copy. */
function pack(parts) {
  const bodies = [...parts.values()].map((part) => Buffer.concat([part, Buffer.alloc(-part.length & 7)]));
  const line = JSON.stringify([...parts].map(([key, part]) => [key, part.length]));
  return Buffer.concat([Buffer.from(`${line}${' '.repeat(-(line.length + 1) & 7)}\n`, 'latin1'), ...bodies]);
}

function unpack(data) {
  const parts = new Map();
  try {
    let at = data.indexOf('\n') + 1;
    for (const [key, length] of JSON.parse(data.latin1Slice(0, at))) {
      if (at + length > data.length) break;
      parts.set(key, data.subarray(at, at + length));
      at += length + (-length & 7);
    }
  } catch {
    // None yet, or damaged.
  }
  return parts;
}

/** null: the environment does not say where the user keeps such things. */
function cacheDirectory() {
  if (env.XDG_CACHE_HOME?.startsWith('/')) return path.join(env.XDG_CACHE_HOME, 'ags');
  return env.HOME?.startsWith('/') ? path.join(env.HOME, '.cache/ags') : null;
}

/** What is run from here must have been written by this user: another one's home may be in the environment. */
function readOwn(file) {
  try {
    const fd = fs.openSync(file, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW);
    try {
      const { uid, mode } = fs.fstatSync(fd);
      return uid === process.geteuid() && (mode & 0o022) === 0 ? fs.readFileSync(fd) : undefined;
    } finally {
      fs.closeSync(fd);
    }
  } catch {
    return undefined;
  }
}

/** Only a help: where it cannot be kept, the next run compiles again. */
function save(file, build, data) {
  try {
    fs.mkdirSync(cache, { recursive: true, mode: 0o700 });
    for (const name of fs.readdirSync(cache))
      if (/^code-.*\.bin$/.test(name) && !name.startsWith(build)) fs.rmSync(path.join(cache, name), { force: true });
    fs.writeFileSync(`${file}.${process.pid}`, data, { mode: 0o600 });
    fs.renameSync(`${file}.${process.pid}`, file);
  } catch {
    // A read-only home, a full disk.
  }
}
