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
const hotFile = `${bundle}/hot.cjs`;
const cache = cacheDirectory();
const { hot, keep } = loadHot();

hot.main(process.argv.slice(2)).then((code) => {
  process.exitCode = code;
  keep();
  // Reached when nothing is left to write. To take its memory apart first costs Node a millisecond or two.
  process.on('exit', () => process.exit());
});

function loadHot() {
  // Node 22 and newer keep compiled code themselves, but would do so in a directory that everybody can write.
  if (Number.parseInt(process.versions.node, 10) >= 22) {
    if (cache !== null) require('node:module').enableCompileCache?.(path.join(cache, 'compiled'));
    return { hot: require(hotFile), keep: () => undefined };
  }
  const { Script } = require('node:vm');
  // The build leaves nothing in it but ASCII.
  const source = fs.readFileSync(hotFile, 'latin1');
  const stamp = `${process.version}-${process.arch}-${source.length}-${Math.trunc(fs.statSync(hotFile).mtimeMs)}`;
  const file = cache === null ? null : path.join(cache, `code-${stamp}.bin`);
  const cachedData = file === null ? undefined : readOwn(file);
  // Compiled code belongs to one build and one Node; V8 refuses any other.
  const script = new Script(Module.wrap(source), { filename: hotFile, cachedData });
  const made = new Module(hotFile, module);
  made.filename = hotFile;
  made.loaded = true;
  require.cache[hotFile] = made;
  script.runInThisContext().call(made.exports, made.exports, Module.createRequire(hotFile), made, hotFile, bundle);
  const known = cachedData !== undefined && script.cachedDataRejected !== true;
  return {
    hot: made.exports,
    keep: known || file === null ? () => undefined : () => save(file, script.createCachedData()),
  };
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
