// bench/gateway/inside.mjs: measures all proxies in turn in one place. Started by bench/gateway/bench.mjs in its own namespaces, with its
// settings as the only argument; the last line of output is the result.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { firstAnswers } from './first.mjs';
import { clientHello, plainRequest } from './hello.mjs';
import { inspect } from './inspect.mjs';
import { NAME, UNLISTED } from './names.mjs';
import { ask, hold, mustRefuse, openPlace, PORTS, residentKb, tree } from './place.mjs';
import { startAgs, startSquid, startSrt, startTinyproxy } from './proxies.mjs';
import { inTurn, mapValues } from './rounds.mjs';

const settings = JSON.parse(process.argv[2]);
const { rounds, seconds } = settings;
const PLAIN = `${NAME}:${PORTS.plain}`;

const place = await openPlace(settings);
const starters = {
  ags: (port) => startAgs(place, { ags: settings.ags, port }),
  ...(settings.tinyproxy
    ? {
        tinyproxy: (port) => startTinyproxy(place, { port, log: true }),
        quiet: (port) => startTinyproxy(place, { port, log: false }),
      }
    : {}),
  ...(settings.squid ? { squid: (port) => startSquid(place, { port }) } : {}),
  ...(settings.srt === null ? {} : { srt: (port) => startSrt(place, { srt: settings.srt, port }) }),
};

const results = {
  first: settings.first === null ? null : await firstAnswers(settings),
  steps: await steps(),
  inspect: await inspect(place, settings),
  rules: await rules(),
  memory: await memory(),
  ...(await compare()),
};
await place.close();
process.stdout.write(`\n${JSON.stringify(results)}\n`);
process.exit(0);

/** Measures with all proxies up, in turn. */
async function compare() {
  const proxies = {};
  for (const [i, [name, start]] of Object.entries(starters).entries()) proxies[name] = await start(7000 + i);
  for (const { via } of Object.values(proxies)) await mustRefuse(place, via, `${UNLISTED}:${PORTS.plain}`);
  const ways = { direct: { via: 'direct', pids: null } };
  for (const [name, proxy] of Object.entries(proxies)) {
    ways[name] = { via: proxy.via, pids: tree(proxy.child.pid) };
    if (proxy.unix !== undefined) ways[`${name} unix`] = { via: proxy.unix, pids: ways[name].pids };
  }
  const phase = (mode, how) =>
    inTurn(
      rounds,
      mapValues(ways, (way) => () => askBy(way, mode, { to: PLAIN, seconds, ...how })),
    );

  // JIT compilers settle after some thousand tunnels.
  for (const way of Object.values(ways)) await askBy(way, 'tunnels', { to: PLAIN, many: 16, seconds: settings.warmUp });
  const found = {
    tunnels: await phase('tunnels', { many: 16 }),
    single: await phase('tunnels', { many: 1 }),
    parts: await phase('tunnels', { many: 1, answer: 'parts' }),
    down: await phase('down', {}),
    up: await phase('up', {}),
    events: await phase('events', { many: 200 }),
    hello: await hellos(ways.ags),
  };
  for (const proxy of Object.values(proxies)) await place.stop(proxy.child);
  return found;
}

/** Sends the same number of bytes as TLS with a verified name, and as another protocol. */
async function hellos(way) {
  const files = { hello: join(place.dir, 'hello'), plain: join(place.dir, 'plain') };
  writeFileSync(files.hello, await clientHello(NAME));
  writeFileSync(files.plain, plainRequest(NAME));
  const by = (to, first) => () => askBy(way, 'tunnels', { to, first, many: 16, seconds });
  return inTurn(rounds, {
    plain: by(PLAIN, files.plain),
    checked: by(`${NAME}:${PORTS.tls}`, files.hello),
  });
}

/** Compares a short list of rules with a long one. */
async function rules() {
  const ways = {};
  const children = [];
  for (const [i, count] of [10, 1000, 10_000].entries()) {
    const list = Array.from({ length: count - 1 }, (_, n) => `${n % 2 === 0 ? '*.' : ''}name${n}.rules.test`);
    list.splice(count / 2, 0, PLAIN);
    const { child, via } = await startAgs(place, { ags: settings.ags, port: 7100 + i, rules: list });
    children.push(child);
    ways[count] = { via, pids: tree(child.pid) };
  }
  for (const way of Object.values(ways)) await askBy(way, 'tunnels', { to: PLAIN, many: 16, seconds: settings.warmUp });
  const found = await inTurn(
    rounds,
    mapValues(ways, (way) => () => askBy(way, 'tunnels', { to: PLAIN, many: 16, seconds })),
  );
  for (const child of children) await place.stop(child);
  return found;
}

/** Measures single steps of the gateway. */
async function steps() {
  const script = fileURLToPath(new URL('parts.mjs', import.meta.url));
  const { steps: found } = await inTurn(Math.min(rounds, 5), {
    steps: () => JSON.parse(execFileSync(process.execPath, [script, settings.dist, '200'], { encoding: 'utf8' })),
  });
  return found;
}

/** In new processes, because a busy one keeps unused memory. */
async function memory() {
  let port = 7200;
  const once = (start, count) => async () => {
    const proxy = await start((port += 1));
    const pids = tree(proxy.child.pid);
    await ask(place, 'tunnels', { via: proxy.via, to: PLAIN, many: 4, seconds: 0.05 });
    const restKb = residentKb(pids);
    const held = await hold(place, { via: proxy.via, to: PLAIN, many: count });
    const heldKb = residentKb(pids);
    await held.release();
    await place.stop(proxy.child);
    return { restKb, heldKb, count };
  };
  const [some, many] = settings.held;
  return inTurn(Math.min(rounds, 3), {
    ...mapValues(starters, (start) => once(start, some)),
    'ags many': once(starters.ags, many),
  });
}

/** Repeats a round without results for longer, because a busy machine may need more time. */
async function askBy({ via, pids }, mode, how) {
  for (let { seconds } = how; seconds < 10; seconds *= 2) {
    const found = await ask(place, mode, { via, ...how, seconds, ...(pids === null ? {} : { pids: pids.join(',') }) });
    if (found.count + found.bytes + found.samples > 0) return found;
  }
  throw new Error(`nothing came through ${via}`);
}
