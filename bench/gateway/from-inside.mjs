// bench/gateway/from-inside.mjs: measures connections from inside sandboxes with everything that carries them. Started by
// bench/gateway/bench.mjs in its own namespaces, with its settings as the only argument; the last line of output is the result.
import { execFileSync } from 'node:child_process';
import { openRemotePlace } from './remote-place.mjs';
import { NAME, UNLISTED } from './names.mjs';
import { PORTS } from './place.mjs';
import { inTurn, mapValues } from './rounds.mjs';
import { commands, openSandbox, prepareSandboxes } from './sandboxes.mjs';

const settings = JSON.parse(process.argv[2]);
const { rounds, seconds, warmUp } = settings;
const TO = `${NAME}:${PORTS.plain}`;
const MANY = 16;

const place = await openRemotePlace(settings);
const own = prepareSandboxes(settings);
const ways = {};
for (const [name, command] of Object.entries(commands({ ...settings, ...own }))) {
  ways[name] = await openSandbox(place, own, command);
  await ways[name].mustReach(TO);
  if (name !== 'direct') await ways[name].mustRefuse(`${UNLISTED}:${PORTS.plain}`);
}

/** Bounds for the lines in the log of ags: some connections are still open at the end of each measurement. */
let [fewest, most] = [1, 1];
const results = await measure();
for (const way of Object.values(ways)) await way.close();
const log = { lines: logLines(), fewest, most };
if (log.lines < fewest || log.lines > most) throw new Error(`the decision log is not whole: ${JSON.stringify(log)}`);
await place.close();
process.stdout.write(`\n${JSON.stringify({ ...results, log })}\n`);
process.exit(0);

async function measure() {
  const phase = (times, mode, how) =>
    inTurn(
      times,
      mapValues(ways, (way, name) => async () => {
        const found = await way.ask(mode, { to: TO, seconds, ...how });
        const many = how.many ?? 1;
        if (name === 'ags') [fewest, most] = [fewest + found.count, most + found.count + many];
        return found;
      }),
    );
  // JIT compilers settle after some thousand connections.
  await phase(1, 'tunnels', { many: MANY, seconds: warmUp });
  return {
    tunnels: await phase(rounds, 'tunnels', { many: MANY }),
    single: await phase(rounds, 'tunnels', { many: 1 }),
    down: await phase(rounds, 'down', {}),
    up: await phase(rounds, 'up', {}),
  };
}

function logLines() {
  const { actor, project } = own;
  const [program, ...args] = [...settings.ags, 'net', 'log', '--json'];
  const text = execFileSync(program, args, {
    ...actor.identity,
    env: actor.env,
    cwd: project,
    encoding: 'utf8',
    maxBuffer: 2 ** 30,
  });
  return JSON.parse(text).decisions.filter(({ host }) => host === NAME).length;
}
