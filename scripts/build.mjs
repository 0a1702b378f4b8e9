// scripts/build.mjs: dist/ from src/. The compiler's own output is what the documentation is made from; the command itself is
// bundled, because finding and loading a hundred small modules costs more than starting a sandbox. Everything that
// `ags exec` always needs is one file; the rest is loaded when it is called for.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { rolldown } from 'rolldown';
import { BUILT_FROM, root, sourceStamp } from './setup.mjs';

const stamp = sourceStamp();
rmSync(BUILT_FROM, { force: true });
execFileSync(join(root, 'node_modules/.bin/tsc'), ['-p', root], { stdio: 'inherit' });

const hot = reachable([
  'cli/main.js',
  'cli/verbs/exec.js',
  'cli/verbs/shell.js',
  'run/readiness.js',
  'exec/has-changes.js',
]);
const bundle = await rolldown({
  input: { main: join(root, 'dist/cli/main.js') },
  platform: 'node',
  // A native module: it stays a package of its own.
  external: [/^@lydell\//],
  checks: { ineffectiveDynamicImport: false },
});
rmSync(join(root, 'dist/bundle'), { recursive: true, force: true });
await bundle.write({
  dir: join(root, 'dist/bundle'),
  // Node starts a CommonJS file some 15 ms sooner than a module.
  format: 'cjs',
  // What bin/ags.cjs compiles can require, and cannot import.
  dynamicImportInCjs: false,
  entryFileNames: '[name].cjs',
  // bin/ags.cjs loads this one by itself, and calls its `main`.
  chunkFileNames: (chunk) => (chunk.name === 'hot' ? 'hot.cjs' : '[name]-[hash].cjs'),
  minify: { mangle: false, compress: true, codegen: { removeWhitespace: true } },
  minifyInternalExports: false,
  codeSplitting: { groups: [{ name: 'hot', test: (id) => hot.has(id) || id.includes('rolldown/runtime') }] },
});

finishHot();
await copyPrograms();

// What is bundled brings its licence along.
const licences = ['zod', 'yaml', 'ws'].map(
  (name) => `${name}\n\n${readFileSync(join(root, 'node_modules', name, 'LICENSE'), 'utf8')}`,
);
writeFileSync(join(root, 'dist/bundle/LICENSES.txt'), licences.join('\n----\n\n'));

await buildPage();
// Set-up builds again unless the source has this stamp. It is written last, for a build that is complete.
writeFileSync(BUILT_FROM, stamp);

/** Our programs in Perl; in the bundle each is whole, so that a start reads one file. */
async function copyPrograms() {
  const files = readdirSync(join(root, 'src'), { recursive: true }).filter((file) => file.endsWith('.pl'));
  for (const file of files) cpSync(join(root, 'src', file), join(root, 'dist', file));
  const { perlProgram } = await import('../dist/lib/perl.js');
  for (const file of files) {
    mkdirSync(join(root, 'dist/bundle', dirname(file)), { recursive: true });
    writeFileSync(join(root, 'dist/bundle', file), perlProgram(file));
  }
}

/** The page, unless it was built from exactly these files. */
async function buildPage() {
  const hash = createHash('sha256');
  const add = (path) => {
    hash.update(`${path}\n`).update(readFileSync(join(root, path)));
  };
  for (const dir of ['web', 'src/protocol', 'src/client', 'src/lib'])
    for (const entry of readdirSync(join(root, dir), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length))
      .sort())
      add(entry);
  for (const file of ['package-lock.json', 'scripts/build.mjs']) add(file);
  const pageStamp = join(root, 'dist/.page-built-from');
  const wanted = hash.digest('hex');
  const isBuilt = existsSync(join(root, 'dist/web/index.html')) && existsSync(pageStamp);
  if (isBuilt && readFileSync(pageStamp, 'utf8') === wanted) return;
  const { build } = await import('vite');
  await build({ configFile: join(root, 'web/vite.config.ts'), logLevel: 'warn' });
  writeFileSync(pageStamp, wanted);
}

/** The files that are loaded whenever these are: static imports only. */
function reachable(entries) {
  const found = new Set();
  const visit = (file) => {
    if (found.has(file)) return;
    found.add(file);
    for (const [, path] of readFileSync(file, 'utf8').matchAll(/^(?:import|export) [^;]*?from '(\.[^']+)';/gms))
      visit(join(dirname(file), path));
  };
  for (const entry of entries) visit(join(root, 'dist', entry));
  return found;
}

/** What costs every start a millisecond: one more file to find (the bundler's own helpers), and two bytes for each character. */
function finishHot() {
  const file = join(root, 'dist/bundle/hot.cjs');
  const text = readFileSync(file, 'utf8');
  const whole = text.replace(/require\("\.\/(rolldown-runtime-[^"]+)"\)/, (_, name) => {
    const runtime = readFileSync(join(root, 'dist/bundle', name), 'utf8');
    return `(exports=>{${runtime}return exports})({})`;
  });
  if (whole === text) throw new Error('hot.cjs does not load the helpers of the bundler where they are looked for');
  writeFileSync(
    file,
    whole.replaceAll(/[^\0-\x7f]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`),
  );
}
