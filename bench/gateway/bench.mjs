// bench/gateway/bench.mjs: compares the gateway with other proxies: installs them, prepares their place and runs the measurements there.
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installPrograms, programVersion } from '../peers.mjs';
import { number } from '../stats.mjs';
import { wait } from '../fixture.mjs';
import { prepareFirst } from './first.mjs';
import { fromInsideSection } from './from-inside-section.mjs';
import { buildLoad, inPlace } from './place.mjs';
import { asGateway, gatewaySections } from './sections.mjs';

export async function benchGateway(root, fixture, peers, effort) {
  const isRoot = process.getuid() === 0;
  const tinyproxy = installPrograms({ tinyproxy: 'tinyproxy' });
  // Squid changes to a user of its own, so only root can start it.
  const squid = isRoot ? installPrograms({ squid: 'squid' }) : 'it can be started by root only';
  const { dir, load } = prepareLoad(fixture, 'gateway');
  const files = inPlace([]).files;
  const settings = {
    ...effort,
    dir,
    isRoot,
    load,
    ags: fixture.ags(),
    tinyproxy: tinyproxy === null,
    squid: squid === null,
    srt: peers.directory === null ? null : srtPackage(fixture),
    dist: join(root, 'dist'),
    // Without root only a user namespace has root's rights, which would distort this measurement.
    first: isRoot ? prepareFirst(fixture.actors.root, load) : null,
    // Each connection needs two descriptors of the proxy, which has some of its own.
    held: [1000, Math.min(10_000, Math.floor((files - 200) / 2))],
  };
  const others = await busyCores();
  const found = await measureIn('inside.mjs', settings);
  const { section, notes: insideNotes } = await benchFromInside(fixture, peers, effort);
  const versions = [
    ...(settings.tinyproxy ? [`tinyproxy ${programVersion(['tinyproxy', '-v'])}`] : []),
    ...(settings.squid ? [`squid ${programVersion(['squid', '-v'])}`] : []),
    ...(settings.srt === null ? [] : [`srt ${peers.version}`]),
  ];
  const notes = [
    ...(tinyproxy === null ? [] : [`tinyproxy was not measured: ${tinyproxy}.`]),
    ...(squid === null ? [] : [`squid was not measured: ${squid}.`]),
    ...(settings.srt === null ? [`srt was not measured: ${peers.why}.`] : []),
    ...insideNotes,
  ];
  return gatewaySections({
    ...found,
    ...effort,
    versions,
    notes,
    others: number(others),
    busy: others > BUSY,
    fromInside: section,
  });
}

const srtPackage = (fixture) => join(fixture.dir, 'peers/node_modules/@anthropic-ai/sandbox-runtime');

/** Measures only the connections from inside sandboxes. */
export async function benchFromInsideAlone(fixture, peers, effort) {
  const { section, notes } = await benchFromInside(fixture, peers, effort);
  if (section === null) throw new Error(notes.join(' '));
  return asGateway(section);
}

async function benchFromInside(fixture, peers, effort) {
  // Without root only a user namespace has root's rights, and a sandbox started there differs from a real one.
  const why =
    process.getuid() === 0
      ? installPrograms({ bwrap: 'bubblewrap', ip: 'iproute2' })
      : 'the network for it can be made by root only';
  if (why !== null) return { section: null, notes: [`Connections from inside sandboxes were not measured: ${why}.`] };
  const { dir, load } = prepareLoad(fixture, 'from-inside');
  const settings = {
    ...effort,
    dir,
    load,
    actor: fixture.actors.user,
    ags: fixture.ags(),
    srt: fixture.srt?.() ?? null,
    srtPackage: srtPackage(fixture),
  };
  const found = await measureIn('from-inside.mjs', settings);
  return { section: fromInsideSection({ found, ...effort, peers }), notes: [] };
}

function prepareLoad(fixture, name) {
  const noCompiler = installPrograms({ cc: 'gcc libc6-dev' });
  if (noCompiler !== null) throw new Error(`the client of the gateway's measurements cannot be built: ${noCompiler}`);
  const dir = join(fixture.dir, name);
  mkdirSync(dir);
  return { dir, load: buildLoad(dir) };
}

/** In cores: above this load, figures that need two concurrent processes are unreliable. */
const BUSY = 0.5;

async function busyCores() {
  const idle = () => {
    const [, , , , idleTicks, waiting] = readFileSync('/proc/stat', 'utf8').split('\n')[0].split(/\s+/).map(Number);
    return (idleTicks + waiting) / 100;
  };
  const [before, began] = [idle(), performance.now()];
  await wait(3000);
  return Math.max(0, cpus().length - (idle() - before) / ((performance.now() - began) / 1000));
}

async function measureIn(name, settings) {
  const script = fileURLToPath(new URL(name, import.meta.url));
  const { argv } = inPlace([process.execPath, script, JSON.stringify(settings)]);
  const child = spawn(argv[0], argv.slice(1), { stdio: ['ignore', 'pipe', 'inherit'] });
  // unshare waits for its child and ignores milder signals.
  process.once('exit', () => child.kill('SIGKILL'));
  let text = '';
  child.stdout.on('data', (data) => {
    text += data;
  });
  const code = await new Promise((resolve) => child.once('close', resolve));
  if (code !== 0) throw new Error(`the measurements of the gateway ended with ${code}`);
  return JSON.parse(text.trim().split('\n').at(-1));
}
