// bench/gateway/sandboxes.mjs: long-running sandboxes, started as their documentation says, with a client inside that reads commands line by
// line. All belong to one user and have the same 52 names on their list.
// Invariant: the processor time of a sandbox includes all its processes, even ended ones, except the client.
import { chownSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { wait } from '../fixture.mjs';
import { ORIGIN } from './remote-place.mjs';
import { NAMES } from './names.mjs';
import { PORTS, tree } from './place.mjs';

const ENTRIES = NAMES.map((name) => `${name}:${PORTS.plain}`);
const NETWORK = { defaults: false, allow: ENTRIES, limits: { perSecond: 100_000, bytesOut: 'none' } };

/** A project with the client, and the settings of both sandboxes. */
export function prepareSandboxes({ dir, load, actor }) {
  const project = join(dir, 'project');
  const config = join(dir, 'config/ags');
  for (const path of [project, config]) mkdirSync(path, { recursive: true });
  chownSync(project, actor.uid, actor.uid);
  copyFileSync(load, join(project, CLIENT));
  writeFileSync(join(config, 'config.yaml'), JSON.stringify({ network: NETWORK }));
  const settings = join(dir, 'srt-settings.json');
  writeFileSync(
    settings,
    JSON.stringify({
      network: { allowedDomains: ENTRIES, deniedDomains: [] },
      filesystem: { denyRead: [], allowWrite: ['.'], denyWrite: [] },
    }),
  );
  const gateway = { config: join(dir, 'gateway.yaml'), port: 7400 };
  const log = join(project, 'decisions.jsonl');
  writeFileSync(
    gateway.config,
    JSON.stringify({ gateway: { listen: [`127.0.0.1:${gateway.port}`], log }, network: NETWORK }),
  );
  const own = { ...actor, env: { ...actor.env, XDG_CONFIG_HOME: join(dir, 'config') } };
  return { actor: own, project, settings, gateway };
}

const CLIENT = 'load';
const OBEY = [`./${CLIENT}`, 'obey', 'lines'];

/** The variants by name: how each starts, and how its client reaches the origin. */
export function commands({ ags, srt, srtPackage, settings, gateway }) {
  const alone = (how) => ({ argv: [process.execPath, ALONE, JSON.stringify({ ...how, client: OBEY })], via: 'env' });
  return {
    direct: { argv: OBEY, via: `direct:${ORIGIN}` },
    ags: { argv: [...ags, 'exec', '--', ...OBEY], via: 'env' },
    gateway: alone({ kind: 'ags', ags, ...gateway }),
    ...(srt === null
      ? {}
      : {
          srt: { argv: [...srt, '--settings', settings, ...OBEY], via: 'env' },
          proxy: alone({ kind: 'srt', directory: srtPackage, settings }),
        }),
  };
}

const ALONE = fileURLToPath(new URL('alone.mjs', import.meta.url));

export async function openSandbox(place, { actor, project }, { argv, via }) {
  const child = place.start(argv, {
    ...actor.identity,
    env: actor.env,
    cwd: project,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const gone = new Promise((resolve) => child.once('close', resolve));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error(`${argv.join(' ')} has ended`);
    return value;
  };
  while ((await next()) !== 'ready') continue;

  /** Runs the client inside; returns its output and status. */
  async function run(mode, how) {
    const args = Object.entries({ via, ...how }).map(([key, value]) => `${key}=${value}`);
    child.stdin.write(`${[mode, ...args].join(' ')}\n`);
    const said = [];
    for (;;) {
      const line = await next();
      const [, status] = /^ended (\d+)$/.exec(line) ?? [];
      if (status !== undefined) return { said: said.join('\n'), status: Number(status) };
      said.push(line);
    }
  }

  return {
    /** Runs the client. A single failed tunnel is an error, because refusing is fast. */
    async ask(mode, how) {
      const before = processorMs(child.pid);
      const { said, status } = await run(mode, how);
      if (status !== 0) throw new Error(`${argv.join(' ')}: load ${mode} failed (${status}): ${said}`);
      // Includes closing connections and writing the log.
      await wait(SETTLE_MS);
      return { ...JSON.parse(said), cpuUs: (processorMs(child.pid) - before) * 1000 };
    },
    /** Retries, because the path to the gateway may be ready later than the client. */
    async mustReach(to) {
      for (let tries = 0; tries < 100; tries += 1) {
        if ((await run('once', { to })).status === 0) return;
        await wait(50);
      }
      throw new Error(`${argv.join(' ')} does not let ${to} through`);
    },
    async mustRefuse(to) {
      const { said, status } = await run('once', { to });
      if (status === 0) throw new Error(`${argv.join(' ')} let ${to} through: ${said}`);
    },
    async close() {
      child.stdin.end();
      const code = await gone;
      if (code !== 0) throw new Error(`${argv.join(' ')} ended with ${code}`);
    },
  };
}

const SETTLE_MS = 100;
/** The tick of /proc on every Linux that Node supports. */
const TICK_MS = 10;

/** User and system time of a process and its descendants, including what parents record of ended ones. */
function processorMs(pid) {
  let ticks = 0;
  for (const one of tree(pid)) {
    try {
      const stat = readFileSync(`/proc/${one}/stat`, 'utf8');
      const end = stat.lastIndexOf(')');
      if (stat.slice(stat.indexOf('(') + 1, end) === CLIENT) continue;
      const fields = stat.slice(end + 2).split(' ');
      for (const field of fields.slice(11, 15)) ticks += Number(field);
    } catch {
      // It has ended meanwhile.
    }
  }
  return ticks * TICK_MS;
}
