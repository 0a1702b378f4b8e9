// bench/gateway/from-inside.mjs: connections from inside sandboxes, with everything that carries them. Started by
// bench/gateway/bench.mjs in namespaces of its own, with its settings as the only argument; the last line it prints is what
// it found.
import { execFileSync } from 'node:child_process';
import { openFarPlace } from './far-place.mjs';
import { NAME, UNLISTED } from './names.mjs';
import { PORTS } from './place.mjs';
import { inTurn, mapValues } from './rounds.mjs';
import { commands, openSandbox, prepareSandboxes } from './sandboxes.mjs';

const settings = JSON.parse(process.argv[2]);
const { rounds, seconds, warmUp } = settings;
const TO = `${NAME}:${PORTS.plain}`;
const MANY = 16;

const place = await openFarPlace(settings);
const own = prepareSandboxes(settings);
const { direct, ...sandboxes } = await openAll(commands({ ...settings, ...own }));
for (const sandbox of Object.values(sandboxes)) {
  await sandbox.mustReach(TO);
  await sandbox.mustRefuse(`${UNLISTED}:${PORTS.plain}`);
}

/** How many lines the log of ags should have. */
let [fewest, most] = [1, 1];
const inside = await measure(sandboxes);
// Not in turn with the others: it leaves so many closed connections behind that whoever looks at connections is slowed down.
const outside = await measure({ direct });
for (const one of [direct, ...Object.values(sandboxes)]) await one.close();
checkLog();
await place.close();
process.stdout.write(`\n${JSON.stringify(mapValues(inside, (runs, what) => ({ ...outside[what], ...runs })))}\n`);
process.exit(0);

async function openAll(all) {
  const opened = {};
  for (const [name, command] of Object.entries(all)) opened[name] = await openSandbox(place, own, command);
  return opened;
}

async function measure(ways) {
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
  // Programs that compile themselves while they run settle after some thousand connections.
  await phase(1, 'tunnels', { many: MANY, seconds: warmUp });
  return {
    tunnels: await phase(rounds, 'tunnels', { many: MANY }),
    single: await phase(rounds, 'tunnels', { many: 1 }),
    down: await phase(rounds, 'down', {}),
    up: await phase(rounds, 'up', {}),
  };
}

/** What is not written down would be fast too. At the end of each measurement some connections are still on their way. */
function checkLog() {
  const { actor, project } = own;
  const [program, ...args] = [...settings.ags, 'net', 'log', '--json'];
  const text = execFileSync(program, args, {
    ...actor.identity,
    env: actor.env,
    cwd: project,
    encoding: 'utf8',
    maxBuffer: 2 ** 30,
  });
  const lines = JSON.parse(text).decisions.filter(({ host }) => host === NAME).length;
  process.stderr.write(` ${lines} lines for ${fewest} to ${most} connections `);
  if (lines < fewest || lines > most)
    throw new Error(`the decision log has ${lines} lines, where ${fewest} to ${most} connections were made`);
}
